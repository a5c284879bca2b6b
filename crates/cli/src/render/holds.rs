//! Open holds: what stopped a run, what would clear it, and what may be typed about it.
//! Invariant: only decisions that a hold allows are offered.
//! Called by the verb `holds` and by the page of a run.

use std::fmt::Write;

use aiws::json::Value;

use super::escape::wrap;
use super::json;
use super::page::{HoldLine, Page, short};
use super::style::{Style, Tone};
use super::words::{count, utc};

/// The open holds of these runs.
#[must_use]
pub fn text(pages: &[Page], style: Style) -> String {
    let all = || {
        pages
            .iter()
            .flat_map(|page| page.holds.iter().map(move |hold| (page, hold)))
    };
    let number = all().count();
    if number == 0 {
        return "No hold stands.\n".to_owned();
    }
    let mut text = format!("{}\n", count(number, "open hold"));
    for (page, hold) in all() {
        let _ = write!(text, "\n{}", block(&page.run, hold, style));
        let task = super::escape::clip(&page.task, style.width.saturating_sub(10));
        let _ = writeln!(text, "  {} {task}", style.paint(Tone::Dim, "task   "));
    }
    text
}

/// One hold.
#[must_use]
pub fn block(run: &str, hold: &HoldLine, style: Style) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} {} {}",
        style.paint(Tone::Bad, "hold"),
        style.paint(Tone::Strong, &short(&hold.id)),
        hold.reason.name()
    );
    let mut fact = |name: &str, value: &str| {
        for (index, line) in wrap(value, style.width.saturating_sub(10))
            .iter()
            .enumerate()
        {
            let name = if index == 0 { name } else { "" };
            let name = style.paint(Tone::Dim, &format!("{name:<7}"));
            let _ = writeln!(text, "  {name} {line}");
        }
    };
    fact("run", run);
    fact("since", &utc(hold.opened_ms));
    fact("why", &hold.sentence);
    fact("clears", hold.clears);
    for (index, command) in hold.commands(run).iter().enumerate() {
        let name = style.paint(Tone::Dim, if index == 0 { "type   " } else { "  or   " });
        let _ = writeln!(text, "  {name} {command}");
    }
    text
}

/// The open holds of these runs, for programs.
#[must_use]
pub fn value(pages: &[Page]) -> Value {
    let holds: Vec<Value> = pages
        .iter()
        .flat_map(|page| page.holds.iter().map(move |hold| one(page, hold)))
        .collect();
    json::object("holds", aiws::object! { "holds": holds })
}

fn one(page: &Page, hold: &HoldLine) -> Value {
    let mut value = json::hold(hold, &page.run);
    if let Value::Object(members) = &mut value {
        members.insert("run".to_owned(), page.run.as_str().into());
        members.insert("task".to_owned(), page.task.as_str().into());
    }
    value
}
