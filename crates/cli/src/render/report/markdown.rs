//! A report as Markdown.
//! Invariant: text from outside stands in code or is escaped, so that it is no markup, no link and no row of its own.
//! Called by the verb `report`.

use std::fmt::Write;

use aiws::json::Value;

use super::{Report, Settled, proven};
use crate::render::escape::{fill, width, wrap_whole};
use crate::render::program;
use crate::render::quoted;
use crate::render::text::{duration, units, utc};
use crate::render::words::{count, times};

/// The widest line of prose.
const WIDTH: usize = 78;

/// The report.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut text = format!(
        "# Run {}: {}\n\n",
        plain(&report.run),
        plain(report.standing[1])
    );
    facts(&mut text, report);
    steps(&mut text, report);
    checks(&mut text, report);
    decisions(&mut text, report);
    holds(&mut text, report);
    uncertain(&mut text, report);
    verify(&mut text, report);
    text
}

fn facts(text: &mut String, report: &Report) {
    for line in report.task.lines() {
        let line = format!("> {}", plain(line));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.push('\n');
    let mut item = |name: &str, value: String| {
        let _ = writeln!(text, "- {name}: {value}");
    };
    item("repository", code(&report.repository));
    item("base commit", code(&report.base));
    item("agent", code(&report.commands[0]));
    item("check", code(&report.commands[1]));
    item(
        "started",
        format!(
            "{} by {}",
            utc(report.started_ms),
            plain(&report.started_by)
        ),
    );
    let took = duration(report.last_ms.saturating_sub(report.started_ms));
    item(
        "last event",
        format!("{}, {took} later", utc(report.last_ms)),
    );
    item("spend", spend(report));
    let [made, allowed] = report.corrections;
    item("corrections", format!("{made} of at most {allowed}"));
    if report.epoch > 1 {
        item("owner", format!("taken over {}", times(report.epoch - 1)));
    }
    if let Some(cause) = &report.cause {
        item("cause", plain(cause));
    }
    match &report.branch {
        Some(branch) => item("branch", code(branch)),
        None => item("branch", "none".to_owned()),
    }
    for (name, digest) in [("plan", &report.plan), ("patch", &report.patch)] {
        if let Some(digest) = digest {
            item(name, code(digest));
        }
    }
    text.push_str("\nDigests are SHA-256; times are UTC.\n");
}

fn spend(report: &Report) -> String {
    let mut text = format!("{} of {}", report.spend.spent, units(report.spend.bound));
    if !report.spend.reserved.is_zero() {
        let _ = write!(text, ", {} reserved", report.spend.reserved);
    }
    if !report.spend.overrun.is_zero() {
        let _ = write!(text, ", {} beyond the budget", report.spend.overrun);
    }
    text
}

fn steps(text: &mut String, report: &Report) {
    text.push_str("\n## Steps\n\n");
    let head = ["node", "outcome", "tries", "spent", "took", "what"].map(str::to_owned);
    let mut rows = vec![head];
    for step in &report.steps {
        let ran = step.attempts > 0;
        let took = match step.time {
            (Some(start), Some(end)) if ran => duration(end.saturating_sub(start)),
            _ => String::new(),
        };
        let shown = |value: String| if ran { value } else { String::new() };
        rows.push([
            plain(&step.node),
            step.word.to_owned(),
            shown(step.attempts.to_string()),
            shown(step.spent.to_string()),
            took,
            plain(&step.what),
        ]);
    }
    table(text, &rows);
}

/// A table whose columns are aligned, so that it can be read as it stands.
fn table(text: &mut String, rows: &[[String; 6]]) {
    let widest = |column: usize| {
        rows.iter()
            .map(|row| width(&row[column]))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..6).map(widest).collect();
    for (number, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| fill(cell, *width))
            .collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
        if number == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
            let _ = writeln!(text, "|{}|", rule.join("|"));
        }
    }
}

fn checks(text: &mut String, report: &Report) {
    text.push_str("\n## Checks\n\n");
    if report.checks.is_empty() {
        text.push_str("None ran.\n");
    }
    for check in &report.checks {
        let result = if check.passed { "passed" } else { "failed" };
        let (node, ended, at) = (plain(&check.node), plain(&check.ended), utc(check.at_ms));
        item(text, &format!("{at}: **{node}** {result}: {ended}."));
        if let Some(output) = &check.output {
            let _ = writeln!(text, "  Output {}", digest(output));
        }
    }
}

fn decisions(text: &mut String, report: &Report) {
    text.push_str("\n## Decisions\n\n");
    if report.decisions.is_empty() {
        text.push_str("None was made.\n");
    }
    for decision in &report.decisions {
        let (at, actor, what) = (
            utc(decision.at_ms),
            plain(&decision.actor),
            plain(&decision.what),
        );
        item(text, &format!("{at}: **{actor}** {what}."));
        if let Some(about) = &decision.about {
            let _ = writeln!(text, "  {}", digest(about));
        }
        said(text, decision.proof.as_ref());
        let (class, kind) = (code(&decision.class), plain(&decision.kind));
        more(
            text,
            &format!(
                "Class {class} of {kind}: {}. Event {}.",
                decision.proven, decision.revision
            ),
        );
        if let Some(reference) = &decision.reference {
            let _ = writeln!(text, "  Record {}", digest(reference));
        }
        evidence(text, &decision.evidence);
    }
}

fn evidence(text: &mut String, evidence: &[String]) {
    for id in evidence {
        let _ = writeln!(text, "  Evidence {}", digest(id));
    }
}

fn holds(text: &mut String, report: &Report) {
    text.push_str("\n## Holds\n\n");
    if report.holds.is_empty() {
        text.push_str("None was placed.\n");
    }
    for hold in &report.holds {
        let (opened, by, reason) = (
            utc(hold.opened_ms),
            plain(&hold.opened_by),
            plain(&hold.reason),
        );
        item(text, &format!("{opened}: **{reason}**, placed by {by}."));
        let _ = writeln!(text, "  {}", digest(&hold.id));
        match &hold.ended {
            Some((at_ms, actor, decision)) => {
                let (at, actor, decision) = (utc(*at_ms), plain(actor), plain(decision));
                more(text, &format!("Ended {at} by {actor} ({decision})."));
            }
            None => more(text, "It stands, or ended with the run."),
        }
    }
}

fn uncertain(text: &mut String, report: &Report) {
    text.push_str("\n## Attempts of unknown outcome\n\n");
    if report.uncertain.is_empty() {
        text.push_str("None.\n");
    }
    for life in &report.uncertain {
        item(
            text,
            &format!(
                "{}: an attempt of **{}**.",
                utc(life.since_ms),
                plain(&life.node)
            ),
        );
        let _ = writeln!(text, "  {}", digest(&life.attempt));
        match &life.settled {
            None => more(text, "Not settled."),
            Some(settled) => settlement(text, settled),
        }
    }
}

fn settlement(text: &mut String, settled: &Settled) {
    let (at, actor) = (utc(settled.at_ms), plain(&settled.actor));
    let outcome = plain(&settled.outcome);
    more(text, &format!("Settled {at} by **{actor}** as {outcome}."));
    said(text, settled.proof.as_ref());
    let (class, proven, event) = (
        code(&settled.class),
        proven(&settled.class),
        settled.revision,
    );
    more(text, &format!("Class {class}: {proven}. Event {event}."));
    evidence(text, &settled.evidence);
}

/// What is stored beside a decision.
fn said(text: &mut String, proof: Option<&Value>) {
    for sentence in proof.into_iter().flat_map(super::proof::sentences) {
        more(text, &format!("{}.", plain(&sentence)));
    }
}

fn verify(text: &mut String, report: &Report) {
    let praxis = program();
    text.push_str("\n## How to verify\n\n");
    let _ = writeln!(text, "    {praxis} verify");
    let _ = writeln!(text, "    {praxis} export audit.jsonl");
    let _ = writeln!(text, "    python3 journal-format/verify.py audit.jsonl");
    let _ = writeln!(text, "    {praxis} log {}", report.run);
    if let Some(branch) = &report.branch {
        let _ = writeln!(
            text,
            "    git -C {} show {branch}",
            quoted(&report.repository)
        );
    }
    let _ = writeln!(
        text,
        "\nThe record is that of {}; the hash of the last one is\n{}.",
        count(
            usize::try_from(report.head.0).unwrap_or(usize::MAX),
            "event"
        ),
        code(&report.head.1)
    );
}

/// The first paragraph of an item of a list.
fn item(text: &mut String, sentence: &str) {
    for (index, line) in wrap_whole(sentence, WIDTH).iter().enumerate() {
        let begin = if index == 0 { "- " } else { "  " };
        let _ = writeln!(text, "{begin}{}", unmarked(line));
    }
}

/// What an item goes on with.
fn more(text: &mut String, sentence: &str) {
    for line in wrap_whole(sentence, WIDTH) {
        let _ = writeln!(text, "  {}", unmarked(&line));
    }
}

/// A line whose beginning is no mark of a list, a heading or a quotation.
fn unmarked(line: &str) -> String {
    let digits = line.trim_start_matches(|char: char| char.is_ascii_digit());
    if digits.len() < line.len() && digits.starts_with(['.', ')']) {
        let at = line.len() - digits.len();
        return format!("{}\\{digits}", &line[..at]);
    }
    match line.starts_with(['-', '+', '=']) {
        true => format!("\\{line}"),
        false => line.to_owned(),
    }
}

/// A digest without the word before it.
fn digest(id: &str) -> String {
    code(id.strip_prefix("sha256:").unwrap_or(id))
}

/// Text that is no markup.
fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        if "\\`*_{}[]<>#|~&".contains(char) {
            shown.push('\\');
        }
        shown.push(char);
    }
    shown
}

/// Text as code.
fn code(text: &str) -> String {
    let longest = text
        .split(|char| char != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    if longest > 0 {
        format!("{fence} {text} {fence}")
    } else {
        format!("{fence}{text}{fence}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_is_no_markup() {
        assert_eq!(plain("a [b](c) <i> | d"), "a \\[b\\](c) \\<i\\> \\| d");
        assert_eq!(code("a `b` | c"), "`` a `b` | c ``");
        assert_eq!(unmarked("12. a"), "12\\. a");
        assert_eq!(unmarked("- a"), "\\- a");
        assert_eq!(unmarked("a - b"), "a - b");
        assert_eq!(code("sh x"), "`sh x`");
    }
}
