//! The run while it runs: redrawn in place at a terminal, one line per change elsewhere.
//! Invariant: it writes to the standard error alone, never wider or taller than the terminal, and hides no cursor.
//! Called by whoever watches runs, in the engine's process and at other terminals.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};

use super::escape::clip;
use super::page::{Page, Standing, short};
use super::style::{Style, Tone, clip_painted, painted_width, size};
use super::text::{line, tone, tree};
use super::words::{duration, units};

/// A run as it is drawn while it runs: a head with the standing, times and spend, the tree, and what it waits for.
#[must_use]
pub fn frame(page: &Page, style: Style, now_ms: u64) -> String {
    let moving = matches!(page.standing, Standing::Going);
    let until = if moving {
        now_ms
    } else {
        page.last_ms.max(page.since_ms)
    };
    let elapsed = duration(until.saturating_sub(page.started_ms));
    let mut spend = format!("{} of {}", page.spend.spent, units(page.spend.bound));
    if !page.spend.reserved.is_zero() {
        spend.push_str(&format!(" ({} reserved)", page.spend.reserved));
    }
    let word = super::list::word_of(page);
    let run = style.paint(Tone::Strong, &format!("run {}", page.run));
    let word = style.paint(tone(page.standing), word);
    let mut text = format!("{run}  {word}  {elapsed}  {spend}");
    if painted_width(&text) > style.width {
        let facts = clip(
            &format!("{elapsed}  {spend}"),
            style.width.saturating_sub(2),
        );
        text = format!("{run}  {word}\n  {facts}");
    }
    text.push('\n');
    let task = clip(&page.task, style.width.saturating_sub(2));
    text.push_str(&format!("  {}\n", style.paint(Tone::Dim, &task)));
    text.push_str(&tree(page, style));
    if let Some(wait) = waits(page, now_ms) {
        let wait = clip(&wait, style.width.saturating_sub(2));
        text.push_str(&format!("  {}\n", style.paint(tone(page.standing), &wait)));
    }
    text
}

/// What the run waits for and since when, in a line; none while it moves.
fn waits(page: &Page, now_ms: u64) -> Option<String> {
    let since_ms = now_ms.saturating_sub(page.since_ms);
    let what = match page.standing {
        Standing::NeedsApproval => "the approval of the plan".to_owned(),
        Standing::NeedsAcceptance => "the acceptance of the result".to_owned(),
        Standing::Uncertain => {
            let attempt = page.uncertain.first()?;
            format!(
                "somebody who finds out what attempt {} of {} did",
                attempt.short, attempt.node
            )
        }
        Standing::Held => {
            let hold = page.holds.first()?;
            format!(
                "the end of hold {} ({})",
                short(&hold.id),
                hold.reason.name()
            )
        }
        Standing::Going | Standing::Accepted | Standing::Ended(_) => return None,
    };
    // It has only just begun to wait.
    if since_ms < 1_000 {
        return Some(format!("waits for {what}"));
    }
    Some(format!("waits for {what}, for {}", duration(since_ms)))
}

/// What was said of each node of each run, for views that say each change once.
#[derive(Debug, Default)]
pub struct Changes(BTreeMap<(String, String), &'static str>);

impl Changes {
    /// A line for every node of the page whose word is another one than when this was last asked.
    pub fn of(&mut self, page: &Page, style: Style) -> String {
        let mut text = String::new();
        for row in page
            .rows
            .iter()
            .filter(|row| !row.plumbing && row.word != "skipped")
        {
            let key = (page.run.clone(), row.id.clone());
            // What runs without a process is over before anybody reads it.
            let fleeting = row.word == "running" && row.attempts == 0;
            if row.word.is_empty() || fleeting || self.0.get(&key) == Some(&row.word) {
                continue;
            }
            self.0.insert(key, row.word);
            let room = Style {
                width: style.width.saturating_sub(page.run.len()),
                ..style
            };
            text.push_str(&format!("{}{}\n", page.run, line(row, room)));
        }
        text
    }
}

/// A view of live runs.
pub struct Live {
    terminal: bool,
    quiet: bool,
    /// The columns that each line of the last drawing took.
    drawn: Vec<usize>,
    said: Changes,
}

/// The terminal when it does not say how large it is.
const UNKNOWN: [usize; 2] = [80, 24];

impl Live {
    /// A view on the standard error; a quiet one shows nothing.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            terminal: std::io::stderr().is_terminal() && !dumb,
            quiet,
            drawn: Vec::new(),
            said: Changes::default(),
        }
    }

    /// Whether it redraws in place, and so wants to be told now and then that time has passed.
    #[must_use]
    pub fn redraws(&self) -> bool {
        self.terminal && !self.quiet
    }

    /// How frames for this view are dressed now: the terminal may have another size than before.
    #[must_use]
    pub fn style(&self) -> Style {
        Style::of(&std::io::stderr())
    }

    /// Shows where the runs stand.
    pub fn show(&mut self, pages: &[Page], now_ms: u64) {
        if self.quiet {
            return;
        }
        let style = self.style();
        if self.terminal {
            let frames: Vec<String> = pages
                .iter()
                .map(|page| frame(page, style, now_ms))
                .collect();
            self.draw(&frames.join("\n"));
        } else {
            let text: String = pages.iter().map(|page| self.said.of(page, style)).collect();
            self.write(&text);
        }
    }

    /// Draws a frame that was made elsewhere over the last one; without a terminal it is for nobody.
    pub fn draw(&mut self, frame: &str) {
        if !self.redraws() {
            return;
        }
        let size = size(&std::io::stderr()).unwrap_or(UNKNOWN);
        let (text, drawn) = drawing(frame, &self.drawn, size);
        self.drawn = drawn;
        self.write(&text);
    }

    /// Leaves what is drawn and goes on below it, for a question or a message.
    pub fn leave(&mut self) {
        self.drawn.clear();
    }

    /// Removes what is drawn, before a final page takes its place.
    pub fn clear(&mut self) {
        let [columns, rows] = size(&std::io::stderr()).unwrap_or(UNKNOWN);
        let text = match up(&self.drawn, [columns, rows]) {
            0 => String::new(),
            up => format!("\u{1b}[{up}A\r\u{1b}[J"),
        };
        self.write(&text);
        self.drawn.clear();
    }

    fn write(&self, text: &str) {
        if text.is_empty() || self.quiet {
            return;
        }
        // A closed standard error must not stop the work.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

/// How many rows the last drawing takes now: a terminal that became narrower has wrapped its lines.
fn up(drawn: &[usize], [columns, rows]: [usize; 2]) -> usize {
    let taken = drawn.iter().map(|width| width.div_ceil(columns).max(1));
    taken.sum::<usize>().min(rows.saturating_sub(1))
}

/// The bytes that draw a frame over the last one, and the columns of its lines. Where the frame is taller than the
/// terminal its end is kept, under a line that says so; the cursor ends below the frame.
fn drawing(frame: &str, before: &[usize], [columns, rows]: [usize; 2]) -> (String, Vec<usize>) {
    let all: Vec<String> = frame
        .lines()
        .map(|line| clip_painted(line, columns))
        .collect();
    let room = rows.saturating_sub(1).max(1);
    let mut lines: Vec<String> = Vec::new();
    if all.len() > room {
        let hidden = all.len() - room + 1;
        let said = format!("  ... {hidden} lines above");
        lines.push(clip(&said, columns));
        lines.extend(all.iter().skip(hidden).cloned());
        lines.truncate(room);
    } else {
        lines = all;
    }
    let mut text = match up(before, [columns, rows]) {
        0 => String::new(),
        up => format!("\u{1b}[{up}A\r"),
    };
    for line in &lines {
        // Erased before it is written: afterwards a full line would lose its last character.
        text.push_str(&format!("\u{1b}[K{line}\r\n"));
    }
    text.push_str("\u{1b}[J");
    (text, lines.iter().map(|line| painted_width(line)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_goes_over_the_last_one() {
        let (first, drawn) = drawing("one\ntwo", &[], [80, 24]);
        assert_eq!(first, "\u{1b}[Kone\r\n\u{1b}[Ktwo\r\n\u{1b}[J");
        assert_eq!(drawn, [3, 3]);
        let (second, _) = drawing("one", &drawn, [80, 24]);
        assert_eq!(second, "\u{1b}[2A\r\u{1b}[Kone\r\n\u{1b}[J");
    }

    #[test]
    fn a_terminal_that_became_narrower_has_wrapped_lines() {
        assert_eq!(up(&[60, 10], [80, 24]), 2);
        assert_eq!(up(&[60, 0], [40, 24]), 3);
        assert_eq!(up(&[60; 40], [40, 24]), 23);
    }

    #[test]
    fn a_frame_that_is_too_tall_keeps_its_end() {
        let frame: Vec<String> = (0..10).map(|line| format!("line {line}")).collect();
        let (text, drawn) = drawing(&frame.join("\n"), &[], [40, 4]);
        assert_eq!(drawn.len(), 3);
        assert!(text.contains("  ... 8 lines above\r\n"), "{text}");
        assert!(text.ends_with("\u{1b}[Kline 9\r\n\u{1b}[J"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let (_, drawn) = drawing(&"x".repeat(500), &[], [40, 24]);
        assert_eq!(drawn, [40]);
    }
}
