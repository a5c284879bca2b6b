//! Deliveries, claims, acknowledgements, consumptions.
//! Invariant: a claim holds the fingerprint of its token, never the token (HD-02.10); receipt, consumption and execution are separate records (HD-03.11).
//! Called by the model and by whoever reads the ledger's projections.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{HandoffRef, InputRef, JoinMode, Recipient, Record, checked, fields, names, repeated};
use crate::decimal::{Dec, U64};
use crate::digest::Digest;
use crate::error::Error;
use crate::id::{ActivationId, ActorId, DeliveryId, Id, MissionId, NodeId, OperationId, RunId};

names! {
    /// Where a delivery stands; the last three are final.
    DeliveryState {
        /// Nobody holds it.
        Pending = "PENDING",
        /// Someone validates it under a lease.
        Claimed = "CLAIMED",
        /// Received.
        Acknowledged = "ACKNOWLEDGED",
        /// Left out by a branch or a join.
        Excluded = "EXCLUDED",
        /// Its manifest no longer counts.
        Invalidated = "INVALIDATED",
    }
    /// How a claim ended.
    ClaimEndCause {
        /// Its holder gave it back.
        Released = "RELEASED",
        /// Its lease ended.
        Expired = "EXPIRED",
        /// The run's ownership was recovered.
        Fenced = "FENCED",
    }
    /// Whether a consumption still counts.
    ConsumptionState {
        /// It counts.
        Valid = "VALID",
        /// One of its inputs was invalidated.
        Invalidated = "INVALIDATED",
    }
    /// What an admission entitles to.
    Entitlement {
        /// To dispatch one operation.
        Operation = "OPERATION",
        /// To complete a control node; nothing external may follow (HD-03.5).
        Control = "CONTROL",
    }
}

impl DeliveryState {
    /// Whether no claim, receipt or release changes it any more. Only an invalidation still reaches a receipt
    /// (HD-01.T5).
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            DeliveryState::Acknowledged | DeliveryState::Excluded | DeliveryState::Invalidated
        )
    }
}

/// One recipient's delivery of a manifest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Delivery {
    /// Unique in the mission; equal to the recipient's.
    pub delivery_id: DeliveryId,
    /// The exact manifest.
    pub handoff: HandoffRef,
    /// Whom it goes to.
    pub recipient: Recipient,
    /// The mission.
    pub mission_id: MissionId,
    /// The run.
    pub run_id: RunId,
    /// Where it stands.
    pub state: DeliveryState,
    /// How often it was claimed (HD-02.1).
    pub generation: U64,
    /// The last claim; kept as provenance after receipt (HD-01.T9).
    #[serde(deserialize_with = "fields::nullable")]
    pub claim: Option<Claim>,
    /// The receipt.
    #[serde(deserialize_with = "fields::nullable")]
    pub acknowledgement: Option<Ack>,
    /// The stream revision that last changed it.
    pub revision: U64,
    /// When it came into being, UTC milliseconds.
    pub created_at_ms: U64,
}

/// A lease to validate a delivery, and nothing more (HD-02.3).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Claim {
    /// Who holds it.
    pub claimant: ActorId,
    /// Fingerprint of its token.
    pub token_hash: Digest,
    /// Its generation, from 1.
    #[serde(deserialize_with = "fields::positive")]
    pub generation: U64,
    /// The ownership epoch it was made in.
    pub owner_epoch: U64,
    /// When it was made, UTC milliseconds.
    pub claimed_at_ms: U64,
    /// The lease has ended once this time is reached (HD-02.4).
    pub expires_at_ms: U64,
    /// How it ended, where it did.
    #[serde(deserialize_with = "fields::nullable")]
    pub end: Option<ClaimEnd>,
}

/// The end of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClaimEnd {
    /// How.
    pub cause: ClaimEndCause,
    /// When, UTC milliseconds.
    pub at_ms: U64,
}

/// A durable receipt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ack {
    /// The delivery.
    pub delivery_id: DeliveryId,
    /// The exact manifest.
    pub handoff: HandoffRef,
    /// Who received it.
    pub claimant: ActorId,
    /// The claim's generation.
    #[serde(deserialize_with = "fields::positive")]
    pub generation: U64,
    /// Fingerprint of the claim's token.
    pub token_hash: Digest,
    /// The ownership epoch.
    pub owner_epoch: U64,
    /// When, UTC milliseconds.
    pub at_ms: U64,
    /// The stream revision of the receipt.
    pub revision: U64,
    /// The material that was verified.
    #[serde(deserialize_with = "fields::list")]
    pub materials: Vec<Material>,
}

/// Bytes that were read back and verified.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Material {
    /// SHA-256 of the bytes.
    pub digest: Digest,
    /// Their number.
    pub size_bytes: U64,
    /// Digest of the schema they were checked against, where there is one.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "fields::optional"
    )]
    pub schema_digest: Option<Digest>,
}

/// The binding of an input set to one activation and one operation (HD-03.4).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Consumption {
    /// The mission.
    pub mission_id: MissionId,
    /// The run.
    pub run_id: RunId,
    /// The node.
    pub node_id: NodeId,
    /// Its activation.
    pub activation_id: ActivationId,
    /// The operation; none for a control node.
    #[serde(deserialize_with = "fields::nullable")]
    pub operation_id: Option<OperationId>,
    /// The effect admission (HD-03.12); none for a control node.
    #[serde(deserialize_with = "fields::nullable")]
    pub admission_ref: Option<Id>,
    /// The inputs, each delivery once.
    #[serde(deserialize_with = "fields::unique")]
    pub inputs: Vec<InputRef>,
    /// The ownership epoch. A value of the wire may lie beyond u64 and then is never current (T-57).
    pub owner_epoch: Dec,
    /// The stream revision of the admission.
    pub revision: Dec,
    /// How the inputs were chosen.
    pub join: Join,
    /// Whether it still counts.
    pub state: ConsumptionState,
    /// What it entitles to.
    pub entitlement: Entitlement,
}

/// How an activation's inputs were chosen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Join {
    /// How the node waits.
    pub mode: JoinMode,
    /// The chosen deliveries: those of the inputs, in any order.
    #[serde(deserialize_with = "fields::unique")]
    pub selected: Vec<DeliveryId>,
    /// Deliveries to this activation that the choice closes; none of them was chosen.
    #[serde(deserialize_with = "fields::unique")]
    pub excluded: Vec<DeliveryId>,
    /// Received deliveries that were neither chosen nor closed.
    #[serde(deserialize_with = "fields::unique")]
    pub unselected_acknowledged: Vec<DeliveryId>,
}

impl Record for Delivery {}
impl Record for Claim {}
impl Record for Ack {}

checked! { Delivery Consumption }

impl Record for Consumption {}

impl Delivery {
    /// State, claim and receipt tell one story (HD-01.T1 to HD-01.T9).
    fn check(&self) -> Result<(), Error> {
        if self.recipient.delivery_id != self.delivery_id {
            return Err(Error::schema(
                "/recipient/deliveryId",
                "expected the delivery's own id, found another one",
            ));
        }
        self.check_receipt()?;
        self.check_claim()
    }

    fn check_receipt(&self) -> Result<(), Error> {
        let received = match self.state {
            DeliveryState::Acknowledged => true,
            // Before or after the receipt.
            DeliveryState::Invalidated => self.acknowledgement.is_some(),
            DeliveryState::Pending | DeliveryState::Claimed | DeliveryState::Excluded => false,
        };
        if self.acknowledgement.is_some() != received {
            return Err(self.unfit("/acknowledgement", received, "a receipt"));
        }
        let Some(ack) = &self.acknowledgement else {
            return Ok(());
        };
        let claim = self.claim.as_ref();
        let claim =
            claim.ok_or_else(|| self.unfit("/claim", true, "the claim that was received"))?;
        let agrees = [
            ("deliveryId", ack.delivery_id == self.delivery_id),
            ("handoff", ack.handoff == self.handoff),
            ("claimant", ack.claimant == claim.claimant),
            ("generation", ack.generation == claim.generation),
            ("tokenHash", ack.token_hash == claim.token_hash),
            ("ownerEpoch", ack.owner_epoch == claim.owner_epoch),
        ];
        match agrees.into_iter().find(|(_, same)| !same) {
            Some((member, _)) => Err(Error::schema(
                format!("/acknowledgement/{member}"),
                "expected the value of the delivery and its claim, found another one",
            )),
            None => Ok(()),
        }
    }

    fn check_claim(&self) -> Result<(), Error> {
        let Some(claim) = &self.claim else {
            if self.state == DeliveryState::Claimed {
                return Err(self.unfit("/claim", true, "a claim"));
            }
            if self.generation.0 != 0 {
                let message = format!(
                    "expected \"0\" without a claim, found {:?}",
                    self.generation.to_string()
                );
                return Err(Error::schema("/generation", message));
            }
            return Ok(());
        };
        if claim.generation != self.generation {
            return Err(Error::schema(
                "/claim/generation",
                format!(
                    "expected the delivery's {}, found {}",
                    self.generation, claim.generation
                ),
            ));
        }
        // A receipt outlives its claim, whose lease may end or not (HD-01.T9).
        let ended = claim.end.is_some();
        let claimed = self.state == DeliveryState::Claimed;
        if self.acknowledgement.is_none() && ended == claimed {
            return Err(self.unfit("/claim/end", !claimed, "an end"));
        }
        Ok(())
    }

    fn unfit(&self, pointer: &str, present: bool, what: &str) -> Error {
        let expected = if present { what } else { "null" };
        Error::schema(
            pointer,
            format!("expected {expected} for a delivery that is {}", self.state),
        )
    }
}

impl Consumption {
    fn check(&self) -> Result<(), Error> {
        self.check_entitlement()?;
        self.check_selection()
    }

    /// An operation goes with an effect admission; a control node has neither (HD-03.5, HD-03.12).
    fn check_entitlement(&self) -> Result<(), Error> {
        let operation = self.entitlement == Entitlement::Operation;
        let expected = if operation { "a value" } else { "null" };
        let said = [
            ("/operationId", self.operation_id.is_some()),
            ("/admissionRef", self.admission_ref.is_some()),
        ];
        match said.into_iter().find(|(_, present)| *present != operation) {
            Some((pointer, _)) => Err(Error::schema(
                pointer,
                format!(
                    "expected {expected} for the entitlement {}",
                    self.entitlement
                ),
            )),
            None => Ok(()),
        }
    }

    /// Each delivery plays one part: chosen and an input, closed, or left over (REL-7).
    fn check_selection(&self) -> Result<(), Error> {
        let inputs = || self.inputs.iter().map(|input| &input.delivery_id);
        if let Some(index) = repeated(inputs()) {
            return Err(Error::schema(
                format!("/inputs/{index}/deliveryId"),
                "expected each delivery once, found one again",
            ));
        }
        let join = &self.join;
        let selected: BTreeSet<_> = join.selected.iter().collect();
        if selected != inputs().collect() {
            return Err(Error::schema(
                "/join/selected",
                "expected exactly the deliveries of the inputs",
            ));
        }
        let others = join.excluded.iter().chain(&join.unselected_acknowledged);
        let Some(index) = repeated(join.selected.iter().chain(others)) else {
            return Ok(());
        };
        // The lists are unique in themselves, so the second place is in one of the two others.
        let index = index - join.selected.len();
        let pointer = match index.checked_sub(join.excluded.len()) {
            None => format!("/join/excluded/{index}"),
            Some(index) => format!("/join/unselectedAcknowledged/{index}"),
        };
        Err(Error::schema(
            pointer,
            "expected a delivery that plays no other part here",
        ))
    }
}
