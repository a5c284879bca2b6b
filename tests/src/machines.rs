//! The state machines as documents show them: a picture and a table, from the model's tables of moves.
//! Invariant: every state and every move of a table is in both; a state without a place fails.
//! `tidy::handoff` writes docs/HANDOFF.md and docs/handoff with it.

use std::fmt::Write as _;

use praxis_model::command::CommandType;
use praxis_model::moves::{self, Move};
use serde::Serialize;

pub mod draw;

/// A state machine by names.
pub struct Machine {
    /// Its name, also of its picture's file.
    pub name: &'static str,
    /// From (none where it begins), to, and the commands that make the move.
    pub moves: Vec<(Option<String>, String, Vec<&'static str>)>,
}

fn named(state: &impl Serialize) -> String {
    let value = aiws::canonical::to_value(state).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

impl Machine {
    fn of<S: Serialize>(name: &'static str, tables: &[&[Move<S>]]) -> Machine {
        let all = tables.iter().flat_map(|table| table.iter());
        let moves = all.map(|one| {
            let by = one.by.iter().map(|kind| kind.name()).collect();
            (one.from.as_ref().map(named), named(&one.to), by)
        });
        Machine {
            name,
            moves: moves.collect(),
        }
    }

    /// The states, in the order in which the table names them.
    pub fn states(&self) -> Vec<&str> {
        let mut states = Vec::new();
        for (from, to, _) in &self.moves {
            for state in from.iter().chain([to]) {
                if !states.contains(&state.as_str()) {
                    states.push(state);
                }
            }
        }
        states
    }

    /// Whether nothing leaves a state.
    pub fn is_final(&self, state: &str) -> bool {
        !self
            .moves
            .iter()
            .any(|(from, ..)| from.as_deref() == Some(state))
    }

    /// The picture, and the moves as a table.
    pub fn block(&self) -> String {
        let mut out = format!("![{0}](handoff/{0}.svg)\n\n", self.name);
        out.push_str("| from | to | by |\n|---|---|---|\n");
        for (from, to, by) in &self.moves {
            let from = from
                .as_ref()
                .map_or("-".to_owned(), |from| format!("`{from}`"));
            let by: Vec<String> = match by.is_empty() {
                true => vec![made(by).join("")],
                false => by.iter().map(|name| format!("`{name}`")).collect(),
            };
            // Writing to a String cannot fail.
            let _ = writeln!(out, "| {from} | `{to}` | {} |", by.join(", "));
        }
        out
    }
}

/// The commands of a move; a move that none makes says so.
pub fn made<'a>(by: &[&'a str]) -> Vec<&'a str> {
    match by.is_empty() {
        true => vec!["no command yet"],
        false => by.to_vec(),
    }
}

/// All state machines of a run.
pub fn all() -> Vec<Machine> {
    vec![
        Machine::of("delivery", &[moves::DELIVERY]),
        Machine::of("hold", &[moves::HOLD]),
        Machine::of("lifecycle", &[moves::LIFECYCLE]),
        Machine::of("node", &[moves::NODE, moves::ITERATION]),
        Machine::of("attempt", &[moves::ATTEMPT]),
        Machine::of("consumption", &[moves::CONSUMPTION]),
    ]
}

/// What a command moves, by the tables: `delivery PENDING to CLAIMED` and so on.
pub fn moved_by(kind: CommandType) -> Vec<String> {
    let mut found = Vec::new();
    for machine in all() {
        for (from, to, by) in &machine.moves {
            if by.contains(&kind.name()) {
                let from = from.as_deref().unwrap_or("new");
                found.push(format!("{} {from} to {to}", machine.name));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_shows_every_state_and_move() {
        for machine in all() {
            let block = machine.block();
            let rows = block.lines().filter(|line| line.starts_with("| "));
            // One of them is the head.
            assert_eq!(rows.count(), machine.moves.len() + 1, "{}", machine.name);
            for state in machine.states() {
                assert!(block.contains(&format!("`{state}`")), "{state}");
            }
            assert_eq!(
                machine.moves.iter().filter(|one| one.0.is_none()).count(),
                1
            );
        }
        let claims = moved_by(CommandType::ClaimDelivery);
        assert_eq!(
            claims,
            ["delivery PENDING to CLAIMED", "delivery CLAIMED to CLAIMED"]
        );
    }
}
