//! Pages as text for people.
//! Invariant: plain ASCII of our own, colour only at a terminal and never with NO_COLOR; a page fits the width it is given.
//! Called by the verbs.

use std::fmt::Write;

use aiws::record::HoldReason;
use praxis_model::run::NodeStatus;

use super::escape::clip;
use super::page::{Page, Standing};
use super::rows::Row;
pub use super::style::Style;
use super::style::Tone;
use super::words::times;
pub use super::words::{duration, short_commit, units, utc};

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
