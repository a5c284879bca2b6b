//! The gate matrix: what an open hold, a pending cancellation and an ended run do to every command of a run.
//!
//! Invariant: written by hand from section 11 of the wire form, not from the command table of the code. Only the stage of
//! gates is asked: a command that passes it may still be refused for what it is about.

use aiws::error::Code;
use aiws::record::{HoldReason, Lifecycle, NodeSet};
use praxis_model::command::CommandType;
use praxis_model::event::Gate;

use crate::scene::{self, Try};

/// A gate's title, and how it is closed.
type Column = (&'static str, fn(&mut Try));

/// What is closed.
const COLUMNS: [Column; 4] = [
    ("OPEN hold", |t| {
        t.hold("zz-run", HoldReason::Operator, NodeSet::All)
    }),
    ("cancellation pending", |t| {
        t.run().lifecycle = Lifecycle::Canceling
    }),
    ("ended run", |t| t.run().lifecycle = Lifecycle::Failed),
    ("gate above the run", |t| {
        t.facts.outer_gates = vec![Gate::Cancel]
    }),
];

const PASS: Option<Code> = None;
const HOLD: Option<Code> = Some(Code::HoldActive);
const ENDED: Option<Code> = Some(Code::TerminalExecution);

/// Section 11. PAUSE is in no vocabulary of this build.
#[rustfmt::skip]
const MATRIX: &[(&str, [Option<Code>; 4])] = &[
    ("claimDelivery",                          [HOLD, HOLD, ENDED, HOLD]),
    ("acknowledgeDelivery",                    [HOLD, HOLD, ENDED, HOLD]),
    ("admitConsumer of work",                  [HOLD, HOLD, ENDED, HOLD]),
    ("admitConsumer of a control node",        [HOLD, HOLD, ENDED, HOLD]),
    ("admitConsumer of an ANY join",           [HOLD, HOLD, ENDED, HOLD]),
    ("dispatch",                               [HOLD, HOLD, ENDED, HOLD]),
    ("retry",                                  [HOLD, HOLD, ENDED, HOLD]),
    ("activateGraph",                          [HOLD, HOLD, ENDED, HOLD]),
    ("completeRun",                            [HOLD, HOLD, ENDED, HOLD]),
    ("commitBoundary of a TASK",               [PASS, PASS, ENDED, PASS]),
    ("commitBoundary BLOCKED",                 [PASS, PASS, ENDED, PASS]),
    ("commitBoundary of a DECISION",           [PASS, PASS, ENDED, PASS]),
    ("releaseDelivery",                        [PASS, PASS, PASS,  PASS]),
    ("settle as applied",                      [PASS, PASS, PASS,  PASS]),
    ("settle as unknown",                      [PASS, PASS, PASS,  PASS]),
    ("reconcile",                              [PASS, PASS, PASS,  PASS]),
    ("invalidateHandoff",                      [PASS, PASS, PASS,  PASS]),
    ("placeHold",                              [PASS, PASS, ENDED, PASS]),
    ("resolveHold RECHECK of OPERATOR",        [PASS, PASS, ENDED, PASS]),
    ("resolveHold CANCEL",                     [PASS, PASS, PASS,  PASS]),
    ("recoverOwnership",                       [PASS, PASS, PASS,  PASS]),
    ("recordSummary by a human",               [PASS, PASS, PASS,  PASS]),
    ("cancelRun",                              [PASS, PASS, ENDED, PASS]),
    ("finishCancelRun",                        [PASS, PASS, ENDED, PASS]),
    ("approve",                                [PASS, PASS, ENDED, PASS]),
    ("revokeApproval",                         [PASS, PASS, ENDED, PASS]),
    ("verify",                                 [PASS, PASS, ENDED, PASS]),
    ("accept",                                 [PASS, PASS, ENDED, PASS]),
];

/// The generated section, or what does not hold.
pub fn section() -> Result<String, Vec<String>> {
    let mut out = String::from("| command |");
    let mut problems = Vec::new();
    for (title, _) in COLUMNS {
        out.push_str(&format!(" {title} |"));
    }
    out.push_str("\n|---|---|---|---|---|\n");
    let scenes = scene::all();
    for (name, cells) in MATRIX {
        let scene = scenes
            .iter()
            .find(|scene| scene.name == *name)
            .expect("a scene");
        out.push_str(&format!("| {name} |"));
        let sound = (scene.make)();
        for ((title, close), wanted) in COLUMNS.iter().zip(cells) {
            let mut t = sound.clone();
            close(&mut t);
            let found = t.decide().err().map(|error| error.code());
            let gate =
                found.filter(|code| matches!(code, Code::HoldActive | Code::TerminalExecution));
            if gate != *wanted {
                problems.push(format!(
                    "{name} / {title}: expected {wanted:?}, found {found:?}"
                ));
            }
            out.push_str(&format!(" {} |", wanted.map_or("passes", Code::name)));
        }
        out.push('\n');
    }
    if problems.is_empty() {
        Ok(out)
    } else {
        Err(problems)
    }
}

/// Proves ERR-PREC.2: the stage of gates stops what launches work, and what maintains or resolves has its exceptions.
#[test]
fn every_gate_holds() {
    let _on = crate::scene::guarded();
    let problems = section().err().unwrap_or_default();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Every command of a run has a row; those of the mission have no run that could be held.
#[test]
fn every_command_of_a_run_has_its_gates() {
    let _on = crate::scene::guarded();
    let scenes = scene::all();
    let of_mission = [
        CommandType::OpenMission,
        CommandType::StartRun,
        CommandType::GrantCommand,
    ];
    for command in CommandType::ALL {
        let mut mine = scenes.iter().filter(|scene| scene.kind == *command);
        let has = mine.any(|scene| MATRIX.iter().any(|(name, _)| *name == scene.name));
        assert_ne!(has, of_mission.contains(command), "{}", command.name());
    }
}
