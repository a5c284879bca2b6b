//! The governed coding workflow: plan, approval, implementation, check, correction, verification, acceptance.
//! Invariant: every external step is an effect of the engine; a stage knows only its verified inputs.
//! Called by the verbs `code` and `resume`.

pub mod actions;
pub mod adapter;
pub mod attempt;
pub mod contract;
pub mod git;
pub mod graph;
pub mod outcome;
pub mod pending;
pub mod program;
pub mod publish;
mod report;
pub mod shimmed;
pub mod source;
mod tries;
pub mod workspace;
