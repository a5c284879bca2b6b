//! The governed coding workflow: plan, approval, implementation, check, correction, verification, acceptance.
//! Invariant: every external step is an effect of the engine; a stage knows only its verified inputs.
//! Called by the verbs `code` and `resume`.

pub mod git;
pub mod workspace;
