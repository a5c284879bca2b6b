//! Where a hold stands and which decisions it allows, against every command of holds, against every rule of it; and why it
//! was placed, against who rechecks it.
//!
//! Invariant: `TABLE` and `REASONS` are written by hand from the wire form (section 10) and the rules of decisions. As in
//! `delivery`, a broken rule answers where the precedence has it first.

use aiws::error::Code;
use aiws::id::HoldId;
use aiws::record::{AttemptStatus, Hold, HoldDecision, HoldReason, HoldState, NodeSet};
use praxis_model::command::CommandType;

use crate::delivery::Cell::{self, No, To};
use crate::delivery::{holds, rules, shown};
use crate::holds::{open_work, resolving};
use crate::order::Place;
use crate::scene::{self, Break, Try, body, edit, open_hold};
use crate::world::*;

/// A state, and the decisions that are allowed.
type Standing = (HoldState, &'static [HoldDecision]);

/// A hold that is not there, or one in this state that allows these decisions.
const COLUMNS: [(&str, Option<Standing>); 6] = [
    ("no such hold", None),
    (
        "OPEN for RECHECK, CANCEL",
        Some((
            HoldState::Open,
            &[HoldDecision::Recheck, HoldDecision::Cancel],
        )),
    ),
    (
        "OPEN for RECHECK",
        Some((HoldState::Open, &[HoldDecision::Recheck])),
    ),
    (
        "OPEN for CANCEL",
        Some((HoldState::Open, &[HoldDecision::Cancel])),
    ),
    (
        "RELEASED",
        Some((
            HoldState::Released,
            &[HoldDecision::Recheck, HoldDecision::Cancel],
        )),
    ),
    (
        "CANCELED",
        Some((
            HoldState::Canceled,
            &[HoldDecision::Recheck, HoldDecision::Cancel],
        )),
    ),
];

/// A command: its scene, the hold that it is about, and a cell per column.
struct Row {
    scene: &'static str,
    hold: &'static str,
    cells: [Cell<&'static str>; 6],
}

const TAKEN: Cell<&str> = No(Place::Identity, Code::IdentityConflict);
const UNKNOWN: Cell<&str> = No(Place::Identity, Code::HoldState);
const STATE: Cell<&str> = No(Place::State, Code::HoldState);
const NONE: Cell<&str> = To("none");
const OPEN: Cell<&str> = To("OPEN");
const RELEASED: Cell<&str> = To("RELEASED");
const CANCELED: Cell<&str> = To("CANCELED");

/// Section 10, holds.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    //                                                                            none     both      RECHECK   CANCEL    RELEASED  CANCELED
    Row { scene: "placeHold",                       hold: "h2", cells: [OPEN,    TAKEN,    TAKEN,    TAKEN,    TAKEN,    TAKEN] },
    Row { scene: "commitBoundary BLOCKED",          hold: "h1", cells: [OPEN,    TAKEN,    TAKEN,    TAKEN,    TAKEN,    TAKEN] },
    Row { scene: "invalidateHandoff",               hold: "h2", cells: [OPEN,    TAKEN,    TAKEN,    TAKEN,    TAKEN,    TAKEN] },
    Row { scene: "resolveHold RECHECK of OPERATOR", hold: "h1", cells: [UNKNOWN, RELEASED, RELEASED, STATE,    STATE,    STATE] },
    Row { scene: "resolveHold CANCEL",              hold: "h1", cells: [UNKNOWN, CANCELED, STATE,    CANCELED, STATE,    STATE] },
    Row { scene: "finishCancelRun",                 hold: "h1", cells: [NONE,    CANCELED, CANCELED, CANCELED, RELEASED, CANCELED] },
    Row { scene: "recoverOwnership",                hold: "h1", cells: [NONE,    OPEN,     OPEN,     OPEN,     RELEASED, CANCELED] },
];

/// Commands that open or close no hold.
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
    CommandType::ClaimDelivery,
    CommandType::AcknowledgeDelivery,
    CommandType::ReleaseDelivery,
    CommandType::AdmitConsumer,
    CommandType::RecordSummary,
];

/// Who rechecks, in the order of the cells.
const WHO: [(&str, &str); 4] = [
    ("a human", HUMAN),
    ("the engine", ENGINE),
    ("a rule", "rule:r1"),
    ("a worker", AGENT),
];

/// A reason, a cell per actor, and one where nothing is clear.
type Reason = (HoldReason, [Cell<&'static str>; 4], Cell<&'static str>);

/// Why it was placed; what each of them is told where everything is clear, and what a human is told where it is not.
#[rustfmt::skip]
const REASONS: &[Reason] = &[
    //                             a human   the engine  a rule    a worker   a human, not clear
    (HoldReason::AttemptLimit,     [STUCK,    HUMANS,     HUMANS,   DENIED],  STUCK),
    (HoldReason::CostLimit,        [RELEASED, HUMANS,     HUMANS,   DENIED],  STUCK),
    (HoldReason::TimeLimit,        [RELEASED, HUMANS,     HUMANS,   DENIED],  STUCK),
    (HoldReason::Artifact,         [RELEASED, RELEASED,   DENIED,   DENIED],  STUCK),
    (HoldReason::UncertainEffect,  [RELEASED, HUMANS,     HUMANS,   DENIED],  STUCK),
    (HoldReason::InvalidatedInput, [STUCK,    STUCK,      DENIED,   DENIED],  STUCK),
    (HoldReason::Restart,          [RELEASED, HUMANS,     HUMANS,   DENIED],  STUCK),
    (HoldReason::Operator,         [RELEASED, RELEASED,   DENIED,   DENIED],  STUCK),
    (HoldReason::Rule,             [RELEASED, RELEASED,   DENIED,   DENIED],  STUCK),
];

const STUCK: Cell<&str> = No(Place::Release, Code::HoldNotClear);
const HUMANS: Cell<&str> = No(Place::Authority, Code::HumanRequired);
const DENIED: Cell<&str> = No(Place::Authority, Code::AuthorizationDenied);

fn put(t: &mut Try, name: &str, column: Option<Standing>) {
    let key = id::<HoldId>(name);
    t.run().holds.remove_mut(&key);
    if let Some((state, allowed)) = column {
        let open = open_hold(t, name, HoldReason::Operator, run_scope(), NodeSet::All);
        let hold = Hold {
            state,
            allowed_decisions: allowed.to_vec(),
            ..open
        };
        t.run().holds.insert_mut(key, hold);
    }
}

/// Rules that are about where the hold stands: they are the columns themselves.
fn is_column(broken: &Break) -> bool {
    use praxis_model::guard::Guard as G;
    matches!(
        broken.guard,
        G::HoldNew | G::ResolveKnown | G::ResolveOpen | G::ResolveAllowed
    )
}

fn standing(t: &Try, name: &str) -> Option<&'static str> {
    let all = &t.world.state().holds;
    Some(
        all.get(&id::<HoldId>(name))
            .map_or("none", |hold| hold.state.name()),
    )
}

/// A recheck of a hold of this reason by this actor.
fn rechecking(reason: HoldReason, actor: &str) -> Try {
    let t = resolving(reason, HoldDecision::Recheck);
    let facts = t.world.facts(actor);
    Try { facts, ..t }
}

/// Nothing is clear: no budget, no time, an uncertain effect, a blocker of the same reason, no evidence.
fn unclear(t: &mut Try, reason: HoldReason) {
    let now_ms = t.facts.now_ms;
    t.facts.account = None;
    std::sync::Arc::make_mut(&mut t.run().contract).deadline_ms =
        aiws::decimal::Ms::from_u64(now_ms);
    open_work(t, AttemptStatus::Unknown);
    let blocker = aiws::record::Blocker {
        kind: reason,
        subject_id: id("s"),
        evidence: Vec::new(),
    };
    edit!(t.run().holds, id::<HoldId>("h1"), own => { own.blockers.push(blocker); });
    body!(t, ResolveHold).evidence.clear();
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
        out.push_str(&format!("\n### {}\n\n| broken rule |", row.scene));
        for (title, _) in COLUMNS {
            out.push_str(&format!(" {title} |"));
        }
        out.push_str(&format!("\n|{}\n", "---|".repeat(COLUMNS.len() + 1)));
        let sound = (scene.make)();
        for broken in rules(scene, is_column) {
            let name = broken.map_or("none".to_owned(), |broken| format!("{:?}", broken.guard));
            out.push_str(&format!("| {name} |"));
            for ((title, column), whole) in COLUMNS.iter().zip(row.cells) {
                let mut t = sound.clone();
                put(&mut t, row.hold, *column);
                // A rule that damages the hold has nothing to damage where there is none.
                let missing = column.is_none() && broken.is_some_and(|broken| is_of_hold(&broken));
                match holds(&mut t, whole, broken.as_ref().filter(|_| !missing), |t| {
                    standing(t, row.hold)
                }) {
                    Ok(cells) => out.push_str(&format!(" {} |", shown(&cells))),
                    Err(problem) => problems.push(format!("{} / {title} / {problem}", row.scene)),
                }
            }
            out.push('\n');
        }
    }
    out.push_str(
        "\n### resolveHold RECHECK, by the reason of the hold and by who decides\n\n| reason |",
    );
    for (title, _) in WHO {
        out.push_str(&format!(" {title}, all clear |"));
    }
    out.push_str(" a human, nothing clear |\n|---|---|---|---|---|---|\n");
    for (reason, cells, dark) in REASONS {
        out.push_str(&format!("| {reason} |"));
        let mut tries: Vec<(Try, Cell<&'static str>)> = WHO
            .iter()
            .zip(cells)
            .map(|((_, actor), cell)| (rechecking(*reason, actor), *cell))
            .collect();
        let mut last = rechecking(*reason, HUMAN);
        unclear(&mut last, *reason);
        tries.push((last, *dark));
        for (mut t, cell) in tries {
            match holds(&mut t, cell, None, |t| standing(t, "h1")) {
                Ok(cells) => out.push_str(&format!(" {} |", shown(&cells))),
                Err(problem) => {
                    problems.push(format!("{reason} / {} / {problem}", t.facts.actor_id))
                }
            }
        }
        out.push('\n');
    }
    if problems.is_empty() {
        Ok(out)
    } else {
        Err(problems)
    }
}

/// Rules that add to the hold `h1` of their scene.
fn is_of_hold(broken: &Break) -> bool {
    use praxis_model::guard::Guard as G;
    matches!(
        broken.guard,
        G::ResolveBlockers | G::ResolveAttempts | G::ResolveInputs
    )
}

/// Proves HS-01.1, HS-03.1, HS-03.5, HS-03.7, ERR-HOLD_STATE: every cell is what the wire form's table of holds says, under
/// every broken rule what the precedence makes of it.
#[test]
fn every_cell_of_the_holds_holds() {
    let _on = crate::scene::guarded();
    let problems = section().err().unwrap_or_default();
    assert!(
        problems.is_empty(),
        "{} cells:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

/// Every state and reason of a hold has its cells, and every command is in the table or touches no hold.
#[test]
fn every_state_reason_and_command_has_its_cells() {
    let _on = crate::scene::guarded();
    for state in HoldState::ALL {
        assert!(
            COLUMNS
                .iter()
                .any(|(_, column)| column.is_some_and(|(of, _)| of == *state)),
            "{state}"
        );
    }
    for decision in HoldDecision::ALL {
        let alone =
            |column: &Option<Standing>| column.is_some_and(|(_, allowed)| allowed == [*decision]);
        assert!(
            COLUMNS.iter().any(|(_, column)| alone(column)),
            "{decision}"
        );
    }
    for reason in HoldReason::ALL {
        assert!(REASONS.iter().any(|(of, _, _)| of == reason), "{reason}");
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
