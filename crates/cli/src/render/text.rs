//! Pages as text for people.
//! Invariant: plain ASCII of our own, colour only at a terminal and never with NO_COLOR; a page fits the width it is given.
//! Called by the verbs.

use std::fmt::Write;
use std::io::IsTerminal;

use aiws::record::HoldReason;
use praxis_model::run::NodeStatus;

use super::escape::clip;
use super::page::{Page, Standing};
use super::rows::Row;

/// How text is dressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether colours may be used.
    pub colour: bool,
    /// How many characters fit in a line.
    pub width: usize,
}

/// Colours, by what they mean.
#[derive(Clone, Copy, Debug)]
enum Tone {
    Good,
    Bad,
    Live,
    Dim,
    Strong,
}

impl Style {
    /// What fits a stream of this program: colours at a terminal unless NO_COLOR is set, the terminal's width.
    #[must_use]
    pub fn of(stream: &impl IsTerminal) -> Self {
        let terminal = stream.is_terminal();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let columns = if terminal { columns() } else { None };
        Self {
            colour: terminal && !no_colour && !dumb,
            width: columns.unwrap_or(100).clamp(40, 200),
        }
    }

    fn paint(self, tone: Tone, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Live => "36",
            Tone::Dim => "2",
            Tone::Strong => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// The page that people live on.
#[must_use]
pub fn page(page: &Page, style: Style) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}  {}",
        style.paint(Tone::Strong, &format!("run {}", page.run)),
        standing(page.standing, style)
    );
    facts(&mut text, page, style);
    text.push('\n');
    text.push_str(&tree(page, style));
    for hold in &page.holds {
        let _ = writeln!(
            text,
            "\n{} {}",
            style.paint(Tone::Bad, "hold"),
            hold.reason.name()
        );
        let _ = writeln!(text, "  {}", hold.sentence);
        let id = super::page::short(&hold.id);
        let _ = match hold.reason {
            // `unknown` shows how that one goes away.
            HoldReason::UncertainEffect => writeln!(text, "  id {id}"),
            _ => writeln!(
                text,
                "  no verb of this version lifts it: start another run; id {id}"
            ),
        };
    }
    for attempt in &page.uncertain {
        let _ = writeln!(
            text,
            "\n{} attempt {} of {}",
            style.paint(Tone::Bad, "uncertain"),
            attempt.short,
            attempt.node
        );
        let _ = writeln!(
            text,
            "  {}; {} stay reserved until somebody settles it",
            attempt.why.as_deref().unwrap_or("nobody saw how it ended"),
            units(attempt.reserved)
        );
    }
    if let Some((what, path)) = &page.to_read {
        // Not cut to the width: it is there to be copied.
        let _ = writeln!(text, "\nread the {what}\n  {}", super::quoted(path));
    }
    next(&mut text, page, style);
    text
}

fn facts(text: &mut String, page: &Page, style: Style) {
    let mut line = |name: &str, value: &str| {
        let value = clip(value, style.width.saturating_sub(10));
        let _ = writeln!(
            text,
            "  {} {value}",
            style.paint(Tone::Dim, &format!("{name:<7}"))
        );
    };
    line("task", &page.task);
    line(
        "repo",
        &format!("{} at {}", page.repository, short_commit(&page.base)),
    );
    line("spend", &spend(page));
    line(
        "time",
        &format!(
            "{} from {}",
            duration(page.last_ms.saturating_sub(page.started_ms)),
            utc(page.started_ms)
        ),
    );
    if page.epoch > 1 {
        line(
            "owner",
            &format!("epoch {}: taken over {}", page.epoch, times(page.epoch - 1)),
        );
    }
    line("head", &format!("revision {} {}", page.head.0, page.head.1));
    if let Some(cause) = &page.cause {
        line("cause", cause);
    }
    if let Some([_, patch]) = &page.accepted {
        line("patch", &format!("sha256 {patch}"));
    }
    match &page.branch {
        Some(branch) => line("branch", branch),
        None if page.standing == Standing::Accepted => line("branch", "not published yet"),
        None => {}
    }
}

fn spend(page: &Page) -> String {
    let mut text = format!("{} of {}", page.spend.spent, units(page.spend.bound));
    if !page.spend.reserved.is_zero() {
        let _ = write!(text, ", {} reserved", page.spend.reserved);
    }
    if !page.spend.overrun.is_zero() {
        let _ = write!(text, ", {} beyond the budget", page.spend.overrun);
    }
    text
}

fn next(text: &mut String, page: &Page, style: Style) {
    if page.next.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{}", style.paint(Tone::Dim, "next"));
    for command in &page.next {
        let _ = writeln!(text, "  {command}");
    }
}

fn standing(standing: Standing, style: Style) -> String {
    let tone = match standing {
        Standing::Accepted => Tone::Good,
        Standing::Going => Tone::Live,
        _ => Tone::Bad,
    };
    style.paint(tone, standing.word())
}

/// The nodes, one line each; what only carries a choice on is left out, and so is what was skipped together.
#[must_use]
pub fn tree(page: &Page, style: Style) -> String {
    let mut text = String::new();
    let mut skipped: Vec<&str> = Vec::new();
    for row in page.rows.iter().filter(|row| !row.plumbing) {
        if row.status == NodeStatus::Skipped {
            skipped.push(&row.id);
            continue;
        }
        text.push_str(&line(row, style));
        text.push('\n');
    }
    if !skipped.is_empty() {
        let names = format!("  skipped   {}", skipped.join(", "));
        let _ = writeln!(
            text,
            "{}",
            style.paint(Tone::Dim, &clip(&names, style.width))
        );
    }
    text
}

/// One node.
#[must_use]
pub fn line(row: &Row, style: Style) -> String {
    let tone = match row.word {
        _ if row.bad => Tone::Bad,
        "running" | "waits" => Tone::Live,
        "done" | "passed" => Tone::Good,
        _ => Tone::Dim,
    };
    let indent = "  ".repeat(row.depth);
    let word = if row.word.is_empty() { "-" } else { row.word };
    let mut rest = String::new();
    let name = format!("{indent}{}", row.id);
    let what = row.note.clone().unwrap_or_else(|| row.title.clone());
    let _ = write!(rest, "{name:<13}{what}");
    let mut facts = Vec::new();
    if let Some(elapsed_ms) = row.elapsed_ms {
        facts.push(duration(elapsed_ms));
    }
    if row.attempts > 1 {
        facts.push(format!("{} attempts", row.attempts));
    }
    if !row.spent.is_zero() {
        facts.push(units(row.spent));
    }
    if !facts.is_empty() {
        let _ = write!(rest, "  ({})", facts.join(", "));
    }
    let rest = clip(&rest, style.width.saturating_sub(12));
    let rest = if row.word.is_empty() {
        style.paint(Tone::Dim, &rest)
    } else {
        rest
    };
    format!("  {}{rest}", style.paint(tone, &format!("{word:<10}")))
}

/// An amount with its unit.
#[must_use]
pub fn units(amount: aiws::decimal::Dec) -> String {
    if amount == aiws::decimal::Dec::from_u64(1) {
        "1 unit".to_owned()
    } else {
        format!("{amount} units")
    }
}

fn times(count: u64) -> String {
    if count == 1 {
        "once".to_owned()
    } else {
        format!("{count} times")
    }
}

/// The beginning of a commit's name.
#[must_use]
pub fn short_commit(commit: &str) -> String {
    commit.chars().take(12).collect()
}

/// A duration in the largest two units that say something.
#[must_use]
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..=9 => format!("{seconds}.{} s", ms % 1_000 / 100),
        10..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// A time in UTC, to the second, such as `2026-11-30 18:00:00Z`.
#[must_use]
pub fn utc(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}Z",
        rest / 3_600,
        rest % 3_600 / 60,
        rest % 60
    )
}

/// The date of a day that is counted from 1970-01-01, in the Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(utc(0), "1970-01-01 00:00:00Z");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00Z");
        assert_eq!(utc(1_796_061_599_999), "2026-11-30 17:59:59Z");
        let durations: Vec<String> = [0, 1_250, 59_999, 61_000, 3_700_000].map(duration).to_vec();
        assert_eq!(
            durations,
            ["0.0 s", "1.2 s", "59 s", "1 min 1 s", "1 h 1 min"]
        );
    }
}
