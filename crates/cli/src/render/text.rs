//! Pages as text for people.
//! Invariant: plain ASCII of our own, colour only at a terminal and never with NO_COLOR; a page fits the width it is given.
//! Called by the verbs.

use std::fmt::Write;

use praxis_model::run::NodeStatus;

use super::commands;
use super::escape::{clip, wrap};
use super::page::{Page, Standing, Uncertain};
use super::rows::Row;
pub use super::style::Style;
use super::style::Tone;
use super::words::{age, times};
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
        let _ = write!(text, "\n{}", super::holds::block(&page.run, hold, style));
    }
    for attempt in &page.uncertain {
        uncertain(&mut text, page, attempt, style);
    }
    if let Some((node, lines)) = &page.failing {
        let _ = writeln!(text, "\nlast output of {node}");
        for line in lines {
            let _ = writeln!(text, "  | {}", clip(line, style.width.saturating_sub(4)));
        }
    }
    if let Some((what, path)) = &page.to_read {
        // Not cut to the width: it is there to be copied.
        let _ = writeln!(text, "\nread the {what}\n  {}", super::quoted(path));
    }
    next(&mut text, page, style);
    text
}

fn uncertain(text: &mut String, page: &Page, attempt: &Uncertain, style: Style) {
    let head = style.paint(Tone::Bad, "uncertain");
    let _ = writeln!(
        text,
        "\n{head} attempt {} of {}",
        attempt.short, attempt.node
    );
    let why = attempt.why.as_deref().unwrap_or("nobody saw how it ended");
    let reserved = units(attempt.reserved);
    let sentence = format!("{why}; {reserved} stay reserved until somebody settles it");
    for line in wrap(&sentence, style.width.saturating_sub(2)) {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "  {}", commands::on_run("unknown", &page.run));
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
    // A hold has said beside itself what may be typed.
    if page.next.is_empty() || page.standing == Standing::Held {
        return;
    }
    let _ = writeln!(text, "\n{}", style.paint(Tone::Dim, "next"));
    for command in &page.next {
        let _ = writeln!(text, "  {command}");
    }
}

pub(super) fn standing(standing: Standing, style: Style) -> String {
    style.paint(tone(standing), standing.word())
}

/// The colour of a standing.
#[must_use]
pub fn tone(standing: Standing) -> Tone {
    match standing {
        Standing::Accepted => Tone::Good,
        Standing::Going => Tone::Live,
        Standing::NeedsApproval | Standing::NeedsAcceptance => Tone::Wait,
        _ => Tone::Bad,
    }
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

/// Columns before a node's name, and those of the name.
const LEFT: usize = 12;
const NAME: usize = 13;

/// One node.
#[must_use]
pub fn line(row: &Row, style: Style) -> String {
    let tone = match row.word {
        _ if row.bad => Tone::Bad,
        "running" => Tone::Live,
        "waits" => Tone::Wait,
        "done" | "passed" => Tone::Good,
        _ => Tone::Dim,
    };
    let word = if row.word.is_empty() { "-" } else { row.word };
    let name = format!("{}{}", "  ".repeat(row.depth), row.id);
    let what = row.note.as_deref().unwrap_or(&row.title);
    let room = style.width.saturating_sub(LEFT);
    let facts = facts_of(row, room < 48);
    // What it is about gives way to what is known of it.
    let kept = match facts.is_empty() {
        true => room.saturating_sub(NAME),
        false => room.saturating_sub(NAME + 4 + super::escape::width(&facts)),
    };
    let mut rest = if kept < 6 && !facts.is_empty() {
        clip(&format!("{name:<NAME$}({facts})"), room)
    } else {
        let head = format!("{name:<NAME$}{}", clip(what, kept));
        match facts.is_empty() {
            true => head,
            false => format!("{head}  {}", style.paint(Tone::Dim, &format!("({facts})"))),
        }
    };
    if row.word.is_empty() {
        rest = style.paint(Tone::Dim, &super::style::unpainted(&rest));
    }
    format!(
        "  {}{}",
        style.paint(tone, &format!("{word:<10}")),
        rest.trim_end()
    )
}

/// What is known of a node beside what became of it; in narrow lines only what is needed most.
fn facts_of(row: &Row, narrow: bool) -> String {
    let mut facts = Vec::new();
    match (row.elapsed_ms, row.bound_ms) {
        (Some(elapsed), Some(bound)) if !narrow => {
            facts.push(format!("{} of at most {}", duration(elapsed), age(bound)))
        }
        (Some(elapsed), _) => facts.push(duration(elapsed)),
        _ => {}
    }
    if row.attempts > 1 {
        facts.push(match row.word {
            "running" => format!("attempt {}", row.attempts),
            _ => format!("{} attempts", row.attempts),
        });
    }
    if !row.spent.is_zero() {
        facts.push(units(row.spent));
    }
    if let Some(wait) = &row.waits {
        match wait.until_ms {
            Some(until_ms) if !narrow => facts.push(format!("until {}", utc(until_ms))),
            Some(_) => {}
            None => facts.push(wait.what.clone()),
        }
    }
    facts.join(", ")
}
