//! Accounts: what a scope may spend, has spent and has reserved (T-05).
//!
//! Invariant: a reservation must fit its bound when it is made; a settlement always posts, and what it
//! spends past the bound is a recorded overrun. Called by decide (postings) and by the journal (rows).

use aiws::decimal::{Dec, U64};
use aiws::id::{MissionId, ScopeId};
use serde::{Deserialize, Serialize};

/// What an account counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Dimension {
    /// Abstract whole units of cost.
    Cost,
}

/// Where an account stands. The mission's own account has the mission id as scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccountKey {
    /// The mission.
    pub mission_id: MissionId,
    /// The scope inside the mission.
    pub scope_id: ScopeId,
    /// What is counted.
    pub dimension: Dimension,
}

/// One posting of an event's outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "op",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Posting {
    /// Opens the account with its bound.
    Open {
        /// The account.
        account: AccountKey,
        /// The most that may be spent and reserved together.
        bound: Dec,
    },
    /// Reserves; refused at the durable boundary with BUDGET_EXCEEDED if spent + reserved + amount > bound.
    Reserve {
        /// The account.
        account: AccountKey,
        /// How much.
        amount: Dec,
    },
    /// Ends a reservation by what was really spent; never refused for its amount (FV-ACC.2).
    Settle {
        /// The account.
        account: AccountKey,
        /// The reservation that ends.
        reserved: Dec,
        /// What was spent.
        actual: Dec,
    },
    /// Ends a reservation that was not used (FV-ACC.4).
    Release {
        /// The account.
        account: AccountKey,
        /// The reservation that ends.
        reserved: Dec,
    },
}

impl Posting {
    /// The account that is posted to.
    pub fn account(&self) -> &AccountKey {
        match self {
            Self::Open { account, .. }
            | Self::Reserve { account, .. }
            | Self::Settle { account, .. }
            | Self::Release { account, .. } => account,
        }
    }
}

/// An account's row: what the index holds and facts quote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccountRow {
    /// The bound.
    pub bound: Dec,
    /// Spent so far.
    pub spent: Dec,
    /// Reserved and not yet ended.
    pub reserved: Dec,
    /// What settlements spent past the bound, summed.
    pub overrun: Dec,
    /// How many events posted here.
    pub revision: U64,
}
