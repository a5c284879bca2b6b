//! Pages and errors as JSON for programs.
//! Invariant: every object has `version` 0 and a `kind`; members are only added while the version stays.
//! Called by the verbs when `--json` is given.

use aiws::error::Error;
use aiws::json::Value;
use aiws::object;

use super::page::{HoldLine, Page, Spend};
use super::rows::Row;
use crate::exit::Exit;

/// The version of every object.
pub const VERSION: u32 = 0;

/// An object of this kind with its members.
#[must_use]
pub fn object(kind: &str, members: Value) -> Value {
    let mut all = aiws::json::Object::new();
    if let Value::Object(members) = members {
        all = members;
    }
    all.insert("version".to_owned(), VERSION.into());
    all.insert("kind".to_owned(), kind.into());
    Value::Object(all)
}

/// An error with the exit that goes with it.
#[must_use]
pub fn error(error: &Error, exit: Exit) -> Value {
    let members = object! {
        "error": error.to_value(),
        "remedy": error.code().remedy(),
        "exit": exit as i32,
    };
    object("error", members)
}

/// A run's page.
#[must_use]
pub fn page(page: &Page) -> Value {
    let holds: Vec<Value> = page
        .holds
        .iter()
        .map(|line| hold(line, &page.run))
        .collect();
    let uncertain: Vec<Value> = page
        .uncertain
        .iter()
        .map(|attempt| {
            object! { "attemptId": attempt.attempt.as_str(), "node": attempt.node.as_str(), "reserved": attempt.reserved, "why": attempt.why.clone(), "sinceMs": attempt.since_ms.to_string() }
        })
        .collect();
    let members = object! {
        "run": page.run.as_str(),
        "task": page.task.as_str(),
        "repository": page.repository.as_str(),
        "baseCommit": page.base.as_str(),
        "standing": page.standing.name(),
        "exit": page.standing.exit() as i32,
        "cause": page.cause.clone(),
        "startedAtMs": page.started_ms.to_string(),
        "lastAtMs": page.last_ms.to_string(),
        "sinceMs": page.since_ms.to_string(),
        "deadlineMs": page.deadline_ms.to_string(),
        "spend": spend(&page.spend),
        "epoch": page.epoch.to_string(),
        "head": object! { "revision": page.head.0.to_string(), "hash": page.head.1.as_str() },
        "nodes": page.rows.iter().map(row).collect::<Vec<Value>>(),
        "holds": holds,
        "uncertain": uncertain,
        "accepted": page.accepted.as_ref().map(|[plan, patch]| object! { "plan": plan.as_str(), "patch": patch.as_str() }),
        "branch": page.branch.clone(),
        "driven": page.driven,
        "digest": page.decides_on.clone(),
        "toRead": page.to_read.as_ref().map(|(what, path)| object! { "what": *what, "path": path.as_str() }),
        "failingStep": page.failing.as_ref().map(|(node, lines)| object! { "node": node.as_str(), "lines": lines.clone() }),
        "next": page.next.clone(),
    };
    object("run", members)
}

/// An account.
#[must_use]
pub fn spend(spend: &Spend) -> Value {
    object! {
        "spent": spend.spent,
        "reserved": spend.reserved,
        "bound": spend.bound,
        "overrun": spend.overrun,
    }
}

/// An open hold of a run.
#[must_use]
pub fn hold(hold: &HoldLine, run: &str) -> Value {
    let allowed: Vec<Value> = hold
        .allowed
        .iter()
        .map(|decision| Value::from(*decision))
        .collect();
    let mut value = object! {
        "holdId": hold.id.as_str(),
        "reason": hold.reason,
        "meaning": hold.sentence.as_str(),
        "clears": hold.clears,
        "allowed": allowed,
        "openedAtMs": hold.opened_ms.to_string(),
        "commands": hold.commands(run),
    };
    if let Value::Object(members) = &mut value
        && !hold.nodes.is_empty()
    {
        members.insert("nodes".to_owned(), hold.nodes.clone().into());
    }
    value
}

fn row(row: &Row) -> Value {
    let status = aiws::canonical::to_value(&row.status).unwrap_or_default();
    object! {
        "id": row.id.as_str(),
        "status": status,
        "word": row.word,
        "attempts": row.attempts.to_string(),
        "spent": row.spent,
        "startedAtMs": row.time.0.map(|at_ms| at_ms.to_string()),
        "endedAtMs": row.time.1.map(|at_ms| at_ms.to_string()),
        "note": row.note.clone(),
        "elapsedMs": row.elapsed_ms.map(|elapsed_ms| elapsed_ms.to_string()),
        "boundMs": row.bound_ms.map(|bound_ms| bound_ms.to_string()),
        "waits": row.waits.as_ref().map(|wait| object! {
            "what": wait.what.as_str(),
            "untilMs": wait.until_ms.map(|until_ms| until_ms.to_string()),
        }),
    }
}
