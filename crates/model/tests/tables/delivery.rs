//! Where a delivery stands, against every command that touches one, against every rule of that command.
//!
//! Invariant: `TABLE` is the table of deliveries of the wire form (section 10), written by hand; a broken rule answers
//! where the precedence has it before what the table says. A new state, command or rule without a cell is a failure.

use aiws::decimal::U64;
use aiws::error::Code;
use aiws::id::ActorId;
use aiws::record::{Ack, Claim, ClaimEnd, ClaimEndCause, DeliveryState, Invalidation};
use praxis_model::command::CommandType;
use praxis_model::guard::Guard;

use crate::claims::record;
use crate::order::{Place, rank};
use crate::scene::{self, Break, Scene, Try};
use crate::world::*;

/// Where the delivery stands. The first two are one state of the record, and so are the next two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    NeverClaimed,
    ClaimedBefore,
    Live,
    Expired,
    Acknowledged,
    Excluded,
    Invalidated,
}

use Column as At;

/// All columns, with their titles.
const COLUMNS: [(Column, &str, DeliveryState); 7] = [
    (
        At::NeverClaimed,
        "PENDING, never claimed",
        DeliveryState::Pending,
    ),
    (
        At::ClaimedBefore,
        "PENDING, claimed before",
        DeliveryState::Pending,
    ),
    (At::Live, "CLAIMED, live", DeliveryState::Claimed),
    (At::Expired, "CLAIMED, expired", DeliveryState::Claimed),
    (
        At::Acknowledged,
        "ACKNOWLEDGED",
        DeliveryState::Acknowledged,
    ),
    (At::Excluded, "EXCLUDED", DeliveryState::Excluded),
    (At::Invalidated, "INVALIDATED", DeliveryState::Invalidated),
];

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<S> {
    /// It is accepted, and the object stands here then.
    To(S),
    /// It is refused with this code, which is looked at here.
    No(Place, Code),
}

use Cell::{No, To};

impl<S> Cell<S> {
    /// How early it is refused; what is accepted comes after everything.
    pub fn rank(&self) -> (usize, usize) {
        match self {
            To(_) => (usize::MAX, 0),
            No(place, code) => rank(*place, *code),
        }
    }
}

/// A command of the table: its scene, what the delivery is to it, and a cell per column.
struct Row {
    scene: &'static str,
    as_what: &'static str,
    cells: [Cell<DeliveryState>; 7],
}

const STATE: Cell<DeliveryState> = No(Place::State, Code::DeliveryState);
const STALE: Cell<DeliveryState> = No(Place::Claim, Code::StaleOwner);
const LATE: Cell<DeliveryState> = No(Place::Claim, Code::ClaimExpired);

use DeliveryState::{Acknowledged, Claimed, Excluded, Invalidated, Pending};

/// Section 10, deliveries: from, event, to. A command that is none of the events leaves the state.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    //                                                                                         never         before        live              expired       ACKNOWLEDGED      EXCLUDED      INVALIDATED
    Row { scene: "claimDelivery",                as_what: "the delivery",               cells: [To(Claimed),     To(Claimed),     STATE,            To(Claimed),     STATE,            STATE,        STATE] },
    Row { scene: "acknowledgeDelivery",          as_what: "the delivery",               cells: [STATE,           STALE,           To(Acknowledged), LATE,            STATE,            STATE,        STATE] },
    Row { scene: "releaseDelivery",              as_what: "the delivery",               cells: [STATE,           STALE,           To(Pending),      LATE,            STATE,            STATE,        STATE] },
    Row { scene: "admitConsumer of work",        as_what: "its input",                  cells: [STATE,           STATE,           STATE,            STATE,           To(Acknowledged), STATE,        STATE] },
    Row { scene: "admitConsumer of an ANY join", as_what: "a candidate that is not taken", cells: [To(Excluded), To(Excluded),    To(Excluded),     To(Excluded),    To(Acknowledged), To(Excluded), To(Invalidated)] },
    Row { scene: "commitBoundary of a DECISION", as_what: "an input of a skipped node", cells: [To(Excluded),    To(Excluded),    To(Excluded),     To(Excluded),    To(Acknowledged), To(Excluded), To(Invalidated)] },
    Row { scene: "invalidateHandoff",            as_what: "a delivery of the hand-off", cells: [To(Invalidated), To(Invalidated), To(Invalidated),  To(Invalidated), To(Invalidated),  To(Excluded), STATE] },
    Row { scene: "recoverOwnership",             as_what: "any delivery of the run",    cells: [To(Pending),     To(Pending),     To(Pending),      To(Pending),     To(Acknowledged), To(Excluded), To(Invalidated)] },
];

/// Rules whose break makes something else of the delivery: it is no input any more, or it is one now.
#[rustfmt::skip]
const INSTEAD: &[(&str, Guard, [Cell<DeliveryState>; 7])] = &[
    ("admitConsumer of work",        Guard::InputsComplete, [UNREADY; 7]),
    ("admitConsumer of an ANY join", Guard::AnyTakesOne,    [STATE, STATE, STATE, STATE, TWO, STATE, STATE]),
];

const UNREADY: Cell<DeliveryState> = No(Place::Selection, Code::NodeNotReady);
const TWO: Cell<DeliveryState> = No(Place::Selection, Code::InputSetConflict);

/// The cells of a row while this rule is broken.
fn cells(row: &Row, broken: Option<&Break>) -> [Cell<DeliveryState>; 7] {
    let mut instead = INSTEAD.iter();
    let own = instead.find(|(scene, guard, _)| {
        *scene == row.scene && broken.is_some_and(|broken| broken.guard == *guard)
    });
    own.map_or(row.cells, |(_, _, cells)| *cells)
}

/// Commands that touch no delivery that is there. A boundary opens deliveries; the scene of a DECISION closes some.
const UNTOUCHED: &[CommandType] = &[
    CommandType::OpenMission,
    CommandType::StartRun,
    CommandType::GrantCommand,
    CommandType::ActivateGraph,
    CommandType::Approve,
    CommandType::RevokeApproval,
    CommandType::Dispatch,
    CommandType::Settle,
    CommandType::Reconcile,
    CommandType::Retry,
    CommandType::Verify,
    CommandType::Accept,
    CommandType::CompleteRun,
    CommandType::CancelRun,
    CommandType::FinishCancelRun,
    CommandType::PlaceHold,
    CommandType::ResolveHold,
    CommandType::RecordSummary,
];

/// Puts the delivery of the scene where a column has it.
fn put(t: &mut Try, column: Column) {
    if column == At::Invalidated {
        invalidate(t);
    }
    let now_ms = t.facts.now_ms;
    let ended = |cause| {
        Some(ClaimEnd {
            cause,
            at_ms: U64(now_ms),
        })
    };
    let claim = |until_ms: u64, end| {
        Some(Claim {
            claimant: ActorId::new(AGENT).expect("an actor"),
            token_hash: token(2),
            generation: U64(2),
            owner_epoch: U64(1),
            claimed_at_ms: U64(1_000),
            expires_at_ms: U64(until_ms),
            end,
        })
    };
    record(t, |record| {
        record.generation = U64(2);
        record.acknowledgement = None;
        (record.state, record.claim) = match column {
            At::NeverClaimed => (Pending, None),
            At::ClaimedBefore => (Pending, claim(now_ms + 100, ended(ClaimEndCause::Released))),
            At::Live => (Claimed, claim(now_ms + 100, None)),
            At::Expired => (Claimed, claim(now_ms, None)),
            At::Acknowledged => (Acknowledged, claim(now_ms + 100, None)),
            At::Excluded => (Excluded, claim(now_ms + 100, ended(ClaimEndCause::Fenced))),
            At::Invalidated => (
                Invalidated,
                claim(now_ms + 100, ended(ClaimEndCause::Fenced)),
            ),
        };
        if column == At::NeverClaimed {
            record.generation = U64(0);
        }
        if column == At::Acknowledged {
            record.acknowledgement = Some(Ack {
                delivery_id: record.delivery_id.clone(),
                handoff: record.handoff.clone(),
                claimant: ActorId::new(AGENT).expect("an actor"),
                generation: U64(2),
                token_hash: token(2),
                owner_epoch: U64(1),
                at_ms: U64(now_ms),
                revision: U64(1),
                materials: Vec::new(),
            });
        }
    });
}

/// What the hand-off of an invalidated delivery has: the record that says so.
fn invalidate(t: &mut Try) {
    let delivery = t.delivery.clone().expect("a delivery");
    let deliveries = &t.world.state().deliveries;
    let handoff = deliveries
        .get(&delivery)
        .expect("it")
        .record
        .handoff
        .clone();
    let record = Invalidation {
        invalidation_id: id("i1"),
        handoff: handoff.clone(),
        reason: "the plan is wrong".to_owned(),
        evidence: vec![id("review")],
        actor_id: id(HUMAN),
        affected_deliveries: vec![delivery],
        affected_consumptions: Vec::new(),
        affected_assessments: Vec::new(),
        hold_id: None,
        at_ms: U64(1_000),
        revision: U64(1),
    };
    let all = &mut t.run().invalidations;
    all.insert_mut(handoff.handoff_id, record);
}

/// Rules that are about where the delivery stands: they are the columns themselves.
fn is_column(broken: &Break) -> bool {
    broken
        .slots
        .iter()
        .any(|slot| ["state", "lease", "invalidations"].contains(slot))
}

/// What the tables say where this rule is broken: whatever is looked at first. Two codes where nobody says which.
fn expected<S: Copy>(whole: Cell<S>, broken: Option<&Break>) -> Vec<Cell<S>> {
    let Some(broken) = broken else {
        return vec![whole];
    };
    let no = No(broken.place, broken.code);
    match no.rank().cmp(&whole.rank()) {
        std::cmp::Ordering::Less => vec![no],
        std::cmp::Ordering::Equal => vec![whole, no],
        std::cmp::Ordering::Greater => vec![whole],
    }
}

/// Holds a cell against decide. The object's next state is read by `state`.
pub fn holds<S: Copy + PartialEq + std::fmt::Debug>(
    t: &mut Try,
    whole: Cell<S>,
    broken: Option<&Break>,
    state: impl Fn(&Try) -> Option<S>,
) -> Result<Vec<Cell<S>>, String> {
    if let Some(broken) = broken {
        (broken.apply)(t);
    }
    let wanted = expected(whole, broken);
    let found = t.apply();
    let fits = |cell: &Cell<S>| match (cell, &found) {
        (To(next), Ok(_)) => state(t) == Some(*next),
        (No(_, code), Err(error)) => error.code() == *code,
        _ => false,
    };
    match wanted.iter().any(fits) {
        true => Ok(wanted),
        false => {
            let guard = broken.map(|broken| broken.guard);
            let found = found.map(|_| state(t)).map_err(|error| error.to_string());
            Err(format!("{guard:?}: expected {wanted:?}, found {found:?}"))
        }
    }
}

/// How a cell is written.
pub fn shown<S: std::fmt::Display>(cells: &[Cell<S>]) -> String {
    let one = |cell: &Cell<S>| match cell {
        To(state) => format!("-> {state}"),
        No(_, code) => code.name().to_owned(),
    };
    let mut all: Vec<String> = cells.iter().map(one).collect();
    all.dedup();
    all.join(" or ")
}

fn standing(t: &Try) -> Option<DeliveryState> {
    let delivery = t.delivery.as_ref()?;
    Some(t.world.state().deliveries.get(delivery)?.record.state)
}

/// The rules of a row, without those that are columns; none first.
pub fn rules(scene: &Scene, is_column: fn(&Break) -> bool) -> Vec<Option<Break>> {
    let all = scene.breaks.iter().filter(|broken| !is_column(broken));
    std::iter::once(None)
        .chain(all.copied().map(Some))
        .collect()
}

/// The generated section, or what does not hold.
pub fn section() -> Result<String, Vec<String>> {
    let mut out = String::new();
    let mut problems = Vec::new();
    let scenes = scene::all();
    for row in TABLE {
        let scene = scenes
            .iter()
            .find(|scene| scene.name == row.scene)
            .expect("a scene");
        out.push_str(&format!(
            "\n### {}: {}\n\n| broken rule |",
            row.scene, row.as_what
        ));
        for (_, title, _) in COLUMNS {
            out.push_str(&format!(" {title} |"));
        }
        out.push_str(&format!("\n|{}\n", "---|".repeat(COLUMNS.len() + 1)));
        let sound = (scene.make)();
        for broken in rules(scene, is_column) {
            let name = broken.map_or("none".to_owned(), |broken| format!("{:?}", broken.guard));
            out.push_str(&format!("| {name} |"));
            for ((column, title, _), whole) in COLUMNS.iter().zip(cells(row, broken.as_ref())) {
                let mut t = sound.clone();
                put(&mut t, *column);
                match holds(&mut t, whole, broken.as_ref(), standing) {
                    Ok(cells) => out.push_str(&format!(" {} |", shown(&cells))),
                    Err(problem) => problems.push(format!("{} / {title} / {problem}", row.scene)),
                }
            }
            out.push('\n');
        }
    }
    if problems.is_empty() {
        Ok(out)
    } else {
        Err(problems)
    }
}

/// Proves HD-01.T1, HD-01.T3, HD-01.T8, HD-01.T11, HD-02.4: every cell is what the wire form's table of deliveries says,
/// under every broken rule what the precedence makes of it.
#[test]
fn every_cell_of_the_deliveries_holds() {
    let _on = crate::scene::guarded();
    let problems = section().err().unwrap_or_default();
    assert!(
        problems.is_empty(),
        "{} cells:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

/// Every state of a delivery has a column, and every command is in the table or touches none.
#[test]
fn every_state_and_command_has_its_cells() {
    let _on = crate::scene::guarded();
    for state in DeliveryState::ALL {
        assert!(COLUMNS.iter().any(|(_, _, of)| of == state), "{state}");
    }
    let scenes = scene::all();
    let kind = |row: &Row| {
        scenes
            .iter()
            .find(|scene| scene.name == row.scene)
            .map(|scene| scene.kind)
    };
    for command in CommandType::ALL {
        let touches = TABLE.iter().any(|row| kind(row) == Some(*command));
        assert_ne!(touches, UNTOUCHED.contains(command), "{}", command.name());
    }
}

/// What is put into a column is what commands make: the record reads back, and the claim is the one of the commands.
#[test]
fn columns_are_records_of_the_wire() {
    let _on = crate::scene::guarded();
    let scenes = scene::all();
    let scene = scenes
        .iter()
        .find(|scene| scene.name == "acknowledgeDelivery")
        .expect("a scene");
    let made = (scene.make)();
    for (column, title, _) in COLUMNS {
        let mut t = made.clone();
        put(&mut t, column);
        let key = t.delivery.clone().expect("a delivery");
        let record = t
            .world
            .state()
            .deliveries
            .get(&key)
            .expect("it")
            .record
            .clone();
        let value = aiws::canonical::to_value(&record).expect("a value");
        let read = aiws::canonical::from_value::<aiws::record::Delivery>(&value);
        assert_eq!(read.as_ref(), Ok(&record), "{title}");
        if column == At::Live {
            let by_commands = made
                .world
                .state()
                .deliveries
                .get(&key)
                .expect("it")
                .record
                .claim
                .clone();
            assert_eq!(record.claim, by_commands);
        }
    }
}
