//! `praxis verify`: every event, chain and projection of the store, from nothing.
//! Invariant: changes nothing; exit 0 only if nothing at all is wrong.
//! Called by `verbs::run`.

use std::io::{IsTerminal, Write};

use aiws::error::Error;
use aiws::json::Value;

use super::{Call, print};
use crate::exit::Exit;
use crate::render::{escape, json};
use crate::store::{of_store, open_for_verifying};

/// Runs it.
///
/// # Errors
///
/// A store code when the log cannot be read at all.
pub fn run(call: &Call) -> Result<Exit, Error> {
    let journal = open_for_verifying(&call.store)?;
    let terminal = std::io::stderr().is_terminal() && !call.json;
    let mut progress = |at: u64, end: u64| {
        if terminal && (at == end || at.is_multiple_of(1_000)) {
            // Progress is for whoever watches; nobody has to.
            let _ = write!(std::io::stderr(), "\rverify: {at} of {end} events");
        }
    };
    let report = journal
        .verify(&mut progress)
        .map_err(|error| of_store(&call.store, &error))?;
    if terminal {
        crate::render::say("");
    }
    let good = report.is_sound();
    let exit = if good { Exit::Done } else { Exit::Unverified };
    if call.json {
        let findings: Vec<Value> = report.findings.iter().map(finding_value).collect();
        let heads: Vec<Value> = report
            .heads
            .iter()
            .map(|(stream, head)| {
                aiws::object! { "stream": stream, "revision": head.revision, "hash": head.hash.to_string() }
            })
            .collect();
        let members = aiws::object! {
            "storeId": journal.store_id(),
            "sound": good,
            "events": report.events.to_string(),
            "lastHash": report.last.hash.to_string(),
            "heads": heads,
            "findings": findings,
            "more": report.more.to_string(),
            "exit": exit as i32,
        };
        print(&json::object("verification", members).to_string())?;
        return Ok(exit);
    }
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
    if good {
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
    print(&text)?;
    Ok(exit)
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
