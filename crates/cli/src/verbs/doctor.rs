//! `praxis doctor`: what is in order with the machine and the store, and what to do about what is not.
//! Invariant: changes nothing, in no case; whatever cannot be told is said. Called by `verbs::run`, and by the
//! office of an engine for its own open store.

mod machine;
mod place;

use std::path::Path;
use std::sync::Arc;

use aiws::error::{Code, Error};
use aiws::json::Value;
use aiws::record::AttemptStatus;
use praxis_artifacts::{ArtifactProvider, FileArtifacts};
use praxis_engine::shim::Probe;

use super::{Call, block_on, say};
use crate::answer::{Answer, View};
use crate::coding::attempt::AttemptFiles;
use crate::coding::workspace::Workspace;
use crate::exit::Exit;
use crate::render::style::{Style, Tone};
use crate::render::{escape, json, words};
use crate::request::Request;
use crate::seat;
use crate::session::now_ms;
use crate::store::{Reader, open_for_reading};
use crate::verbs::clean::{amount, work};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Ok,
    Warn,
    Bad,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub struct Finding {
    name: &'static str,
    level: Level,
    found: String,
    todo: Option<String>,
}

impl Finding {
    fn ok(name: &'static str, found: &str) -> Self {
        Self {
            name,
            level: Level::Ok,
            found: found.to_owned(),
            todo: None,
        }
    }

    fn warn(name: &'static str, found: &str, todo: &str) -> Self {
        Self {
            level: Level::Warn,
            todo: Some(todo.to_owned()),
            ..Self::ok(name, found)
        }
    }

    fn bad(name: &'static str, found: &str, todo: &str) -> Self {
        Self {
            level: Level::Bad,
            ..Self::warn(name, found, todo)
        }
    }

    #[cfg(test)]
    fn is_bad(&self) -> bool {
        self.level == Level::Bad
    }
}

/// Runs it on a store that need not be there and that an engine may have.
///
/// # Errors
///
/// `EXPORT_FAILED` when the output cannot be written.
pub fn run(call: &Call) -> Result<Exit, Error> {
    let (store, view) = (&call.store, View::of_output(call.json));
    if !store.is_dir() {
        let mut findings = machine::look(store);
        let none = format!("none at {} yet; the first run makes it", store.display());
        findings.push(Finding::ok("store", &none));
        return say(call, &said(store, &findings, view));
    }
    match open_as_it_is(store) {
        Ok(reader) => {
            let answer = answer(&reader, view);
            reader.close()?;
            say(call, &answer)
        }
        Err(error) if error.code() == Code::StoreLocked => say(call, &in_use(call, &error, view)),
        Err(error) => {
            let mut findings = machine::look(store);
            findings.extend(place::look(store));
            findings.push(place::socket(store, false));
            findings.push(place::unopened(&error));
            say(call, &said(store, &findings, view))
        }
    }
}

/// What the engine says that has the store; where none answers, what can be seen from outside.
fn in_use(call: &Call, locked: &Error, view: View) -> Answer {
    let asked = block_on(seat::ask(&call.store, Request::Doctor {}, view));
    asked.unwrap_or_else(|_| {
        let store = &call.store;
        let mut findings = machine::look(store);
        findings.extend(place::look(store));
        findings.push(place::holder(locked));
        findings.push(place::socket(store, true));
        findings.push(Finding::ok("store", "not looked into while it is in use"));
        said(store, &findings, view)
    })
}

/// A store for reading in which not even leftovers of dead processes are removed.
fn open_as_it_is(store: &Path) -> Result<Reader, Error> {
    let journal = open_for_reading(store)?;
    let artifacts = FileArtifacts::open_as_it_is(&store.join("artifacts"))
        .map_err(|error| Error::new(error.code(), error.to_string()))?;
    let artifacts: Arc<dyn ArtifactProvider> = Arc::new(artifacts);
    Ok(Reader::new(store.to_owned(), journal, artifacts))
}

/// The findings about an open store.
#[must_use]
pub fn answer(reader: &Reader, view: View) -> Answer {
    let store = reader.path.as_path();
    let mut findings = machine::look(store);
    findings.extend(place::look(store));
    let holder = match reader.is_owned() {
        true => format!(
            "process {} has the store and answers this",
            std::process::id()
        ),
        false => "no engine has the store".to_owned(),
    };
    findings.push(Finding::ok("lock", &holder));
    findings.push(place::socket(store, reader.is_owned()));
    findings.extend(inside(reader));
    said(store, &findings, view)
}

/// What the record says.
fn inside(reader: &Reader) -> Vec<Finding> {
    let view = reader.journal.view();
    let runs = reader.runs();
    let store = match (view.damage(), &runs) {
        (Some(damage), _) => Finding::bad(
            "store",
            &format!("{}: {damage}", damage.code()),
            "keep the store as it is; praxis verify names the place; use a backup",
        ),
        (None, Err(error)) => place::unopened(error),
        (None, Ok(runs)) => Finding::ok(
            "store",
            &format!(
                "{} of {}, undamaged as far as opening shows",
                words::count(
                    usize::try_from(view.sequence()).unwrap_or(usize::MAX),
                    "event"
                ),
                words::count(runs.len(), "run"),
            ),
        ),
    };
    vec![store, attempts(reader), trees(reader)]
}

/// Attempts whose outcome is in no event: one that lives, one that left its record, or one that nobody knows about.
fn attempts(reader: &Reader) -> Finding {
    let name = "attempts";
    let (mut alive, mut recorded, mut lost) = (0, 0, 0);
    for subject in reader.runs().unwrap_or_default() {
        let Ok((state, _)) = reader.state(&subject) else {
            continue;
        };
        let run = subject.run_id.as_ref().map_or("", |run| run.as_str());
        let workspace = Workspace::at(&reader.path, run, "");
        let open = |status| matches!(status, AttemptStatus::Dispatched | AttemptStatus::Unknown);
        for attempt in state
            .attempts
            .values()
            .filter(|attempt| open(attempt.status))
        {
            match AttemptFiles::of_attempt(&workspace, &state, attempt).map(|files| files.probe()) {
                Some(Probe::Running(_)) => alive += 1,
                Some(Probe::Ended(_)) => recorded += 1,
                _ => lost += 1,
            }
        }
    }
    let found = format!(
        "{alive} under way, {recorded} with a record of their end, {lost} that nobody knows about"
    );
    match (alive + recorded, lost) {
        (0, 0) => Finding::ok(name, "none without an outcome"),
        (_, 0) => Finding::ok(name, &format!("{found}; praxis resume goes on with them")),
        _ => Finding::warn(
            name,
            &found,
            "praxis unknown shows what there is to look at",
        ),
    }
}

fn trees(reader: &Reader) -> Finding {
    let now_ms = now_ms();
    let folders = work::folders(reader, now_ms, now_ms);
    let (kept, size) = folders
        .iter()
        .fold((0, 0u64), |(kept, size), folder| match folder.goes() {
            true => (kept, size.saturating_add(work::size(&folder.path))),
            false => (kept + 1, size),
        });
    let ended = folders.len() - kept;
    match ended {
        0 => Finding::ok(
            "trees",
            &format!("none of ended runs, {kept} that are needed"),
        ),
        ended => Finding::ok(
            "trees",
            &format!(
                "{ended} of ended runs take {}, {kept} are needed; praxis clean removes the first",
                amount(size)
            ),
        ),
    }
}

fn said(store: &Path, findings: &[Finding], view: View) -> Answer {
    let worst = findings.iter().map(|finding| finding.level).max();
    let exit = match worst {
        Some(Level::Bad) => Exit::Internal,
        _ => Exit::Done,
    };
    let values: Vec<Value> = findings
        .iter()
        .map(|finding| {
            aiws::object! {
                "name": finding.name,
                "level": finding.level.word(),
                "found": escape::line(&finding.found),
                "todo": finding.todo.as_deref().map(escape::line),
            }
        })
        .collect();
    let shown = super::shown_path(store);
    let members = aiws::object! {
        "store": shown.as_str(),
        "level": worst.unwrap_or(Level::Ok).word(),
        "findings": values,
        "exit": exit as i32,
    };
    let value = json::object("doctor", members);
    Answer::done(value, view, |style| text(&shown, findings, worst, style)).with_exit(exit)
}

fn text(store: &str, findings: &[Finding], worst: Option<Level>, style: Style) -> String {
    let mut lines = vec![format!("store {store}")];
    for finding in findings {
        let tone = match finding.level {
            Level::Ok => Tone::Good,
            Level::Warn => Tone::Wait,
            Level::Bad => Tone::Bad,
        };
        let level = style.paint(tone, &format!("{:<5}", finding.level.word()));
        let found = escape::line(&finding.found);
        let todo = finding
            .todo
            .as_deref()
            .map(|todo| format!("-> {}", escape::line(todo)));
        let said = [Some(found), todo];
        let said = said.iter().flatten();
        let said = said.flat_map(|text| escape::wrap_whole(text, style.width.saturating_sub(19)));
        for (index, line) in said.enumerate() {
            lines.push(match index {
                0 => format!("  {level} {:<10} {line}", finding.name),
                _ => format!("{:19}{line}", ""),
            });
        }
    }
    lines.push(match worst {
        Some(Level::Bad) => "something is bad; nothing was changed".to_owned(),
        Some(Level::Warn) => "nothing is bad; look at the warnings".to_owned(),
        _ => "all is well".to_owned(),
    });
    lines.push(String::new());
    lines.join("\n")
}
