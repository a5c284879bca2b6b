//! The cast of a simulation: one mission with its contract, and the graphs of its runs.
//!
//! Invariant: constants; what differs between runs follows from the plan and the run's number. Called by owners, people and the healed
//! end.

use aiws::decimal::{Dec, DecPlus, Ms};
use aiws::digest::{Digest, sha256};
use aiws::error::Error;
use aiws::id::Id;
use aiws::json::Value;
use aiws::object;
use aiws::record::*;
use praxis_model::stream::Subject;

mod graphs;

pub use graphs::Cast;

/// The task of a fixed graph that stands behind its approval.
const GATED_FIRST: &str = "first";

/// Units that the mission of a seed may spend: too few for everything at its dearest in every second seed, and for half
/// of it in the others, so that bounds are met.
const fn budget(seed: u64) -> u64 {
    match seed % 2 {
        0 => 90,
        _ => 45,
    }
}

/// How long a claim lasts, in milliseconds.
pub const LEASE_MS: u64 = 10_000;

/// Tries of one operation.
pub const ATTEMPTS: u64 = 3;

/// Where time starts, in UTC milliseconds.
pub const START_MS: u64 = 1_000_000;

/// Further away than any clock of a simulation goes, in milliseconds beyond its start.
const FAR_MS: u64 = 1_000_000_000_000;

/// The mission's id.
pub const MISSION: &str = "mission";

/// An id of any kind from a text.
pub fn id<T: From<Id>>(text: &str) -> Result<T, Error> {
    Ok(T::from(Id::new(text)?))
}

/// A reference at revision 1.
pub fn reference(name: &str) -> Result<Ref, Error> {
    Ok(Ref {
        id: id(name)?,
        revision: Dec::from_u64(1),
    })
}

/// The mission.
pub fn mission() -> Result<Subject, Error> {
    Ok(Subject::mission(id(MISSION)?))
}

/// The name of a run by its number.
pub fn run_name(number: u8) -> String {
    format!("run-{number}")
}

/// A run by its number.
pub fn run(number: u8) -> Result<Subject, Error> {
    Ok(Subject::run(id(MISSION)?, id(&run_name(number))?))
}

/// The contract.
pub fn contract(budget: u64) -> Result<Contract, Error> {
    Ok(Contract {
        edition: Edition::V0_4,
        features: vec!["finite-v1".to_owned()],
        mission_id: id(MISSION)?,
        contract_id: id("contract")?,
        revision: Dec::from_u64(1),
        budget: Dec::from_u64(budget),
        deadline_ms: Ms::from_u64(START_MS + FAR_MS),
        max_attempts: DecPlus::new(Dec::from_u64(ATTEMPTS))?,
        authority: Authority {
            root_grants: vec![grant("root", None, 40)?],
        },
        lost_reads: Some(LostReads {
            rule: reference("lost-reads")?,
            approved_by: id("ann")?,
            decision_ref: id("ann-said-so")?,
        }),
        extensions: Some(vec!["aiws-handoff/1".to_owned()]),
    })
}

/// A grant of everything up to an amount.
pub fn grant(name: &str, parent: Option<&str>, amount: u64) -> Result<Grant, Error> {
    Ok(Grant {
        grant_id: id(name)?,
        parent_grant_id: parent.map(id).transpose()?,
        subject: id("engine")?,
        actions: vec!["do".to_owned()],
        scopes: vec!["repo".to_owned()],
        max_amount: Dec::from_u64(amount),
        not_after_ms: Ms::from_u64(START_MS + FAR_MS),
    })
}

/// The hand-off configuration without what belongs to drawn graphs.
fn config() -> Result<HandoffConfig, Error> {
    Ok(HandoffConfig {
        optional_inputs: Vec::new(),
        mappings: Vec::new(),
        join_policy: Vec::new(),
        required_skip: Vec::new(),
        restart_policy: RestartPolicy::Auto,
        rule: None,
        lease_ms: DecPlus::new(Dec::from_u64(LEASE_MS))?,
        default_stop: StopAction::Drain,
        recovery_window_ms: None,
        max_recipients: DecPlus::new(Dec::from_u64(8))?,
        scope_bindings: Vec::new(),
    })
}

/// How the effect of a task of a fixed graph behaves when its answer is lost.
fn effect(node: &str) -> EffectClass {
    match node {
        "second" => EffectClass::Read,
        "third" => EffectClass::Idempotent,
        _ => EffectClass::External,
    }
}

/// What a task does.
fn action(node: &str) -> Value {
    object! { "action": "do", "scope": "repo", "payload": object! { "node": node } }
}

/// The fingerprint of what a task does.
fn fingerprint(node: &str) -> Digest {
    sha256(&aiws::canonical::to_bytes(&action(node)))
}

/// What a task of a run makes: the same bytes for every try and for every second run, so that puts meet.
pub fn material(run: u8, node: &str) -> Vec<u8> {
    format!("what {node} made in {}\n", run % 2)
        .repeat(40)
        .into_bytes()
}
