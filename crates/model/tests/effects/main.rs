//! The commands about authority, effects, approvals, assessments, cancellation, holds and recovery.
//!
//! Invariant: every guard of these commands has a case that it refuses, and that nothing else refuses; the flows
//! show that what is in order is accepted. Runs the real decide and the real evolve, and nothing else.

#![allow(clippy::expect_used, clippy::unwrap_used)]

#[path = "../world/again.rs"]
mod again;
mod assessments;
mod bench;
mod beside;
mod cases_admission;
mod cases_holds;
mod cases_invalidation;
mod cases_mission;
mod cases_names;
mod cases_retry;
mod cases_settlement;
mod cases_summary;
mod endings;
mod flows;
mod holds;
mod identities;
mod invalidation;
#[path = "../parts/mod.rs"]
mod parts;
mod record;
mod recovery;
mod refusals;
mod rules;
mod steps;
mod summary;
mod table;
mod walk;
