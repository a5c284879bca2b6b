//! The AIWS hand-off SDK surface over the Praxis engine: checked records, and pure questions about a run's state.
//! Invariant: nothing here decides, stores or grants; a record that is valid in shape may still be false (HF-01.3).
//! Called by applications that read or prepare hand-off material.

pub mod handoff;
pub mod handoff_records;
