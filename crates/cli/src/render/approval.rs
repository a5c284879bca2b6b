//! What a person sees before deciding: the plan with the exact action, and the result with its patch.
//! Invariant: what is approved is shown whole and never cut; text of an agent draws nothing by itself and is marked as quoted.
//! Called by whoever asks, at a terminal or over the socket.

use std::fmt::Write;

use aiws::decimal::Dec;
use aiws::json::Value;

use super::style::{Style, Tone};
use super::words::{count, short_commit, units};
use super::{commands, escape, patch};

/// A plan that waits for approval.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The run.
    pub run: &'a str,
    /// The repository's path.
    pub repository: &'a str,
    /// The commit that work starts from.
    pub base: &'a str,
    /// The task.
    pub task: &'a str,
    /// How many corrections may follow without another question.
    pub corrections: u32,
    /// What the whole run may cost, in units.
    pub budget: Dec,
    /// The plan's text, as the agent wrote it.
    pub plan: &'a str,
    /// The action that would run.
    pub action: &'a Value,
    /// The SHA-256 of its canonical bytes.
    pub fingerprint: &'a str,
}

aiws::veiled! { Plan<'a> { run repository base task corrections budget action fingerprint } plan; }

/// A result that waits for acceptance.
#[derive(Clone, Copy)]
pub struct Finished<'a> {
    /// The run.
    pub run: &'a str,
    /// The check that passed.
    pub check: &'a str,
    /// The patch.
    pub patch: &'a str,
    /// Its SHA-256.
    pub digest: &'a str,
}

aiws::veiled! { Finished<'a> { run check digest } patch; }

/// Most lines of a patch before the question; the rest is a command away.
pub const PATCH_LINES: usize = 200;

/// Text of an agent, marked line by line; long lines are folded, nothing is left out.
fn quoted(text: &str, style: Style) -> String {
    let mut shown = String::new();
    for line in escape::block(text).lines() {
        mark(&mut shown, line, Tone::Plain, style);
    }
    shown
}

/// A line of somebody else, marked as such: what a long one goes on with has a mark of its own, and poses as no line.
fn mark(text: &mut String, line: &str, tone: Tone, style: Style) {
    for (index, piece) in escape::fold(line, style.width.saturating_sub(4))
        .iter()
        .enumerate()
    {
        let bar = style.paint(Tone::Dim, if index == 0 { "|" } else { ":" });
        let line = format!("  {bar} {}", style.paint(tone, piece.trim_end()));
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// The plan, what would run, and what is allowed under it.
#[must_use]
pub fn plan_text(plan: &Plan<'_>, style: Style) -> String {
    let mut text = String::new();
    let head = format!("The plan of run {}", plan.run);
    let _ = writeln!(text, "\n{}\n", style.paint(Tone::Strong, &head));
    let _ = writeln!(text, "{}", quoted(plan.plan, style));
    let repository = escape::line(plan.repository);
    let sentence = format!(
        "If you approve, the agent runs in a private clone of {repository} at {} and may be asked for {} under this plan, within {} in all.",
        short_commit(&escape::line(plan.base)),
        count(plan.corrections as usize, "correction"),
        units(plan.budget),
    );
    for line in escape::wrap(&sentence, style.width.max(escape::width(&repository))) {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(
        text,
        "{}{}\n  fingerprint: {}\n",
        style.paint(Tone::Strong, "What is approved, and nothing else:"),
        pretty(plan.action, 0),
        style.paint(Tone::Wait, plan.fingerprint),
    );
    text
}

/// The patch that would be accepted, headed by what it changes.
#[must_use]
pub fn result_text(result: &Finished<'_>, style: Style) -> String {
    let mut text = String::new();
    let head = format!("The result of run {}", result.run);
    let _ = writeln!(text, "\n{}\n", style.paint(Tone::Strong, &head));
    let check = format!("`{}` passed.", escape::line(result.check));
    for line in escape::fold(&check, style.width) {
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.push('\n');
    let files = patch::stat(result.patch);
    if files.is_empty() {
        let _ = writeln!(text, "  | [the patch is empty: nothing changes]");
    } else {
        let _ = writeln!(text, "{}", patch::stat_text(&files, style));
    }
    let lines = patch::lines(result.patch);
    let bar = style.paint(Tone::Dim, "|");
    for (tone, line) in lines.iter().take(PATCH_LINES) {
        mark(&mut text, &shortened(line), *tone, style);
    }
    if lines.len() > PATCH_LINES {
        let more = patch::more(lines.len() - PATCH_LINES, "line");
        let all = commands::on_run("diff", result.run);
        let _ = writeln!(text, "  {bar} [{more}; all of it: {all}]");
    }
    let _ = writeln!(text, "\n  sha256 {}\n", result.digest);
    text
}

/// The names of two blobs are long and say nothing to a person; `diff` has them whole.
fn shortened(line: &str) -> String {
    let Some((old, rest)) = line
        .strip_prefix("index ")
        .and_then(|rest| rest.split_once(".."))
    else {
        return line.to_owned();
    };
    let (new, mode) = rest.split_once(' ').unwrap_or((rest, ""));
    format!("index {}..{} {mode}", short_commit(old), short_commit(new))
        .trim_end()
        .to_owned()
}

/// A JSON value for people, one line per member, escaped.
#[must_use]
pub fn pretty(value: &Value, indent: usize) -> String {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(members) if !members.is_empty() => {
            let lines: Vec<String> = members
                .iter()
                .map(|(key, value)| {
                    let key = escape::line(key);
                    format!("{pad}  {key}: {}", pretty(value, indent + 2))
                })
                .collect();
            format!("\n{}", lines.join("\n").replace(": \n", ":\n"))
        }
        Value::String(text) => escape::line(text),
        other => escape::line(&other.to_string()),
    }
}
