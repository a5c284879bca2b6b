//! A mission's state: its immutable contract and configuration, its grants and the runs that it admitted.
//!
//! Invariant: the state is the fold of the mission's stream; contract and configuration never change (FV-CON.1,
//! FV-CON.2). Held by the mission's actor, changed by evolve alone.

use std::sync::Arc;

use aiws::id::{GrantId, RunId, ScopeId, StreamId};
use aiws::record::{Contract, Grant, HandoffConfig};
use rpds::RedBlackTreeMapSync as Map;
use serde::Serialize;

use crate::account::{AccountKey, Dimension};
use crate::event::Head;
use crate::stream::Subject;

/// The protocol that a contract must carry as an extension before a run of it may start (HM-01.1).
pub const PROTOCOL: &str = "aiws-handoff/1";

/// The state of one mission.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissionState {
    /// The mission.
    pub subject: Subject,
    /// Its stream.
    pub stream: StreamId,
    /// Where the stream stands.
    pub head: Head,
    /// Trusted time of the last event, UTC milliseconds.
    pub last_ms: u64,
    /// The contract.
    pub contract: Arc<Contract>,
    /// The hand-off configuration of every run.
    pub config: Arc<HandoffConfig>,
    /// Grants in force: the contract's roots and what was derived from them.
    pub grants: Map<GrantId, Grant>,
    /// Admitted runs with their first epoch.
    pub runs: Map<RunId, u64>,
}

/// The mission's own cost account: its scope is the mission itself (T-62).
pub fn cost_account(subject: &Subject) -> AccountKey {
    AccountKey {
        mission_id: subject.mission_id.clone(),
        scope_id: ScopeId::from(subject.mission_id.as_id()),
        dimension: Dimension::Cost,
    }
}
