//! A report as Markdown.
//! Invariant: text from outside stands in code or is escaped, so that it is no markup, no link and no row of its own.
//! Called by the verb `report`.

use std::fmt::Write;

use super::{Report, Settled, proven};
use crate::render::program;
use crate::render::quoted;
use crate::render::text::{duration, units, utc};
use crate::render::words::{count, times};

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
        let _ = writeln!(text, "> {}", plain(line));
    }
    text.push('\n');
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "| {name} | {value} |");
    };
    row("what", "as recorded".to_owned());
    row("---", "---".to_owned());
    row("repository", code(&report.repository));
    row("base commit", code(&report.base));
    row("agent", code(&report.commands[0]));
    row("check", code(&report.commands[1]));
    row(
        "started",
        format!(
            "{} by {}",
            utc(report.started_ms),
            plain(&report.started_by)
        ),
    );
    let took = duration(report.last_ms.saturating_sub(report.started_ms));
    row(
        "last event",
        format!("{}, {took} later", utc(report.last_ms)),
    );
    row("spend", spend(report));
    let [made, allowed] = report.corrections;
    row("corrections", format!("{made} of at most {allowed}"));
    if report.epoch > 1 {
        row("owner", format!("taken over {}", times(report.epoch - 1)));
    }
    if let Some(cause) = &report.cause {
        row("cause", plain(cause));
    }
    for (name, digest) in [("plan", &report.plan), ("patch", &report.patch)] {
        if let Some(digest) = digest {
            row(name, format!("sha256 {}", code(digest)));
        }
    }
    match &report.branch {
        Some(branch) => row("branch", code(branch)),
        None => row("branch", "none".to_owned()),
    }
    row(
        "head",
        format!("revision {}, {}", report.head.0, code(&report.head.1)),
    );
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
    text.push_str("\n## Steps\n\n| node | outcome | what | tries | spent | took | ended |\n|---|---|---|---|---|---|---|\n");
    for step in &report.steps {
        let took = match step.time {
            (Some(start), Some(end)) if step.attempts > 0 => duration(end.saturating_sub(start)),
            _ => String::new(),
        };
        let tries = if step.attempts == 0 {
            String::new()
        } else {
            step.attempts.to_string()
        };
        let spent = if step.attempts == 0 {
            String::new()
        } else {
            step.spent.to_string()
        };
        let ended = step.time.1.map(utc).unwrap_or_default();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {tries} | {spent} | {took} | {ended} |",
            plain(&step.node),
            step.word,
            plain(&step.what)
        );
    }
}

fn checks(text: &mut String, report: &Report) {
    text.push_str("\n## Checks\n\n");
    if report.checks.is_empty() {
        text.push_str("None ran.\n");
        return;
    }
    text.push_str("| check | result | how it ended | output | when |\n|---|---|---|---|---|\n");
    for check in &report.checks {
        let result = if check.passed { "passed" } else { "failed" };
        let output = check
            .output
            .as_deref()
            .map(|digest| format!("sha256 {}", code(digest)))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "| {} | {result} | {} | {output} | {} |",
            plain(&check.node),
            plain(&check.ended),
            utc(check.at_ms)
        );
    }
}

fn decisions(text: &mut String, report: &Report) {
    text.push_str("\n## Decisions\n\n");
    if report.decisions.is_empty() {
        text.push_str("None was made.\n");
        return;
    }
    for decision in &report.decisions {
        let _ = writeln!(
            text,
            "- {}: **{}** ({}) {}.",
            utc(decision.at_ms),
            plain(&decision.actor),
            plain(&decision.kind),
            plain(&decision.what)
        );
        let _ = write!(
            text,
            "  Class {}: {}",
            code(&decision.class),
            decision.proven
        );
        if let Some(reference) = &decision.reference {
            let _ = write!(text, "; reference {}", code(reference));
        }
        evidence(text, &decision.evidence);
        let _ = writeln!(text, "; event {}.", decision.revision);
        for sentence in decision.proof.iter().flat_map(super::proof::sentences) {
            let _ = writeln!(text, "  {}.", plain(&sentence));
        }
    }
}

fn evidence(text: &mut String, evidence: &[String]) {
    for id in evidence {
        let _ = write!(text, "; evidence {}", code(id));
    }
}

fn holds(text: &mut String, report: &Report) {
    text.push_str("\n## Holds\n\n");
    if report.holds.is_empty() {
        text.push_str("None was placed.\n");
    }
    for hold in &report.holds {
        let (opened, by) = (utc(hold.opened_ms), plain(&hold.opened_by));
        let _ = write!(
            text,
            "- {} {}, placed {opened} by {by}; ",
            plain(&hold.reason),
            code(&hold.id)
        );
        let _ = match &hold.ended {
            Some((at_ms, actor, decision)) => {
                writeln!(
                    text,
                    "ended {} by {} ({}).",
                    utc(*at_ms),
                    plain(actor),
                    plain(decision)
                )
            }
            None => writeln!(text, "it stands, or ended with the run."),
        };
    }
}

fn uncertain(text: &mut String, report: &Report) {
    text.push_str("\n## Attempts of unknown outcome\n\n");
    if report.uncertain.is_empty() {
        text.push_str("None.\n");
    }
    for life in &report.uncertain {
        let (id, since) = (code(&life.attempt), utc(life.since_ms));
        let _ = write!(
            text,
            "- {id} of {}, started or in doubt since {since}; ",
            plain(&life.node)
        );
        match &life.settled {
            None => text.push_str("not settled.\n"),
            Some(settled) => settlement(text, settled),
        }
    }
}

fn settlement(text: &mut String, settled: &Settled) {
    let _ = write!(
        text,
        "settled {} by {} as {}. Class {}: {}",
        utc(settled.at_ms),
        plain(&settled.actor),
        plain(&settled.outcome),
        code(&settled.class),
        proven(&settled.class)
    );
    evidence(text, &settled.evidence);
    text.push_str(".\n");
}

fn verify(text: &mut String, report: &Report) {
    let praxis = program();
    text.push_str("\n## How to verify\n\n");
    let _ = writeln!(
        text,
        "This report is what {} recorded for the run; the record is checked with\n",
        count(
            usize::try_from(report.head.0).unwrap_or(usize::MAX),
            "event"
        )
    );
    let _ = writeln!(text, "    {praxis} verify");
    let _ = writeln!(
        text,
        "    {praxis} export audit.jsonl && python3 journal-format/verify.py audit.jsonl"
    );
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
        "\nThe last line of the log for this run has revision {} and hash {}.",
        report.head.0,
        code(&report.head.1)
    );
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

/// Text as code, in a table too.
fn code(text: &str) -> String {
    let longest = text
        .split(|char| char != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let text = text.replace('|', "\\|");
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
        assert_eq!(code("a `b` | c"), "`` a `b` \\| c ``");
        assert_eq!(code("sh x"), "`sh x`");
    }
}
