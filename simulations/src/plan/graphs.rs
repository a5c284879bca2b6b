//! Graphs of runs as data: what they are made of, and how they are drawn.
//!
//! Invariant: any list of knots is a graph that the model takes: whatever a knot names is taken modulo what stands before
//! it. Part of plans; made into the model's graphs by the cast.

use serde::{Deserialize, Serialize};

use crate::rng::Rng;

/// Most knots of a graph: with the node that joins what is left open, no boundary has more recipients than the
/// configuration allows.
pub const KNOTS: usize = 8;

/// Most graphs of a plan.
pub const GRAPHS: usize = 16;

/// Most runs of a plan.
pub const MOST_RUNS: u8 = 64;

/// Most iterations of a loop.
const ITERATIONS: u8 = 3;

/// What stands at a place of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Kind {
    /// A TASK.
    Task {
        /// How its effect behaves, modulo three.
        effect: u8,
    },
    /// A FORK.
    Fork,
    /// A JOIN that waits for all.
    Join {
        /// Whether its inputs may be skipped.
        lenient: bool,
    },
    /// A JOIN that takes one.
    Any {
        /// What its policy says of the others; none where it has no policy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        excludes: Option<bool>,
    },
    /// A LOOP.
    Loop {
        /// Its bound.
        most: u8,
        /// After how many iterations it says that it is done; beyond its bound it is exhausted.
        done: u8,
    },
    /// A DECISION with a task on either side.
    Choice {
        /// Which side the first run takes; others take turns.
        side: bool,
    },
    /// An APPROVAL with a task behind it.
    Gate,
}

/// A place of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knot {
    /// What stands there.
    pub kind: Kind,
    /// What it waits for: places before it, and which side of theirs, modulo what there is.
    pub after: Vec<u8>,
}

/// A graph without its end, which is always the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Its places in order.
    pub knots: Vec<Knot>,
}

/// A graph.
pub(super) fn shape(rng: &mut Rng) -> Shape {
    let count = 2 + rng.below(5);
    let mut knots = Vec::new();
    for at in 0..count {
        let kind = kind(rng, at);
        // Joins want several; few others do.
        let wide = matches!(kind, Kind::Join { .. } | Kind::Any { .. });
        let inputs = match (at, wide) {
            (0, _) => 0,
            (_, true) => 2 + rng.below(2),
            (_, false) => 1 + u64::from(rng.chance(15)) - u64::from(rng.chance(25)),
        };
        let after = (0..inputs).map(|_| rng.small(32)).collect();
        knots.push(Knot { kind, after });
    }
    Shape { knots }
}

fn kind(rng: &mut Rng, at: u64) -> Kind {
    let first = at < 2;
    match rng.below(20) {
        0..=1 => Kind::Fork,
        2..=3 if !first => Kind::Join {
            lenient: rng.chance(60),
        },
        4..=7 if !first => Kind::Any {
            excludes: match rng.below(4) {
                0 => None,
                1 => Some(false),
                _ => Some(true),
            },
        },
        8..=11 => {
            let most = 1 + rng.small(ITERATIONS);
            // One in a few never says so, and is exhausted.
            let done = if rng.chance(15) {
                most + 1
            } else {
                1 + rng.small(most)
            };
            Kind::Loop { most, done }
        }
        12..=13 => Kind::Choice {
            side: rng.chance(50),
        },
        14 => Kind::Gate,
        _ => Kind::Task {
            effect: rng.small(3),
        },
    }
}
