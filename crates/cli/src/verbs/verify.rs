//! `praxis verify`: every event, chain and projection of the store, from nothing; with `--deep` every decision, too.
//! Invariant: changes nothing; exit 0 only if nothing at all is wrong.
//! Called by `verbs::run`.

use std::io::{IsTerminal, Write};

use aiws::error::{Code, Error};
use aiws::id::StoreId;
use aiws::json::{Object, Value};
use praxis_journal::Journal;
use praxis_journal::verify::{Compared, DeepReport, Depth, Finding, Standing, VerifyReport};
use praxis_journal_format::checkpoint::Checkpoint;
use praxis_journal_format::limits::MAX_NOTE_BYTES;
use praxis_journal_format::note::Verifier;
use praxis_journal_format::tree::TreeHead;

use super::checkpoint::refused;
use super::{Call, block_on, say};
use crate::answer::{Answer, View};
use crate::args::Verify;
use crate::exit::Exit;
use crate::files::read_bounded;
use crate::render::{escape, json};
use crate::request::Request;
use crate::seat;
use crate::store::open_for_verifying;

/// Checkpoints that were kept elsewhere, behind their signatures.
#[derive(Debug, Default)]
pub struct Kept(Vec<Checkpoint>);

impl Kept {
    /// Reads signed checkpoints against the one key.
    ///
    /// # Errors
    ///
    /// `KEY_INVALID`, `CHECKPOINT_INVALID`, `CHECKPOINT_UNTRUSTED`; `USAGE` where one comes without the other.
    pub fn of(notes: &[String], key: Option<&str>) -> Result<Self, Error> {
        let Some(key) = key.filter(|_| !notes.is_empty()) else {
            return match key.is_none() && notes.is_empty() {
                true => Ok(Self::default()),
                false => Err(Error::new(
                    Code::Usage,
                    "expected checkpoints together with the verifier key",
                )),
            };
        };
        let verifier = Verifier::parse(key).map_err(|error| refused(&error))?;
        let read = |note: &String| Checkpoint::verified(note.as_bytes(), &verifier);
        let kept: Result<_, _> = notes.iter().map(read).collect();
        Ok(Self(kept.map_err(|error| refused(&error))?))
    }

    /// The heads, if all of them are of this store.
    fn heads(&self, store: &StoreId) -> Result<Vec<TreeHead>, Error> {
        let heads: Result<_, _> = self.0.iter().map(|kept| kept.of_store(store)).collect();
        heads.map_err(|error| refused(&error))
    }
}

/// Runs it: a damaged store is read on, too.
///
/// # Errors
///
/// A store code when the log cannot be read at all; what is wrong with a checkpoint or its key.
pub fn run(call: &Call, args: &Verify) -> Result<Exit, Error> {
    let view = View::of_output(call.json);
    let terminal = std::io::stderr().is_terminal() && !call.json;
    let mut progress = |at: u64, end: u64| {
        if terminal && (at == end || at.is_multiple_of(1_000)) {
            // Progress is for whoever watches; nobody has to.
            let _ = write!(std::io::stderr(), "\rverify: {at} of {end} events");
        }
    };
    let notes = args.checkpoint.iter().map(|path| {
        let bytes = read_bounded(path, MAX_NOTE_BYTES as u64, Code::CheckpointInvalid)?;
        String::from_utf8(bytes).map_err(|_| {
            let message = format!("{} is not UTF-8", super::shown_path(path));
            Error::new(Code::CheckpointInvalid, message)
        })
    });
    let checkpoints: Vec<String> = notes.collect::<Result<_, Error>>()?;
    let kept = Kept::of(&checkpoints, args.verifier_key.as_deref())?;
    let answer = match open_for_verifying(&call.store) {
        Ok(journal) => {
            let answer = answer(&journal, args.deep, &kept, &mut progress, view)?;
            if terminal {
                crate::render::say("");
            }
            answer
        }
        Err(error) if error.code() == Code::StoreLocked => {
            let request = Request::Verify {
                deep: args.deep,
                checkpoints,
                verifier_key: args.verifier_key.clone(),
            };
            block_on(seat::ask(&call.store, request, view))?
        }
        Err(error) => return Err(error),
    };
    say(call, &answer)
}

/// Every event, chain and projection of an open journal; where `deep` says so, every decision.
///
/// # Errors
///
/// A store code when the log cannot be read at all; `CHECKPOINT_UNTRUSTED` for a checkpoint of another log.
pub fn answer(
    journal: &Journal,
    deep: bool,
    kept: &Kept,
    progress: &mut dyn FnMut(u64, u64),
    view: View,
) -> Result<Answer, Error> {
    let depth = match deep {
        true => Depth::Decisions,
        false => Depth::Projections,
    };
    let heads = kept.heads(journal.store_id())?;
    let verified = journal.verify_against(&heads, depth, progress);
    let report = verified.map_err(|error| Error::new(error.code(), error.to_string()))?;
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
            "deep": report.deep.as_ref().map(deep_value),
            "checkpoints": report.compared.iter().map(compared_value).collect::<Vec<Value>>(),
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
            "{} {place}{}{}\n",
            finding.code,
            decided(finding),
            escape::line(&finding.what)
        ));
    }
    if report.more > 0 {
        text.push_str(&format!("and {} findings more\n", report.more));
    }
    if let Some(deep) = &report.deep {
        text.push_str(&deep_text(deep));
    }
    for compared in &report.compared {
        let size = compared.head.size;
        match compared.standing {
            Standing::Extends => {
                text.push_str(&format!("extends the checkpoint of {size} events\n"));
            }
            Standing::Unknown => text.push_str(&format!(
                "not comparable with the checkpoint of {size} events: not all of them can be read\n"
            )),
            Standing::Ahead | Standing::Forked => {}
        }
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

/// What deciding again says of the place of a finding.
fn decided(finding: &Finding) -> String {
    let Some(command) = finding.command else {
        return String::new();
    };
    let stream = finding.stream.as_ref().map_or("", |stream| stream.as_str());
    let revision = finding.revision.unwrap_or_default();
    let member = finding.member.as_deref();
    let member = member.map(|member| format!(", {}", escape::line(member)));
    format!(
        "{} at revision {revision} of stream {stream}{}: ",
        command.name(),
        member.unwrap_or_default()
    )
}

/// What was decided again and what was not.
fn deep_text(deep: &DeepReport) -> String {
    let mut text = format!(
        "decided again: {} events reached their recorded outcome, {} did not\n",
        deep.reached, deep.differing
    );
    let listed = |counts: Vec<String>| counts.join(", ");
    if !deep.undecided.is_empty() {
        let each = deep.undecided.iter();
        text.push_str(&format!(
            "not decidable again: {} events, as what was before them is not known ({})\n",
            deep.undecided_events(),
            listed(
                each.map(|(kind, count)| format!("{} {count}", kind.name()))
                    .collect()
            )
        ));
    }
    if !deep.other_versions.is_empty() {
        let each = deep.other_versions.iter();
        text.push_str(&format!(
            "not decided, of other codec versions: {}\n",
            listed(
                each.map(|(version, count)| format!("{count} of version {version}"))
                    .collect()
            )
        ));
    }
    if deep.unreadable > 0 {
        text.push_str(&format!("not decided, not readable: {}\n", deep.unreadable));
    }
    text
}

fn deep_value(deep: &DeepReport) -> Value {
    let undecided: Object = deep
        .undecided
        .iter()
        .map(|(kind, count)| (kind.name().to_owned(), count.to_string().into()))
        .collect();
    let others: Object = deep
        .other_versions
        .iter()
        .map(|(version, count)| (version.to_string(), count.to_string().into()))
        .collect();
    aiws::object! {
        "reached": deep.reached.to_string(),
        "differing": deep.differing.to_string(),
        "undecided": undecided,
        "otherVersions": others,
        "unreadable": deep.unreadable.to_string(),
    }
}

fn compared_value(compared: &Compared) -> Value {
    aiws::object! {
        "size": compared.head.size.to_string(),
        "rootHash": compared.head.root.to_string(),
        "standing": compared.standing.name(),
        "found": compared.found.map(|root| root.to_string()),
    }
}

fn finding_value(finding: &Finding) -> Value {
    aiws::object! {
        "code": finding.code.name(),
        "sequence": finding.sequence.map(|sequence| sequence.to_string()),
        "stream": finding.stream.as_ref().map(|stream| stream.as_str()),
        "revision": finding.revision.map(|revision| revision.to_string()),
        "command": finding.command.map(|command| command.name()),
        "member": finding.member.as_deref().map(escape::line),
        "what": escape::line(&finding.what),
    }
}
