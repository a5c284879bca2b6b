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
    let head = format!("run {}", page.run);
    let room = style.width.saturating_sub(super::escape::width(&head) + 2);
    let between = match super::escape::width(page.word()) > room {
        true => "\n",
        false => "  ",
    };
    let _ = write!(text, "{}{between}", style.paint(Tone::Strong, &head));
    let room = if between == "\n" { style.width } else { room };
    for line in wrap(page.word(), room) {
        let _ = writeln!(text, "{}", style.paint(tone(page.standing), &line));
    }
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
            let _ = writeln!(
                text,
                "  | {}",
                clip(line.trim_end(), style.width.saturating_sub(4))
            );
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
    let head = format!("attempt {} of {}", attempt.short, attempt.node);
    let head = clip(&head, style.width.saturating_sub(10));
    let _ = writeln!(text, "\n{} {head}", style.paint(Tone::Bad, "uncertain"));
    let why = attempt.why.as_deref().unwrap_or("nobody saw how it ended");
    let reserved = units(attempt.reserved);
    let sentence = format!("{why}; reserved until somebody settles it: {reserved}");
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
    let hash = |before: &str, hash: &str| match 10 + before.len() + hash.len() > style.width {
        true => format!(
            "{before}{}...",
            hash.chars()
                .take(if style.width < NARROW { 12 } else { 16 })
                .collect::<String>()
        ),
        false => format!("{before}{hash}"),
    };
    line(
        "head",
        &hash(&format!("revision {} ", page.head.0), &page.head.1),
    );
    if let Some(cause) = &page.cause {
        for (index, part) in wrap(cause, style.width.saturating_sub(10))
            .iter()
            .enumerate()
        {
            line(if index == 0 { "cause" } else { "" }, part);
        }
    }
    if let Some([_, patch]) = &page.accepted {
        line("patch", &hash("sha256 ", patch));
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

/// The nodes, one line each; what only carries a choice on is left out, and what was skipped or never ran stands together.
#[must_use]
pub fn tree(page: &Page, style: Style) -> String {
    let mut text = String::new();
    let ended = page.standing.has_ended();
    let (mut skipped, mut never): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for row in page.rows.iter().filter(|row| !row.plumbing) {
        match row.status {
            NodeStatus::Skipped => skipped.push(&row.id),
            NodeStatus::Pending if ended && row.word.is_empty() => never.push(&row.id),
            _ => {
                text.push_str(&line(row, style));
                text.push('\n');
            }
        }
    }
    for (word, names) in [("skipped", skipped), ("never ran", never)] {
        if !names.is_empty() {
            let indent = if style.width < NARROW { " " } else { "  " };
            let names = format!("{indent}{word:<10}{}", names.join(", "));
            let names = clip(&names, style.width);
            let _ = writeln!(text, "{}", style.paint(Tone::Dim, &names));
        }
    }
    text
}

/// Columns of a node's name.
const NAME: usize = 13;
/// Lines of fewer columns than this say only what is needed most.
const NARROW: usize = 60;

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
    let narrow = style.width < NARROW;
    let indent = if narrow { " " } else { "  " };
    let word = if row.word.is_empty() { "-" } else { row.word };
    let room = style.width.saturating_sub(indent.len() + 10);
    let rest = match row.word.is_empty() {
        true => style.paint(
            Tone::Dim,
            &rest(row, room, narrow, Style::plain(style.width)),
        ),
        false => rest(row, room, narrow, style),
    };
    format!(
        "{indent}{}{rest}",
        style.paint(tone, &format!("{word:<10}"))
    )
}

/// A node's name, what it does or what came of it, and what is known of it. What it does gives way to what is known.
fn rest(row: &Row, room: usize, narrow: bool, style: Style) -> String {
    let name = format!("{}{}", "  ".repeat(row.depth), row.id);
    let what = row.note.as_deref().unwrap_or(&row.title);
    let facts = facts_of(row, narrow);
    let room = room.saturating_sub(NAME);
    let kept = room.saturating_sub(4 + super::escape::width(&facts));
    let name = super::escape::fill(&name, NAME);
    // Why something went wrong is more than how long it took.
    let wrong = row.bad && row.note.is_some() && super::escape::width(what) > kept;
    if facts.is_empty() || wrong {
        return format!("{name}{}", clip(what, room)).trim_end().to_owned();
    }
    if kept < 6 {
        return format!("{name}{}", style.paint(Tone::Dim, &clip(&facts, room)));
    }
    let facts = style.paint(Tone::Dim, &format!("({facts})"));
    format!("{name}{}  {facts}", clip(what, kept))
}

/// What is known of a node beside what became of it.
fn facts_of(row: &Row, narrow: bool) -> String {
    let mut facts = Vec::new();
    match (row.elapsed_ms, row.bound_ms) {
        (Some(elapsed), _) if narrow => facts.push(age(elapsed)),
        (Some(elapsed), Some(bound)) => {
            facts.push(format!("{} of {}", duration(elapsed), age(bound)));
        }
        (Some(elapsed), None) => facts.push(duration(elapsed)),
        (None, _) => {}
    }
    if row.attempts > 1 {
        facts.push(match row.word {
            "running" => format!("try {}", row.attempts),
            _ => format!("{} tries", row.attempts),
        });
    }
    if !row.spent.is_zero() {
        facts.push(units(row.spent));
    }
    match &row.waits {
        // What blocked and uncertain nodes wait for is said below the tree.
        Some(wait) if row.word.is_empty() => facts.push(wait.what.clone()),
        Some(wait) if !narrow => {
            let day = wait.until_ms.map(utc);
            facts.extend(day.and_then(|day| Some(format!("until {}", day.split(' ').next()?))));
        }
        _ => {}
    }
    facts.join(", ")
}
