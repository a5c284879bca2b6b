//! Actors, supervision, scheduler, effect adapters and the worker API over the journal and the model.
//!
//! Invariant: thin. What a command means is the model's to say, what is durable is the journal's; here messages
//! become facts, decisions become appends, and memory is never ahead of disk. Called by the CLI, the SDK, hosts.
//!
//! | module | what it is |
//! |---|---|
//! | [`engine`] | the handle: open, apply, submit, watch, shut down |
//! | [`ports`] | what a host must bring: clock, entropy, authorizer, artifacts |
//! | [`capability`] | who asks, as the host proved it |
//! | [`adapter`], [`program`] | effects, and who decides which |
//! | [`worker`] | typed calls of one principal to one run |
//! | [`process`] | an effect that is a command in its own process group |
//! | [`shim`] | the same under a process of its own, which outlives the engine and records how it ended |
//! | [`crash`] | where tests stop the process around an append; not in release builds |
//!
//! Inside: `run_actor` (hops 1 and 5, and sequences), `mission_actor`, `supervisor`, `schedule` over `plan`, `effects`, `report`,
//! `gather` (facts) and `commit` (conditions).

pub mod adapter;
mod ask;
pub mod capability;
pub mod clock;
mod commit;
mod core;
pub mod crash;
mod directory;
mod effects;
pub mod engine;
pub mod error;
mod gather;
pub mod limits;
pub mod message;
mod mission_actor;
pub mod ports;
pub mod process;
pub mod program;
mod report;
mod run_actor;
mod schedule;
pub mod shim;
mod store;
mod supervisor;
mod work;
pub mod worker;

pub use adapter::{Adapter, BoxFuture, EffectCall, EffectOutcome, EffectReport, Input, Lookup};
pub use capability::{Capability, Host};
pub use clock::ClockState;
pub use engine::{Engine, IntentRequest, Options, RunRef, SequenceRequest, SequenceStep, Shutdown};
pub use error::EngineError;
pub use message::{Claimed, Response, Sequenced};
pub use ports::{
    Ask, Authorization, Authorizer, Clock, Draft, Entropy, LeaseBounds, ManualClock, Ports,
    SeededEntropy, SystemClock, SystemEntropy,
};
pub use program::{Conclusion, EffectPlan, EvidenceRecord, NodeContext, Program};
pub use worker::Worker;
