//! What a mission and a run are, and what they decide.
//!
//! Invariant: pure, synchronous and total. No clock, no randomness, no I/O, no async, no hash maps:
//! the same state, command and facts give the same decision, byte for byte.
//! Called by the engine's actors (decide), by replay (evolve) and by the scheduler (plan).

pub mod account;
pub mod command;
pub mod decide;
pub mod decision;
pub mod draft;
pub mod event;
pub mod evolve;
pub mod facts;
pub mod graph;
pub mod guard;
pub mod hold;
pub mod limits;
pub mod mission;
pub mod moves;
pub mod needs;
pub mod plan;
pub mod redecide;
pub mod register;
pub mod report;
pub mod run;
pub mod stream;
pub mod table;
pub mod transition;
pub mod wire;

mod admission;
mod iteration;
