//! `praxis verify`: every event, chain and projection of the store, from nothing.
//! Invariant: changes nothing; exit 0 only if nothing at all is wrong.
//! Called by `verbs::run`.

use std::io::{IsTerminal, Write};

use aiws::error::{Code, Error};
use aiws::json::Value;
use praxis_journal::Journal;
use praxis_journal::verify::VerifyReport;

use super::{Call, block_on, say};
use crate::answer::{Answer, View};
use crate::exit::Exit;
use crate::render::{escape, json};
use crate::request::Request;
use crate::seat;
use crate::store::open_for_verifying;

/// Runs it: a damaged store is read on, too.
///
/// # Errors
///
/// A store code when the log cannot be read at all.
pub fn run(call: &Call) -> Result<Exit, Error> {
    let view = View::of_output(call.json);
    let terminal = std::io::stderr().is_terminal() && !call.json;
    let mut progress = |at: u64, end: u64| {
        if terminal && (at == end || at.is_multiple_of(1_000)) {
            // Progress is for whoever watches; nobody has to.
            let _ = write!(std::io::stderr(), "\rverify: {at} of {end} events");
        }
    };
    let answer = match open_for_verifying(&call.store) {
        Ok(journal) => {
            let answer = answer(&journal, &mut progress, view)?;
            if terminal {
                crate::render::say("");
            }
            answer
        }
        Err(error) if error.code() == Code::StoreLocked => {
            block_on(seat::ask(&call.store, Request::Verify {}, view))?
        }
        Err(error) => return Err(error),
    };
    say(call, &answer)
}

/// Every event, chain and projection of an open journal.
///
/// # Errors
///
/// A store code when the log cannot be read at all.
pub fn answer(
    journal: &Journal,
    progress: &mut dyn FnMut(u64, u64),
    view: View,
) -> Result<Answer, Error> {
    let report = journal
        .verify(progress)
        .map_err(|error| Error::new(error.code(), error.to_string()))?;
    let good = report.is_sound();
    let exit = if good { Exit::Done } else { Exit::Unverified };
    let members = {
        let findings: Vec<Value> = report.findings.iter().map(finding_value).collect();
        let heads: Vec<Value> = report
            .heads
            .iter()
            .map(|(stream, head)| {
                aiws::object! { "stream": stream, "revision": head.revision, "hash": head.hash.to_string() }
            })
            .collect();
        aiws::object! {
            "storeId": journal.store_id(),
            "sound": good,
            "events": report.events.to_string(),
            "lastHash": report.last.hash.to_string(),
            "heads": heads,
            "findings": findings,
            "more": report.more.to_string(),
            "exit": exit as i32,
        }
    };
    let value = json::object("verification", members);
    Ok(Answer::done(value, view, |_| text(&report)).with_exit(exit))
}

fn text(report: &VerifyReport) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let place = finding
            .sequence
            .map(|sequence| format!("event {sequence}: "))
            .unwrap_or_default();
        text.push_str(&format!(
            "{} {place}{}\n",
            finding.code,
            escape::line(&finding.what)
        ));
    }
    if report.more > 0 {
        text.push_str(&format!("and {} findings more\n", report.more));
    }
    if report.is_sound() {
        text.push_str(&format!(
            "verified: {} events in {} streams, every chain and every projection\nlast event {}",
            report.events,
            report.heads.len(),
            report.last.hash
        ));
    } else {
        text.push_str(&format!(
            "NOT verified: {} events read\nKeep the store as it is; praxis explain CODE says what each code means.",
            report.events
        ));
    }
    text
}

fn finding_value(finding: &praxis_journal::verify::Finding) -> Value {
    aiws::object! {
        "code": finding.code.name(),
        "sequence": finding.sequence.map(|sequence| sequence.to_string()),
        "stream": finding.stream.as_ref().map(|stream| stream.as_str()),
        "revision": finding.revision.map(|revision| revision.to_string()),
        "what": escape::line(&finding.what),
    }
}
