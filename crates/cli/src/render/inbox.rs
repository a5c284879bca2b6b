//! Everything that waits for a person, over all runs.
//! Invariant: oldest first; each item has the exact commands that settle it, and nothing is listed that no person can settle.
//! Called by the verb `inbox` and by the table of runs.

use std::fmt::Write;

use aiws::json::Value;
use aiws::record::HoldReason;

use super::commands;
use super::escape::clip;
use super::json;
use super::page::{Page, Standing, short};
use super::style::{Style, Tone};
use super::words::{age, count, utc};

/// What a person is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// To approve a plan.
    Approve,
    /// To accept a result.
    Accept,
    /// To find out what an attempt did.
    Settle,
    /// To lift a hold, or to cancel.
    Lift,
    /// To make way for a branch.
    Publish,
    /// To go on with what no engine has.
    Resume,
}

impl Kind {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Approve => "APPROVE",
            Self::Accept => "ACCEPT",
            Self::Settle => "SETTLE",
            Self::Lift => "LIFT",
            Self::Publish => "PUBLISH",
            Self::Resume => "RESUME",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Approve => "approve the plan",
            Self::Accept => "accept the result",
            Self::Settle => "settle what is unknown",
            Self::Lift => "a hold stands: lift it, begin again, or cancel",
            Self::Publish => "bring the result to its branch",
            Self::Resume => "go on with a run that no engine has",
        }
    }
}

/// Something that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What is asked for.
    pub kind: Kind,
    /// Since when, UTC milliseconds.
    pub since_ms: u64,
    /// The run.
    pub run: String,
    /// Its task's first line.
    pub task: String,
    /// Which of the run's things, in a few words: an attempt, a hold.
    pub about: Option<String>,
    /// The digest that a yes or a no is about, where one is asked for.
    pub digest: Option<String>,
    /// What to type, the most likely first.
    pub commands: Vec<String>,
}

/// What waits for a person in these runs.
#[must_use]
pub fn items(pages: &[Page]) -> Vec<Item> {
    let mut items: Vec<Item> = pages.iter().flat_map(of_page).collect();
    items.sort_by(|one, other| {
        let key = |item: &Item| (item.since_ms, item.run.clone(), item.kind);
        key(one)
            .cmp(&key(other))
            .then_with(|| one.about.cmp(&other.about))
    });
    items
}

fn of_page(page: &Page) -> Vec<Item> {
    let run = &page.run;
    let item = |kind: Kind, since_ms: u64, about: Option<String>, commands: Vec<String>| Item {
        kind,
        since_ms,
        run: run.clone(),
        task: page.task.clone(),
        about,
        digest: match kind {
            Kind::Approve | Kind::Accept => page.decides_on.clone(),
            _ => None,
        },
        commands,
    };
    let yes_or_no = || vec![commands::approve(run), commands::deny(run)];
    let mut items = Vec::new();
    match page.standing {
        Standing::NeedsApproval => {
            items.push(item(Kind::Approve, page.since_ms, None, yes_or_no()));
        }
        Standing::NeedsAcceptance => {
            let mut all = vec![commands::on_run("diff", run)];
            all.extend(yes_or_no());
            items.push(item(Kind::Accept, page.since_ms, None, all));
        }
        Standing::Accepted if page.branch.is_none() => {
            let resume = vec![commands::on_run("resume", run)];
            items.push(item(Kind::Publish, page.since_ms, None, resume));
        }
        Standing::Going if page.is_left() => {
            let resume = vec![commands::on_run("resume", run)];
            items.push(item(Kind::Resume, page.since_ms, None, resume));
        }
        _ => {}
    }
    for attempt in &page.uncertain {
        let about = format!("attempt {} of {}", attempt.short, attempt.node);
        let unknown = vec![commands::on_run("unknown", run)];
        items.push(item(Kind::Settle, attempt.since_ms, Some(about), unknown));
    }
    // A hold of an uncertain effect goes with its attempt, which is listed by itself.
    let settled_first =
        |reason| reason == HoldReason::UncertainEffect && !page.uncertain.is_empty();
    for hold in page.holds.iter().filter(|hold| !settled_first(hold.reason)) {
        let about = format!("{} {}", short(&hold.id), hold.reason.name());
        items.push(item(
            Kind::Lift,
            hold.opened_ms,
            Some(about),
            hold.commands(run),
        ));
    }
    items
}

/// The inbox as people read it.
#[must_use]
pub fn text(items: &[Item], style: Style, now_ms: u64) -> String {
    if items.is_empty() {
        return "Nothing waits for a person.\n".to_owned();
    }
    let one = if items.len() == 1 { "waits" } else { "wait" };
    let mut text = format!(
        "{} {one} for a person, oldest first\n",
        count(items.len(), "thing")
    );
    for (index, item) in items.iter().enumerate() {
        let since = age(now_ms.saturating_sub(item.since_ms));
        let about = item
            .about
            .as_ref()
            .map(|about| format!(": {about}"))
            .unwrap_or_default();
        let head = clip(
            &format!("{}{about}", item.kind.words()),
            style.width.saturating_sub(4),
        );
        let number = format!("{}.", index + 1);
        let _ = writeln!(text, "\n{number:<3} {}", style.paint(Tone::Strong, &head));
        let facts = format!("{}  for {since}, since {}", item.run, utc(item.since_ms));
        let facts = match super::escape::width(&facts) + 4 > style.width {
            true => format!("{}  for {since}", item.run),
            false => facts,
        };
        let _ = writeln!(
            text,
            "    {}",
            style.paint(Tone::Dim, &clip(&facts, style.width - 4))
        );
        let _ = writeln!(
            text,
            "    {}",
            clip(&item.task, style.width.saturating_sub(4))
        );
        for command in &item.commands {
            let _ = writeln!(text, "      {command}");
        }
    }
    text
}

/// The inbox for programs.
#[must_use]
pub fn value(items: &[Item]) -> Value {
    let one = |item: &Item| {
        aiws::object! {
            "asks": item.kind.name(),
            "sinceMs": item.since_ms.to_string(),
            "run": item.run.as_str(),
            "task": item.task.as_str(),
            "about": item.about.clone(),
            "digest": item.digest.clone(),
            "commands": item.commands.clone(),
        }
    };
    let items: Vec<Value> = items.iter().map(one).collect();
    json::object("inbox", aiws::object! { "items": items })
}
