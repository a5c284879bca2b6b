//! The run while it runs: redrawn in place at a terminal, one line per change elsewhere.
//! Invariant: it writes to the standard error alone, so that the standard output stays a program's.
//! Called by `runner` for every change that it sees.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};

use super::page::Page;
use super::text::{Style, duration, line, tree};

/// A view of live runs.
pub struct Live {
    style: Style,
    terminal: bool,
    quiet: bool,
    /// Lines that the last drawing took.
    drawn: usize,
    /// What was said about each node of each run.
    said: BTreeMap<(String, String), &'static str>,
}

impl Live {
    /// A view on the standard error; a quiet one shows nothing.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        let stream = std::io::stderr();
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let terminal = stream.is_terminal() && !dumb;
        Self {
            style: Style::of(&stream),
            terminal,
            quiet,
            drawn: 0,
            said: BTreeMap::new(),
        }
    }

    /// Whether it redraws in place, and so wants to be told now and then that time has passed.
    #[must_use]
    pub fn redraws(&self) -> bool {
        self.terminal && !self.quiet
    }

    /// Shows where the runs stand.
    pub fn show(&mut self, pages: &[Page], now_ms: u64) {
        if self.quiet {
            return;
        }
        if self.terminal {
            self.redraw(pages, now_ms)
        } else {
            self.changes(pages)
        }
    }

    /// Leaves what is drawn and goes on below it, for a question or a message.
    pub fn leave(&mut self) {
        self.drawn = 0;
    }

    /// Removes what is drawn, before a final page takes its place.
    pub fn clear(&mut self) {
        let text = self.erase();
        self.write(&text);
        self.drawn = 0;
    }

    fn redraw(&mut self, pages: &[Page], now_ms: u64) {
        let mut text = self.erase();
        let mut drawn = 0;
        for page in pages {
            let elapsed = duration(now_ms.saturating_sub(page.started_ms));
            let head = format!(
                "run {}  {}  {elapsed}  {} of {} units",
                page.run,
                page.standing.word(),
                page.spend.spent,
                page.spend.bound
            );
            let body = format!(
                "{}\n{}",
                super::escape::clip(&head, self.style.width),
                tree(page, self.style)
            );
            drawn += body.lines().count();
            text.push_str(&body);
        }
        self.drawn = drawn;
        self.write(&text);
    }

    fn erase(&self) -> String {
        if self.drawn == 0 {
            String::new()
        } else {
            format!("\u{1b}[{}A\u{1b}[J", self.drawn)
        }
    }

    fn changes(&mut self, pages: &[Page]) {
        let mut text = String::new();
        for page in pages {
            for row in page
                .rows
                .iter()
                .filter(|row| !row.plumbing && row.word != "skipped")
            {
                let key = (page.run.clone(), row.id.clone());
                // What runs without a process is over before anybody reads it.
                let fleeting = row.word == "running" && row.attempts == 0;
                if row.word.is_empty() || fleeting || self.said.get(&key) == Some(&row.word) {
                    continue;
                }
                self.said.insert(key, row.word);
                text.push_str(&format!("{}{}\n", page.run, line(row, self.style)));
            }
        }
        self.write(&text);
    }

    fn write(&self, text: &str) {
        if text.is_empty() || self.quiet {
            return;
        }
        // A closed standard error must not stop the work.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}
