//! `praxis resume`: goes on with runs that were stopped or killed, wherever that was.
//! Invariant: nothing is started twice; what a kill left between mission and graph, or before the branch, is done.
//! Called by `verbs::run`.

use std::collections::BTreeMap;

use aiws::error::{Code, Error};
use aiws::json::Value;

use super::{Call, block_on, print, say_error, say_outcome};
use crate::answer::{Answer, View};
use crate::args::Resume as Args;
use crate::exit::Exit;
use crate::follow::Asking;
use crate::office::{environment_of, not_set};
use crate::render::{json, say};
use crate::request::Request;
use crate::runner::{Outcome, drive};
use crate::seat;
use crate::session::named;
use crate::socket::line::refusal;

/// Runs it.
///
/// # Errors
///
/// `RUN_NOT_FOUND` or `RUN_AMBIGUOUS`; a store code; afterwards the exit says how the runs stand.
pub fn run(call: &Call, args: Args) -> Result<Exit, Error> {
    if let Some(name) = &args.approve_as {
        named("--approve-as", name)?;
    }
    let asking = Asking {
        in_advance: args.approve_as,
        no_wait: args.no_wait,
        notify: args.notify,
        json: call.json,
    };
    let live = Request::Live {
        run: args.run.clone(),
    };
    let live = block_on(seat::ask(&call.store, live, View::PROGRAM))?;
    let request = Request::Resume {
        run: args.run.clone(),
        environment: environment(&live.value)?,
    };
    let mut outcome = block_on(drive(&call.store, request.clone(), request, &asking))?;
    let beside = outcome.beside.take();
    let skipped = errors(beside.as_ref(), "skipped");
    let failures = errors(beside.as_ref(), "failures");
    if !call.json {
        for error in &skipped {
            say(&format!("skipped: {}", error.message));
        }
        for error in &failures {
            say_error(error, false);
        }
        for branch in texts(beside.as_ref(), "published") {
            print(&format!("published {branch}"))?;
        }
    }
    if outcome.runs.is_empty() && outcome.error.is_none() {
        return nothing_live(
            call,
            args.run.as_deref(),
            outcome,
            beside,
            failures,
            skipped,
        );
    }
    if call.json {
        let first = failures.into_iter().chain(skipped).next();
        outcome.error = outcome.error.or(first);
    }
    say_outcome(call, &outcome)
}

/// The variables that the live runs let through, as they are set here. Where no run can go on for want of one, nothing
/// is opened.
fn environment(live: &Value) -> Result<BTreeMap<String, String>, Error> {
    let runs = live.get("runs").and_then(Value::as_array);
    let (mut environment, mut first, mut able) = (BTreeMap::new(), None, false);
    for run in runs.unwrap_or_default() {
        let names = run.get("environment").and_then(Value::as_array);
        let names = names.unwrap_or_default().iter().filter_map(Value::as_str);
        let names: Vec<String> = names.map(str::to_owned).collect();
        let found = environment_of(&names);
        match names.iter().find(|name| !found.contains_key(name.as_str())) {
            Some(name) => {
                let run = run.get("run").and_then(Value::as_str).unwrap_or_default();
                first = first.or(Some(not_set(run, name)));
            }
            None => able = true,
        }
        environment.extend(found);
    }
    match first {
        Some(error) if !able => Err(error),
        _ => Ok(environment),
    }
}

pub(super) fn errors(answer: Option<&Answer>, name: &str) -> Vec<Error> {
    let listed = answer.and_then(|answer| answer.value.get(name)?.as_array());
    let listed = listed.unwrap_or_default();
    listed.iter().filter_map(refusal).collect()
}

/// The variables that live runs let through, as far as they are set here.
pub(super) fn set_here(live: &Value) -> BTreeMap<String, String> {
    let runs = live.get("runs").and_then(Value::as_array);
    let names = runs.unwrap_or_default().iter().flat_map(|run| {
        let names = run.get("environment").and_then(Value::as_array);
        names.unwrap_or_default().iter().filter_map(Value::as_str)
    });
    let names: Vec<String> = names.map(str::to_owned).collect();
    environment_of(&names)
}

fn texts(answer: Option<&Answer>, name: &str) -> Vec<String> {
    let listed = answer.and_then(|answer| answer.value.get(name)?.as_array());
    let listed = listed.unwrap_or_default().iter().filter_map(Value::as_str);
    listed.map(str::to_owned).collect()
}

/// Says that nothing is live; for a named run, how it ended.
fn nothing_live(
    call: &Call,
    named: Option<&str>,
    mut outcome: Outcome,
    beside: Option<Answer>,
    failures: Vec<Error>,
    skipped: Vec<Error>,
) -> Result<Exit, Error> {
    let first = failures.into_iter().chain(skipped).next();
    if let Some(run) = named {
        let request = Request::Show {
            run: Some(run.to_owned()),
        };
        let page = block_on(seat::ask(&call.store, request, View::PROGRAM))?;
        let name = page.value.get("run").and_then(Value::as_str);
        outcome.runs.extend(name.map(str::to_owned));
        outcome.error = first.filter(|_| call.json);
        return say_outcome(call, &outcome);
    }
    // A run that could not go on is the whole of what there is to say.
    if let Some(error) = first.clone().filter(|error| error.code() == Code::Usage)
        && !call.json
    {
        return Ok(Exit::of(error.code()));
    }
    if call.json {
        let members = aiws::object! {
            "runs": Vec::<Value>::new(),
            "published": texts(beside.as_ref(), "published"),
            "error": first.as_ref().map(Error::to_value),
            "exit": outcome.exit as i32,
        };
        print(&json::object("runs", members).to_string())?;
    } else if outcome.exit == Exit::Done {
        print("No run is live; praxis list shows all of them.")?;
    }
    Ok(outcome.exit)
}
