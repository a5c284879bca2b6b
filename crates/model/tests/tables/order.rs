//! The precedence of errors as the wire form writes it: places in their order, and the order of codes inside a place.
//!
//! Invariant: written from section 12 of the wire form. `own` codes have no place there; where they stand is this build's
//! word, by what they are about. Codes in one inner list have no order among themselves. Read by every table here.

use aiws::error::Code;

/// Where a rule is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Strict JSON, protocol, shape.
    Shape,
    /// The principal is proven.
    Authentication,
    /// The request's key.
    Replay,
    /// The expected revision.
    Revision,
    /// Mission, run, epoch.
    Ownership,
    /// Policy, humans, scopes.
    Authority,
    /// The end of the run, cancellation, holds.
    Gates,
    /// What the contract negotiated, where only the ledger knows it.
    Negotiation,
    /// Names: used before, or unknown.
    Identity,
    /// Where the object stands.
    State,
    /// Token, generation, principal, epoch, lease.
    Claim,
    /// Graph, plan, source.
    Basis,
    /// Bytes, digests, schemas.
    Material,
    /// Input sets and joins.
    Selection,
    /// Blockers and bounds.
    Release,
    /// What the command says of the ledger.
    Evidence,
    /// Grant, approval, budget, limits, attempts.
    Admission,
}

/// A row of the table.
pub struct Row {
    pub place: Place,
    /// As the wire form numbers it; `own` for a place that it does not have.
    pub number: &'static str,
    pub what: &'static str,
    /// Codes in their order; those of one inner list have none among themselves.
    pub codes: &'static [&'static [Code]],
}

use Code as C;

/// Section 12, row by row.
#[rustfmt::skip]
pub const PRECEDENCE: &[Row] = &[
    Row { place: Place::Shape,          number: "1",   what: "strict JSON, protocol, shape",             codes: &[&[C::UnsupportedProtocol], &[C::SchemaInvalid]] },
    Row { place: Place::Authentication, number: "2",   what: "who sends it is proven",                   codes: &[&[C::AuthorizationDenied]] },
    Row { place: Place::Replay,         number: "3",   what: "the request's key",                        codes: &[&[C::IdentityConflict]] },
    Row { place: Place::Revision,       number: "4",   what: "the expected revision",                    codes: &[&[C::RevisionConflict]] },
    Row { place: Place::Ownership,      number: "5",   what: "mission, run, epoch",                      codes: &[&[C::StaleOwner]] },
    Row { place: Place::Authority,      number: "6",   what: "policy, humans, scopes",                   codes: &[&[C::AuthorizationDenied], &[C::HumanRequired], &[C::ScopeUnsupported]] },
    Row { place: Place::Gates,          number: "7",   what: "the end of the run, cancellation, holds",  codes: &[&[C::TerminalExecution], &[C::HoldActive]] },
    Row { place: Place::Negotiation,    number: "own", what: "what the ledger knows of the negotiation", codes: &[&[C::UnsupportedProtocol]] },
    Row { place: Place::Identity,       number: "8a",  what: "names: used before, then unknown",         codes: &[&[C::IdentityConflict], &[C::DeliveryState, C::HoldState, C::BasisStale, C::NotFound]] },
    Row { place: Place::State,          number: "8b",  what: "where the object stands",                  codes: &[&[C::DeliveryState, C::HoldState, C::StateInvalid, C::NodeNotReady, C::EffectUnresolved, C::StaleEpoch, C::EvidenceInvalid]] },
    Row { place: Place::Claim,          number: "8c",  what: "token, generation, principal, epoch; lease", codes: &[&[C::StaleOwner], &[C::ClaimExpired]] },
    Row { place: Place::Basis,          number: "8d",  what: "graph, plan, source",                      codes: &[&[C::BasisStale]] },
    Row { place: Place::Material,       number: "8e",  what: "bytes, digests, schemas, outcomes",        codes: &[&[C::ArtifactUnavailable], &[C::ArtifactMismatch], &[C::InputIncompatible]] },
    Row { place: Place::Selection,      number: "8f",  what: "input set, join",                          codes: &[&[C::InputSetConflict], &[C::NodeNotReady], &[C::JoinUnsettled], &[C::StateInvalid]] },
    Row { place: Place::Release,        number: "8g",  what: "blockers, bounds",                         codes: &[&[C::HoldNotClear]] },
    Row { place: Place::Evidence,       number: "own", what: "what the command says of the ledger",      codes: &[&[C::EvidenceInvalid, C::EffectUnresolved, C::ApprovalStale, C::GraphInvalid, C::SchemaInvalid, C::InternalStore]] },
    Row { place: Place::Admission,      number: "9",   what: "admission, grant, approval, budget, limits, attempts", codes: &[&[C::NotFound], &[C::EvidenceInvalid], &[C::GrantExceeded], &[C::ApprovalRequired, C::ApprovalStale], &[C::BudgetExceeded], &[C::DeadlinePassed], &[C::AttemptsExhausted]] },
];

/// How early a code at a place is answered; less is earlier.
pub fn rank(place: Place, code: Code) -> (usize, usize) {
    let at = PRECEDENCE
        .iter()
        .position(|row| row.place == place)
        .expect("every place has a row");
    let sub = PRECEDENCE[at]
        .codes
        .iter()
        .position(|same| same.contains(&code));
    (
        at,
        sub.unwrap_or_else(|| panic!("{code} has no order at {place:?}")),
    )
}

/// The twenty codes of the protocol, in the order of the wire form; each stands at a place.
#[test]
fn every_code_of_the_protocol_has_its_place() {
    let all = Code::all()
        .iter()
        .filter(|code| code.namespace() == aiws::error::Namespace::Handoff);
    let placed = |code: &&Code| {
        PRECEDENCE
            .iter()
            .any(|row| row.codes.iter().any(|same| same.contains(code)))
    };
    let (placed, missing): (Vec<&Code>, Vec<&Code>) = all.partition(placed);
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(placed.len(), 20);
    let places: Vec<Place> = PRECEDENCE.iter().map(|row| row.place).collect();
    assert!(
        places.is_sorted(),
        "the order of places is that of the rows"
    );
}
