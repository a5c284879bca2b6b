//! An agent run of unknown outcome: what there is to look at, and the choices.
//! Invariant: shows and decides nothing; both choices are always offered.
//! Called by the verb `unknown`.

use std::fmt::Write;

use aiws::json::Value;

use super::escape::{clip, wrap};
use super::page::short;
use super::program;
use super::style::{Style, Tone};
use crate::limits::LISTED_FILES;

/// An uncertain attempt with what there is to look at. Everything from outside is escaped.
#[derive(Clone, PartialEq, Eq)]
pub struct Finding {
    /// The run.
    pub run: String,
    /// The node.
    pub node: String,
    /// The attempt's id.
    pub attempt: String,
    /// What was started.
    pub command: String,
    /// The tree that it worked in.
    pub tree: String,
    /// The number of the command's process, and whether that is still there; none where its shim recorded none.
    pub process: Option<(i32, bool)>,
    /// What changed there, or why that cannot be told.
    pub changed: Result<Vec<String>, String>,
    /// The end of its output.
    pub output: Vec<String>,
    /// Why nobody knows, where that was recorded.
    pub why: Option<String>,
}

aiws::veiled! { Finding { run node attempt command tree process changed why } output; }

/// The finding as people read it.
#[must_use]
pub fn text(finding: &Finding, style: Style) -> String {
    let id = short(&finding.attempt);
    let head = format!("attempt {id} of {} in run {}", finding.node, finding.run);
    let mut text = format!("{}\n", style.paint(Tone::Strong, &clip(&head, style.width)));
    let fact = |name: &str, value: &str| {
        let name = style.paint(Tone::Dim, &format!("{name:<8}"));
        format!("  {name} {value}\n").replace(" \n", "\n")
    };
    // There to be copied, and so not cut.
    text.push_str(&fact("command", &finding.command));
    text.push_str(&fact("tree", &finding.tree));
    for (name, lines) in [("process", process(finding)), ("changed", changed(finding))] {
        for (index, line) in lines.iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            text.push_str(&fact(name, &clip(line, style.width.saturating_sub(11))));
        }
    }
    match finding.output.is_empty() {
        true => text.push_str(&fact("output", "none")),
        false => text.push_str(&fact("output", "its last lines")),
    }
    for line in &finding.output {
        let line = format!("    | {}", clip(line, style.width.saturating_sub(6)));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.push('\n');
    choices(&mut text, finding, &id, style);
    text
}

fn process(finding: &Finding) -> Vec<String> {
    match finding.process {
        Some((pid, true)) => vec![
            format!("{pid} runs still; this ends it:"),
            format!("kill -9 -- -{pid}"),
        ],
        Some((pid, false)) => vec![format!("{pid} is gone")],
        None => vec!["none was recorded".to_owned()],
    }
}

fn changed(finding: &Finding) -> Vec<String> {
    match &finding.changed {
        Ok(files) if files.is_empty() => vec!["nothing".to_owned()],
        Ok(files) => {
            let mut lines: Vec<String> = files.iter().take(LISTED_FILES).cloned().collect();
            if files.len() > LISTED_FILES {
                lines.push(format!("and {} files more", files.len() - LISTED_FILES));
            }
            lines
        }
        Err(why) => vec![format!("cannot be told: {why}")],
    }
}

fn choices(text: &mut String, finding: &Finding, id: &str, style: Style) {
    let why = finding
        .why
        .as_deref()
        .unwrap_or("The engine ended before it saw how this one ended");
    let advice = format!(
        "{why}. Look at the tree and at the agent's own records, make sure that it does not run any more, write what you found into a file, and choose."
    );
    for line in wrap(&advice, style.width.saturating_sub(2)) {
        let _ = writeln!(text, "  {line}");
    }
    let praxis = program();
    let mut choice = |what: &str, command: String| {
        let what = clip(what, style.width.saturating_sub(2));
        let _ = writeln!(
            text,
            "\n  {}\n    {command}",
            style.paint(Tone::Wait, &what)
        );
    };
    choice(
        "It did its work: the tree is its result.",
        format!("{praxis} reconcile {id} --applied --evidence FILE"),
    );
    choice(
        "It did nothing: it may be started again.",
        format!("{praxis} reconcile {id} --not-applied --evidence FILE"),
    );
    choice(
        "Then it goes on.",
        format!("{praxis} resume {}", finding.run),
    );
}

/// The finding for programs.
#[must_use]
pub fn value(finding: &Finding) -> Value {
    aiws::object! {
        "attemptId": finding.attempt.as_str(),
        "run": finding.run.as_str(),
        "node": finding.node.as_str(),
        "command": finding.command.as_str(),
        "tree": finding.tree.as_str(),
        "process": finding.process.map(|(pid, lives)| aiws::object! { "pid": pid, "lives": lives }),
        "changed": finding.changed.as_ref().ok().cloned(),
        "output": finding.output.clone(),
        "why": finding.why.clone(),
        "choices": vec!["--applied", "--not-applied"],
    }
}
