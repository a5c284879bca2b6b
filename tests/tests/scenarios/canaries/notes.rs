//! What a process of the story leaves behind for the search: one file per place.
//! Invariant: everything that a place could show is written as that place would show it, with a control beside it.
//! Used by the two tellers.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use aiws::error::Error;
use praxis_engine::Engine;
use praxis_journal::Journal;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use super::CONTROL;
use crate::wire::id;

/// The files that are searched.
pub const PLACES: &[&str] = &["log", "debug", "errors", "outbox", "findings"];

/// The notes of one process.
pub struct Notes(PathBuf);

impl Notes {
    /// Opens the notes, and catches every event and span of every crate from here on.
    pub fn begin(root: &Path) -> Notes {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(root.join("log"))
            .unwrap();
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_ansi(false)
            .with_writer(Mutex::new(log))
            .init();
        tracing::trace!(field = CONTROL, "a control");
        eprintln!("{CONTROL}");
        let notes = Notes(root.to_owned());
        for place in PLACES.iter().filter(|place| **place != "log") {
            notes.write(place, CONTROL);
        }
        notes
    }

    /// A file of the notes.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a line of a place.
    pub fn write(&self, place: &str, line: &str) {
        let mut file: File = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path(place))
            .unwrap();
        writeln!(file, "{line}").unwrap();
    }

    /// The `Debug` forms of something.
    pub fn debug(&self, what: &dyn Debug) {
        self.write("debug", &format!("{what:?}\n{what:#?}"));
    }

    /// All forms of a refusal.
    pub fn error(&self, error: &Error) {
        self.debug(error);
        self.write("errors", &format!("{error}\n{}", error.to_value()));
    }

    /// A token, as its holder keeps it.
    pub fn token(&self, token: &str) {
        self.write("held-tokens", token);
    }

    /// What the journal shows to consumers and to whoever verifies it, and what it holds in memory.
    pub fn journal(&self, journal: &Journal) {
        let consumer = id("outside");
        let told = journal.notifications(&consumer, 10_000).unwrap();
        assert!(!told.is_empty());
        self.debug(&told);
        for one in &told {
            let value = aiws::canonical::to_value(one).unwrap();
            self.write("outbox", &value.to_string());
        }
        let report = journal.verify_deep(&mut |_, _| {}).unwrap();
        self.debug(&report);
        self.write("findings", &format!("{report:?}"));
        self.debug(&*journal.view());
        for (sequence, sealed) in journal.pending(&consumer, 10_000).unwrap() {
            self.debug(&sealed);
            self.debug(&praxis_journal_format::Frame::of(&sealed, sequence, 0));
        }
    }

    /// What the engine holds of every run.
    pub async fn states(&self, engine: &Engine) {
        for run in engine.runs() {
            self.debug(&run);
            let Ok(state) = engine.run_state(&run.mission_id, &run.run_id).await else {
                continue;
            };
            self.debug(&*state);
            let mission = engine.mission_state(&run.mission_id).await.unwrap();
            self.debug(&*mission);
            let report = praxis_model::report::of(&state);
            self.debug(&report);
            let value = aiws::canonical::to_value(&report).unwrap();
            self.write("findings", &value.to_string());
            self.debug(&praxis_model::plan::plan(&state, &[], 2000));
        }
    }
}
