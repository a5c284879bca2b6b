//! What is stored beside a decision about who made it, in sentences.
//! Invariant: it repeats what was recorded and concludes nothing from it.
//! Called by `report`.

use aiws::json::Value;

use crate::render::escape;

/// How many parents are named; the record has them all.
const NAMED: usize = 3;

/// Whether stored material is of this kind.
pub(super) fn is_one(value: &Value) -> bool {
    value.get("format").and_then(Value::as_str) == Some("praxis-decision")
}

/// The reason that was given, and who gave the decision as far as that was proven.
pub(super) fn sentences(value: &Value) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(reason) = text(value, "/reason") {
        sentences.push(format!("Reason: {reason}"));
    }
    let Some(pid) = number(value, "/proof/pid") else {
        return sentences;
    };
    let name = text(value, "/proof/name").unwrap_or_default();
    let mut proven = format!("Proven: process {pid} ({name})");
    if let Some(user) = text(value, "/proof/user") {
        proven.push_str(&format!(" of the login {user}"));
    }
    proven.push_str(&match text(value, "/proof/terminal/name") {
        Some(terminal) => format!(", at the terminal {terminal}"),
        None => ", without a terminal".to_owned(),
    });
    let parents: Vec<String> = value
        .pointer("/proof/ancestors")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|parent| text(parent, "/name"))
        .collect();
    if let Some((near, far)) = parents
        .split_at_checked(NAMED)
        .or(Some((&parents, &[])))
        .filter(|(near, _)| !near.is_empty())
    {
        proven.push_str(&format!(
            ", not started by the work; its parents: {}",
            near.join(", ")
        ));
        if !far.is_empty() {
            proven.push_str(&format!(" and {} more", far.len()));
        }
    }
    sentences.push(proven);
    sentences
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .map(escape::line)
}

fn number(value: &Value, pointer: &str) -> Option<String> {
    match value.pointer(pointer)? {
        Value::Int(number) => Some(number.to_string()),
        Value::String(text) => Some(escape::line(text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_proven_is_said_as_it_was_recorded() {
        let parents = vec![
            aiws::object! { "name": "bash", "pid": 2 },
            aiws::object! { "name": "systemd", "pid": 1 },
        ];
        let value = aiws::object! {
            "format": "praxis-decision",
            "reason": "too broad",
            "proof": aiws::object! {
                "pid": 4711, "name": "praxis", "user": "alice", "ancestors": parents,
                "terminal": aiws::object! { "name": "/dev/pts/3" },
            },
        };
        assert!(is_one(&value));
        assert_eq!(
            sentences(&value),
            [
                "Reason: too broad",
                "Proven: process 4711 (praxis) of the login alice, at the terminal /dev/pts/3, not started by the work; its parents: bash, systemd",
            ]
        );
        assert!(sentences(&aiws::object! { "format": "other" }).is_empty());
    }
}
