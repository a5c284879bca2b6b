//! Pages and errors as JSON for programs.
//! Invariant: every object has `version` 0 and a `kind`; members are only added while the version stays.
//! Called by the verbs when `--json` is given.

use aiws::error::Error;
use aiws::json::Value;
use aiws::object;

use super::page::Page;
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
        .map(|hold| {
            let allowed: Vec<Value> = hold.allowed.iter().map(|decision| Value::from(*decision)).collect();
            object! { "holdId": hold.id.as_str(), "reason": hold.reason, "meaning": hold.sentence.as_str(), "allowed": allowed }
        })
        .collect();
    let uncertain: Vec<Value> = page
        .uncertain
        .iter()
        .map(|attempt| {
            object! { "attemptId": attempt.attempt.as_str(), "node": attempt.node.as_str(), "reserved": attempt.reserved, "why": attempt.why.clone() }
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
        "spend": object! {
            "spent": page.spend.spent,
            "reserved": page.spend.reserved,
            "bound": page.spend.bound,
            "overrun": page.spend.overrun,
        },
        "epoch": page.epoch.to_string(),
        "head": object! { "revision": page.head.0.to_string(), "hash": page.head.1.as_str() },
        "nodes": page.rows.iter().map(row).collect::<Vec<Value>>(),
        "holds": holds,
        "uncertain": uncertain,
        "accepted": page.accepted.as_ref().map(|[plan, patch]| object! { "plan": plan.as_str(), "patch": patch.as_str() }),
        "branch": page.branch.clone(),
        "toRead": page.to_read.as_ref().map(|(what, path)| object! { "what": *what, "path": path.as_str() }),
        "next": page.next.clone(),
    };
    object("run", members)
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
    }
}
