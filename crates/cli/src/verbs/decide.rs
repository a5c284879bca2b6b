//! `praxis approve` and `praxis deny`: a person's yes or no to what waits in a run.
//! Invariant: what is decided on is what was shown here, or what was named in full; anything else is refused.
//! Called by `verbs::run`.

use aiws::error::{Code, Error};
use aiws::json::Value;

use super::{Call, ask, block_on};
use crate::answer::View;
use crate::args::{Approve, Deny, Pause};
use crate::exit::Exit;
use crate::follow::{Asked, ask_person};
use crate::prompt::at_terminal;
use crate::render::program;
use crate::render::style::Style;
use crate::request::{Decide, Given, Request};
use crate::seat;
use crate::session::named;

/// Runs `approve`.
///
/// # Errors
///
/// `TERMINAL_NEEDED` where nobody can be asked and nothing is named; `APPROVAL_STALE` where something else waits;
/// `HUMAN_REQUIRED` where the caller is not shown to be a person.
pub fn approve(call: &Call, args: &Approve) -> Result<Exit, Error> {
    if let Some(name) = &args.actor {
        named("--as", name)?;
    }
    let decide = |digest: String, yes: bool, way: Given, reason: Option<String>| {
        Request::Decide(Decide {
            run: args.run.clone(),
            digest,
            yes,
            way,
            name: args.actor.clone(),
            reason,
        })
    };
    if let Some(digest) = &args.digest {
        return ask(call, decide(digest.clone(), true, Given::ByVerb, None));
    }
    if call.json || !at_terminal() {
        // A run that is not there, or waits for nothing, is said first.
        let pending = Request::Pending {
            run: args.run.clone(),
        };
        block_on(seat::ask(&call.store, pending, View::PROGRAM))?;
        let message = format!(
            "expected a terminal to show run {run} at, found none; go to one, or name what you saw: {praxis} approve {run} --digest SHA256",
            run = crate::render::escape::line(&args.run),
            praxis = program()
        );
        return Err(Error::new(Code::TerminalNeeded, message));
    }
    let view = View {
        style: Some(Style::of(&std::io::stderr())),
    };
    let pending = Request::Pending {
        run: args.run.clone(),
    };
    let pending = block_on(seat::ask(&call.store, pending, view))?;
    let said = |name: &str| pending.value.get(name).and_then(Value::as_str);
    let (run, what) = (said("run"), said("what"));
    let (run, what) = (run.unwrap_or_default(), what.unwrap_or_default());
    let digest = said("digest").unwrap_or_default().to_owned();
    let asked = block_on(async {
        ask_person(run, what, pending.text.clone())
            .answer(async || Ok(true))
            .await
    })?;
    let Asked::Answer((yes, reason)) = asked else {
        crate::render::say("Nothing is decided.");
        return Ok(Exit::Waits);
    };
    ask(call, decide(digest, yes, Given::AtTerminal, reason))
}

/// Runs `deny`.
///
/// # Errors
///
/// As for [`approve`]; no terminal is needed to say no.
pub fn deny(call: &Call, args: &Deny) -> Result<Exit, Error> {
    if let Some(name) = &args.actor {
        named("--as", name)?;
    }
    if args.reason.trim().is_empty() {
        return Err(Error::new(
            Code::Usage,
            "--reason: expected why, in a few words",
        ));
    }
    let pending = Request::Pending {
        run: args.run.clone(),
    };
    let terminal = !call.json && at_terminal();
    let view = View {
        style: terminal.then(|| Style::of(&std::io::stderr())),
    };
    let pending = block_on(seat::ask(&call.store, pending, view))?;
    let digest = pending.value.get("digest").and_then(Value::as_str);
    if terminal {
        crate::render::say(&pending.text);
    }
    let question = "Say no to it? The run ends as rejected.";
    let Some(way) = super::confirmed(call, question)? else {
        return Ok(Exit::Waits);
    };
    ask(
        call,
        Request::Decide(Decide {
            run: args.run.clone(),
            digest: digest.unwrap_or_default().to_owned(),
            yes: false,
            way,
            name: args.actor.clone(),
            reason: Some(args.reason.clone()),
        }),
    )
}

/// Runs `pause`; of a branch it says first what that has, and asks where somebody can be asked.
///
/// # Errors
///
/// `SCOPE_UNSUPPORTED` for a node that the run does not have; else as for [`approve`].
pub fn pause(call: &Call, args: &Pause) -> Result<Exit, Error> {
    let request = |dry_run: bool| Request::Pause {
        run: args.run.clone(),
        reason: args.reason.clone(),
        branch: args.branch.clone(),
        dry_run,
    };
    if args.dry_run {
        return ask(call, request(true));
    }
    if args.branch.is_some() {
        let found = block_on(seat::ask(&call.store, request(true), View::PROGRAM))?;
        let nodes = found.value.get("nodes").and_then(Value::as_array);
        let nodes = nodes.unwrap_or_default().iter().filter_map(Value::as_str);
        let nodes: Vec<&str> = nodes.collect();
        let question = format!("Start nothing new in {}?", nodes.join(", "));
        if super::confirmed(call, &question)?.is_none() {
            return Ok(Exit::Waits);
        }
    }
    ask(call, request(false))
}
