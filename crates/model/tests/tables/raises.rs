//! Which commands tell which code of the protocol.
//!
//! Invariant: `WIRE` is the list at the end of section 12 of the wire form, written by hand; where this build differs from it
//! stands in `BESIDE` with the reason, and nothing stands there in vain. The codes of stages 1 to 5 are every command's.

use std::collections::BTreeSet;

use aiws::error::Code;
use praxis_model::command::CommandType;

use crate::scene;
use CommandType as C;

/// Code by code.
const WIRE: &[(Code, &[CommandType])] = &[
    (
        Code::HumanRequired,
        &[
            C::ResolveHold,
            C::RecoverOwnership,
            C::RecordSummary,
            C::CancelRun,
            C::FinishCancelRun,
            C::Reconcile,
            C::Approve,
            C::Accept,
        ],
    ),
    (
        Code::ScopeUnsupported,
        &[
            C::PlaceHold,
            C::CommitBoundary,
            C::InvalidateHandoff,
            C::ActivateGraph,
        ],
    ),
    (
        Code::BasisStale,
        &[
            C::CommitBoundary,
            C::ClaimDelivery,
            C::AcknowledgeDelivery,
            C::AdmitConsumer,
            C::Dispatch,
            C::ResolveHold,
        ],
    ),
    (
        Code::ArtifactUnavailable,
        &[
            C::CommitBoundary,
            C::AcknowledgeDelivery,
            C::AdmitConsumer,
            C::Dispatch,
        ],
    ),
    (
        Code::ArtifactMismatch,
        &[
            C::CommitBoundary,
            C::AcknowledgeDelivery,
            C::AdmitConsumer,
            C::Dispatch,
        ],
    ),
    (
        Code::InputIncompatible,
        &[C::ClaimDelivery, C::AcknowledgeDelivery, C::AdmitConsumer],
    ),
    (
        Code::ClaimExpired,
        &[C::AcknowledgeDelivery, C::ReleaseDelivery],
    ),
    (
        Code::DeliveryState,
        &[
            C::ClaimDelivery,
            C::AcknowledgeDelivery,
            C::ReleaseDelivery,
            C::AdmitConsumer,
            C::InvalidateHandoff,
        ],
    ),
    (Code::InputSetConflict, &[C::AdmitConsumer]),
    (Code::JoinUnsettled, &[C::AdmitConsumer]),
    (
        Code::HoldActive,
        &[
            C::ClaimDelivery,
            C::AcknowledgeDelivery,
            C::AdmitConsumer,
            C::Dispatch,
            C::Retry,
            C::StartRun,
            C::ActivateGraph,
            C::CompleteRun,
        ],
    ),
    (Code::HoldNotClear, &[C::ResolveHold]),
    (Code::HoldState, &[C::ResolveHold]),
];

/// Where this build tells a code that the list does not have, or does not tell one that it has.
const BESIDE: &[(Code, CommandType, &str)] = &[
    (
        Code::HumanRequired,
        C::Settle,
        "told beside the list: a human returns a prepared attempt and undoes an uncertain one",
    ),
    (
        Code::ScopeUnsupported,
        C::InvalidateHandoff,
        "not told: the hold is over the run, which always resolves",
    ),
    (
        Code::ScopeUnsupported,
        C::ActivateGraph,
        "not told: no graph of this build needs a scope",
    ),
    (
        Code::BasisStale,
        C::ResolveHold,
        "not told: evidence that the host does not confirm is HOLD_NOT_CLEAR",
    ),
    (
        Code::BasisStale,
        C::Retry,
        "told beside the list: what was consumed does not count any more",
    ),
    (
        Code::BasisStale,
        C::CompleteRun,
        "told beside the list: no graph is pinned",
    ),
    (
        Code::BasisStale,
        C::RecordSummary,
        "told beside the list: the hand-off is no manifest of the run, to the digest",
    ),
    (
        Code::InputIncompatible,
        C::Dispatch,
        "told beside the list: the action's payload is held against the node's schema again",
    ),
    (
        Code::HoldActive,
        C::CommitBoundary,
        "told beside the list: a blocked activation goes on only once nothing gates it",
    ),
];

/// The generated section.
pub fn section() -> String {
    let mut out = String::from(
        "\n## Which commands tell which code\n\nThe list at the end of section 12 of the wire form; what differs from it stands with its reason.\n\n| code | commands | and what differs |\n|---|---|---|\n",
    );
    for (code, commands) in WIRE {
        let names: Vec<&str> = commands.iter().map(|kind| kind.name()).collect();
        let beside = BESIDE.iter().filter(|(of, _, _)| of == code);
        let beside: Vec<String> = beside
            .map(|(_, kind, why)| format!("{}: {why}", kind.name()))
            .collect();
        out.push_str(&format!(
            "| {} | {} | {} |\n",
            code.name(),
            names.join(", "),
            beside.join("; ")
        ));
    }
    out
}

/// Each code of the protocol is told by the commands that the wire form names, and by those listed
/// beside it.
#[test]
fn codes_are_told_by_their_commands() {
    let scenes = scene::all();
    for (code, commands) in WIRE {
        let tells = |scene: &&scene::Scene| scene.breaks.iter().any(|broken| broken.code == *code);
        let found: BTreeSet<&str> = scenes
            .iter()
            .filter(tells)
            .map(|scene| scene.kind.name())
            .collect();
        let mut wanted: BTreeSet<&str> = commands.iter().map(|kind| kind.name()).collect();
        for (_, kind, why) in BESIDE.iter().filter(|(of, _, _)| of == code) {
            let changed = match why.starts_with("not told") {
                true => wanted.remove(kind.name()),
                false => wanted.insert(kind.name()),
            };
            assert!(
                changed,
                "{} / {} is listed in vain",
                code.name(),
                kind.name()
            );
        }
        assert_eq!(found, wanted, "{}", code.name());
    }
}
