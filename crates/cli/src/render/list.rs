//! The runs of a store as a table.
//! Invariant: newest first; a line fits the width, and what gives way first is the task.
//! Called by the verb `list`.

use std::fmt::Write;

use aiws::json::Value;

use super::escape::{clip, fill};
use super::json;
use super::page::{Page, Standing};
use super::style::{Style, Tone};
use super::text::tone;
use super::words::{age, count};

/// The columns of a width: their widths, 0 where one is left out. The task takes what is left.
struct Columns {
    run: usize,
    standing: usize,
    age: usize,
    spend: usize,
    waits: usize,
    task: usize,
}

/// Least columns of a task that still says something.
const TASK: usize = 12;

impl Columns {
    fn of(pages: &[Page], width: usize) -> Self {
        let widest = |text: &dyn Fn(&Page) -> String, least: usize| {
            pages
                .iter()
                .map(|page| super::escape::width(&text(page)))
                .max()
                .unwrap_or(0)
                .max(least)
        };
        let mut columns = Self {
            run: widest(&|page| page.run.clone(), 3).min(16),
            standing: widest(&|page| word_of(page).to_owned(), 8),
            age: 6,
            spend: widest(&spend, 5).min(14),
            waits: widest(&waits, 0).min(36),
            task: 0,
        };
        // What gives way, in this order, until a task can be read.
        for gone in 0..4 {
            columns.task = width.saturating_sub(columns.taken());
            if columns.task >= TASK {
                break;
            }
            match gone {
                0 if columns.waits > 20 => columns.waits = 20,
                1 => columns.waits = 0,
                2 => columns.age = 0,
                3 => columns.spend = 0,
                _ => {}
            }
        }
        columns.task = width.saturating_sub(columns.taken());
        columns
    }

    /// What the columns beside the task take, two blanks behind each.
    fn taken(&self) -> usize {
        let all = [self.run, self.standing, self.age, self.spend, self.waits];
        all.iter()
            .filter(|width| **width > 0)
            .map(|width| width + 2)
            .sum()
    }
}

/// The table of runs; `pages` in any order.
#[must_use]
pub fn text(pages: &[Page], style: Style, now_ms: u64) -> String {
    if pages.is_empty() {
        let program = super::program();
        return format!(
            "No run yet. Start one in a git repository:\n  {program} code --repo . --task TEXT --agent COMMAND --check COMMAND\n"
        );
    }
    let columns = Columns::of(pages, style.width);
    let heads = ["run", "standing", "age", "spend", "waits for", "task"];
    let mut text = format!(
        "{}\n",
        style.paint(
            Tone::Dim,
            &line(&columns, heads.map(str::to_owned), None, style)
        )
    );
    for page in newest_first(pages) {
        let cells = [
            page.run.clone(),
            word_of(page).to_owned(),
            age(now_ms.saturating_sub(page.started_ms)),
            spend(page),
            waits(page),
            page.task.clone(),
        ];
        let _ = writeln!(
            text,
            "{}",
            line(&columns, cells, Some(tone(page.standing)), style)
        );
    }
    let waiting = super::inbox::items(pages).len();
    if waiting > 0 {
        let one = if waiting == 1 { "waits" } else { "wait" };
        let what = count(waiting, "thing");
        let _ = writeln!(
            text,
            "\n{what} {one} for a person: {} inbox",
            super::program()
        );
    }
    text
}

fn line(columns: &Columns, cells: [String; 6], standing: Option<Tone>, style: Style) -> String {
    let widths = [
        columns.run,
        columns.standing,
        columns.age,
        columns.spend,
        columns.waits,
        columns.task,
    ];
    let mut line = String::new();
    for (index, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if width == 0 {
            continue;
        }
        let last = index == widths.len() - 1;
        let cell = if last {
            clip(cell, width)
        } else {
            fill(cell, width)
        };
        match standing.filter(|_| index == 1) {
            Some(tone) => line.push_str(&style.paint(tone, &cell)),
            None => line.push_str(&cell),
        }
        if !last {
            line.push_str("  ");
        }
    }
    line.trim_end().to_owned()
}

fn newest_first(pages: &[Page]) -> Vec<&Page> {
    let mut sorted: Vec<&Page> = pages.iter().collect();
    sorted.sort_by(|one, other| (other.started_ms, &other.run).cmp(&(one.started_ms, &one.run)));
    sorted
}

/// The standing in one word.
#[must_use]
pub fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Uncertain => "uncertain",
        Standing::NeedsApproval | Standing::NeedsAcceptance => "waits",
        Standing::Going => "running",
        other => other.word(),
    }
}

/// The standing of a page in one word.
#[must_use]
pub fn word_of(page: &Page) -> &'static str {
    match page.is_left() {
        true => "left",
        false => word(page.standing),
    }
}

fn spend(page: &Page) -> String {
    format!("{} of {}", page.spend.spent, page.spend.bound)
}

/// What a run waits for, in a few words; what runs, where something does.
fn waits(page: &Page) -> String {
    match page.standing {
        Standing::NeedsApproval => "approval".to_owned(),
        Standing::NeedsAcceptance => "acceptance".to_owned(),
        Standing::Uncertain => match page.uncertain.first() {
            Some(attempt) => format!("word on {}", attempt.node),
            None => String::new(),
        },
        Standing::Held => match page.holds.first() {
            Some(hold) => format!("hold {}", hold.reason.name()),
            None => String::new(),
        },
        Standing::Accepted if page.branch.is_none() => "its branch".to_owned(),
        Standing::Going => {
            let running = page
                .rows
                .iter()
                .find(|row| row.word == "running" && !row.plumbing);
            running.map_or_else(String::new, |row| row.id.clone())
        }
        Standing::Accepted | Standing::Ended(_) => String::new(),
    }
}

/// The runs for programs, newest first.
#[must_use]
pub fn value(pages: &[Page]) -> Value {
    let run = |page: &&Page| {
        aiws::object! {
            "run": page.run.as_str(),
            "task": page.task.as_str(),
            "repository": page.repository.as_str(),
            "standing": page.standing.name(),
            "startedAtMs": page.started_ms.to_string(),
            "lastAtMs": page.last_ms.to_string(),
            "sinceMs": page.since_ms.to_string(),
            "spend": json::spend(&page.spend),
            "waits": waits(page),
            "branch": page.branch.clone(),
            "next": page.next.clone(),
        }
    };
    let runs: Vec<Value> = newest_first(pages).iter().map(run).collect();
    json::object("list", aiws::object! { "runs": runs })
}
