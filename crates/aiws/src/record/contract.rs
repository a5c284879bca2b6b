//! What a mission may do: the contract and its grants.
//! Invariant: sets are literal, sorted and unique; amounts are whole units (FV-CON.4); nothing here is ever edited (FV-CON.2).
//! Called by the model when a mission is opened and when authority is granted.

use serde::{Deserialize, Serialize};

use super::{Record, Ref, checked, fields, names};
use crate::decimal::{Dec, DecPlus, Ms};
use crate::error::{Code, Error, beginning};
use crate::id::{ActorId, ContractId, GrantId, Id, MissionId};
use crate::json::Value;

/// The features that a contract may ask for; anything else is refused, never ignored.
pub const FEATURES: &[&str] = &["finite-v1"];

/// The protocol extensions that a contract may ask for, each at its exact revision (HM-01.1, HM-01.3).
pub const EXTENSIONS: &[&str] = &["aiws-handoff/1"];

names! {
    /// The edition of AIWS-001 that a contract is written for.
    Edition {
        /// Edition 0.4.
        V0_4 = "0.4",
    }
}

/// A mission's immutable contract.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Contract {
    /// The edition it is written for.
    pub edition: Edition,
    /// Features it needs, from [`FEATURES`]; a sorted set.
    #[serde(deserialize_with = "fields::set")]
    pub features: Vec<String>,
    /// The mission.
    pub mission_id: MissionId,
    /// The contract's id.
    pub contract_id: ContractId,
    /// The contract's revision.
    pub revision: Dec,
    /// What the whole mission may spend and reserve, in units.
    pub budget: Dec,
    /// New work is refused once this time is reached.
    pub deadline_ms: Ms,
    /// Attempts per operation.
    pub max_attempts: DecPlus,
    /// The authority that everything derives from.
    pub authority: Authority,
    /// The rule by which a lost `read` may be settled (T-20).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional"
    )]
    pub lost_reads: Option<LostReads>,
    /// Protocol extensions that must be negotiated before start (HM-01.1), from [`EXTENSIONS`]; a sorted set.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional_set"
    )]
    pub extensions: Option<Vec<String>>,
}

/// The authority that a contract carries.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Authority {
    /// Grants without parent.
    #[serde(deserialize_with = "fields::list")]
    pub root_grants: Vec<Grant>,
}

/// A grant: who may do which actions in which scopes, for how much and until when. Its sets are literal: no wildcard
/// and no implied parent or child (FV-GRT.2).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Grant {
    /// Unique in the mission.
    pub grant_id: GrantId,
    /// The grant that this one narrows; none for a root grant.
    #[serde(deserialize_with = "fields::nullable")]
    pub parent_grant_id: Option<GrantId>,
    /// The principal.
    pub subject: ActorId,
    /// Actions, a sorted set.
    #[serde(deserialize_with = "fields::set")]
    pub actions: Vec<String>,
    /// Scopes, a sorted set.
    #[serde(deserialize_with = "fields::set")]
    pub scopes: Vec<String>,
    /// The largest amount of one action, in units.
    pub max_amount: Dec,
    /// The grant ends once this time is reached.
    pub not_after_ms: Ms,
}

/// The rule that settles a lost `read` without asking again: not applied, fully spent, retried within the bound (T-20).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LostReads {
    /// The rule, at its exact revision.
    pub rule: Ref,
    /// The human who approved it.
    pub approved_by: ActorId,
    /// That human's decision.
    pub decision_ref: Id,
}

impl Record for Contract {
    fn supported(value: &Value) -> Result<(), Error> {
        if let Some(edition) = value.get("edition").and_then(Value::as_str)
            && Edition::parse(edition).is_none()
        {
            return Err(unsupported("/edition", "edition 0.4", edition));
        }
        for set in KNOWN {
            let asked = value.get(set.member).and_then(Value::as_array);
            for (index, name) in asked.unwrap_or_default().iter().enumerate() {
                if let Some(name) = name.as_str()
                    && !set.names.contains(&name)
                {
                    let pointer = format!("/{}/{index}", set.member);
                    return Err(unsupported(&pointer, set.what, name));
                }
            }
        }
        Ok(())
    }
}

checked! { Contract }

impl Contract {
    fn check(&self) -> Result<(), Error> {
        let asked = [Some(&self.features), self.extensions.as_ref()];
        for (set, asked) in KNOWN.iter().zip(asked) {
            let mut names = asked.into_iter().flatten();
            if let Some(index) = names.position(|name| !set.names.contains(&name.as_str())) {
                let pointer = format!("/{}/{index}", set.member);
                return Err(Error::schema(pointer, format!("expected {}", set.what)));
            }
        }
        for (index, grant) in self.authority.root_grants.iter().enumerate() {
            if grant.parent_grant_id.is_some() {
                let pointer = format!("/authority/rootGrants/{index}/parentGrantId");
                return Err(Error::schema(
                    pointer,
                    "expected null for a root grant, found a parent",
                ));
            }
        }
        Ok(())
    }
}

/// A set of names of which the contract may ask for known ones alone.
struct Known {
    member: &'static str,
    names: &'static [&'static str],
    what: &'static str,
}

/// In the order in which they are looked at (T-38).
const KNOWN: [Known; 2] = [
    Known {
        member: "features",
        names: FEATURES,
        what: "a known feature",
    },
    Known {
        member: "extensions",
        names: EXTENSIONS,
        what: "a known extension",
    },
];

fn unsupported(pointer: &str, what: &str, found: &str) -> Error {
    let found = beginning(found);
    let message = format!("expected {what}, found {found:?}");
    Error::new(Code::UnsupportedProtocol, message).at(pointer)
}

impl Record for Grant {}
