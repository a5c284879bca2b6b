//! Effects that the engine has by itself, and a process that is killed between the effect and its settlement.
//! Invariant: the outside keeps its own record in a file, so that it survives the process; the record says how often it
//! was asked. Scenario C-10 and case F-01.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiws::decimal::Dec;
use aiws::error::{Code, Error};
use aiws::object;
use aiws::record::{AttemptStatus, EffectClass, HoldState};
use praxis_engine::crash::Point;
use praxis_engine::{
    Adapter, BoxFuture, Conclusion, EffectCall, EffectOutcome, EffectPlan, EffectReport, Lookup,
    NodeContext, Program, Shutdown,
};
use praxis_model::report;
use praxis_model::run::RunState;

use crate::bodies::{self, lin};
use crate::crash::{doomed, killed};
use crate::oracle::money;
use crate::wire::id;
use crate::world::{HUMAN, RULE, World};

/// Drives every run: each TASK through the outside, each control node at once.
struct Driver;

impl Program for Driver {
    fn effect(&self, ctx: &NodeContext) -> Result<EffectPlan, Error> {
        let action = object! { "action": "do", "scope": "here", "payload": object! { "what": &ctx.node.id } };
        EffectPlan::new("outside", action, "3", "root")
    }

    fn conclude(&self, ctx: &NodeContext) -> Result<Conclusion, Error> {
        let mut conclusion = Conclusion::completed(&ctx.node);
        if let (Conclusion::Boundary(boundary), "a") = (&mut conclusion, ctx.node.id.as_str()) {
            let put = ctx
                .artifacts
                .put(b"made by a", "a", "text/plain", &id(HUMAN), 900_000);
            boundary.artifacts.push(put.unwrap());
        }
        Ok(conclusion)
    }
}

/// The outside: one line of a file per call, which a look-up reads where it may.
struct Recorded {
    file: PathBuf,
    answers: bool,
}

impl Adapter for Recorded {
    fn class(&self) -> EffectClass {
        EffectClass::External
    }

    fn call(&self, call: EffectCall) -> BoxFuture<'_, EffectReport> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.file)
            .unwrap();
        writeln!(file, "{} {}", call.node_id, call.attempt_id).unwrap();
        for (_, bytes) in call.inputs.iter().flat_map(|input| &input.artifacts) {
            writeln!(file, "{INPUT}{}", String::from_utf8_lossy(bytes)).unwrap();
        }
        Box::pin(async { applied() })
    }

    fn lookup<'a>(&'a self, call: &'a EffectCall) -> BoxFuture<'a, Lookup> {
        let known = calls(&self.file)
            .iter()
            .any(|line| line.ends_with(&format!(" {}", call.attempt_id)));
        let why = "the outside does not answer".to_owned();
        Box::pin(async move {
            match self.answers && known {
                true => Lookup::Conclusive(applied()),
                false => Lookup::Inconclusive { why },
            }
        })
    }
}

/// Before what a call was given.
const INPUT: &str = "input: ";

/// What all calls were given.
pub fn seen_inputs(root: &Path) -> Vec<String> {
    let all = calls(&root.join("outside")).into_iter();
    all.filter_map(|line| line.strip_prefix(INPUT).map(str::to_owned))
        .collect()
}

fn applied() -> EffectReport {
    EffectReport {
        outcome: EffectOutcome::Applied {
            actual: Dec::from_u64(3),
        },
        evidence: object! { "done": true },
    }
}

/// The outside's own record.
fn calls(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// How often a node's effect was had.
pub fn calls_of(root: &Path, node: &str) -> usize {
    let all = calls(&root.join("outside"));
    all.iter()
        .filter(|line| line.starts_with(&format!("{node} ")))
        .count()
}

/// A world whose engine drives its runs.
pub fn driven(root: &Path, lost: bool, answers: bool) -> World {
    let mut w = World::closed(root, lost, None);
    w.policy.rules().drafts = true;
    drive(&mut w, root, answers);
    w
}

fn drive(w: &mut World, root: &Path, answers: bool) {
    let file = root.join("outside");
    w.driver = Some((Arc::new(Driver), Arc::new(Recorded { file, answers })));
}

/// In the process that is to be killed: LIN under AUTO, and the engine does the rest.
async fn life(root: &Path) {
    let mut w = driven(root, false, false);
    w.open().await;
    let mut config = bodies::config();
    config["restartPolicy"] = "AUTO".into();
    w.start(&lin(), &config).await;
    w.wait_for_epoch(99).await;
}

fn first(state: &RunState) -> AttemptStatus {
    let mut all = state.attempts.values();
    let first = all.find(|attempt| attempt.epoch.get() == 1);
    first.expect("the attempt of the killed process").status
}

/// The run once it is as wanted.
pub async fn until(w: &World, wanted: impl Fn(&RunState) -> bool) -> Arc<RunState> {
    let (mission, run) = (id(crate::world::MISSION), id(&w.run));
    let mut states = w.engine().watch(&mission, &run).await.expect("a run");
    let wanted = states.wait_for(|state| wanted(state));
    let waited = tokio::time::timeout(std::time::Duration::from_secs(60), wanted).await;
    Arc::clone(&waited.expect("the run gets there").expect("an open engine"))
}

// openMission, startRun, activateGraph, admission and dispatch together; the settlement would be the fifth append.
const SETTLEMENT: u64 = 5;

/// Proves C-10, FV-EFF.2, FV-EFF.3, FV-EFF.4, HS-06.3, HS-03.7, T-20: the effect was applied and its process killed before
/// it could say so. The next one, under AUTO, does not ask for it again, shows the doubt and keeps the reservation; a look-up
/// settles it; the hold that a person placed for the doubt is released by a person alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_10_dispatched_unsettled() {
    if let Some(root) = doomed() {
        life(&root).await;
        panic!("the process outlived its crash point");
    }
    for lost in [false, true] {
        let root = killed(
            "driven::c_10_dispatched_unsettled",
            SETTLEMENT,
            Point::BeforeCommit,
        );
        let mut w = driven(root.path(), lost, false);
        w.open().await;
        let state = w.state().await;
        assert_eq!(
            (state.epoch, first(&state)),
            (2, AttemptStatus::Dispatched),
            "recovered by the engine, under AUTO"
        );
        assert_eq!(calls_of(root.path(), "a"), 1, "the effect is there");
        let told = report::of(&state);
        assert_eq!(told.uncertain.len(), 1);
        assert_eq!(money(&w), (0, 3));
        let hold = bodies::hold(&state, "doubt", "UNCERTAIN_EFFECT", &["RECHECK", "CANCEL"]);
        w.send(HUMAN, hold).await;
        let recheck = bodies::resolve("doubt", "RECHECK", &[]);
        w.refuse(HUMAN, recheck.clone(), Code::HoldNotClear).await;
        w.close(Shutdown::Now).await;

        drive(&mut w, root.path(), true);
        w.open().await;
        // Settled by the look-up, and a's result told, which a hold does not stop (T-36). b waits behind the hold.
        let state = until(&w, |state| state.manifests.size() == 1).await;
        assert_eq!(
            (state.epoch, first(&state)),
            (3, AttemptStatus::ConfirmedApplied)
        );
        assert_eq!(money(&w), (3, 0));
        w.refuse(RULE, recheck.clone(), Code::HumanRequired).await;
        let open = |state: &RunState| {
            let mut holds = state.holds.values();
            holds.any(|hold| hold.state == HoldState::Open)
        };
        assert!(open(&*w.state().await));
        w.send(HUMAN, recheck).await;
        let done = |state: &RunState| state.manifests.size() == 3;
        until(&w, done).await;
        let calls = (calls_of(root.path(), "a"), calls_of(root.path(), "b"));
        assert_eq!(calls, (1, 1), "each effect once");
        assert_eq!(money(&w), (6, 0));
        w.finish().await;
    }
}

/// Proves F-01, FV-EFF.2, HD-02.12: killed between the effect's result and its step's commit, with an outside that keeps no
/// record: no second dispatch; the effect is not settled until a person brings evidence, and then the run goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_01_kill_between_effect_and_commit() {
    if let Some(root) = doomed() {
        life(&root).await;
        panic!("the process outlived its crash point");
    }
    for lost in [false, true] {
        let root = killed(
            "driven::f_01_kill_between_effect_and_commit",
            SETTLEMENT,
            Point::BeforeCommit,
        );
        let mut w = driven(root.path(), lost, false);
        for epoch in [2, 3] {
            w.open().await;
            let state = w.state().await;
            assert_eq!(
                (state.epoch, first(&state)),
                (epoch, AttemptStatus::Dispatched)
            );
            assert_eq!((calls_of(root.path(), "a"), money(&w)), (1, (0, 3)));
            if epoch == 2 {
                w.close(Shutdown::Now).await;
            }
        }
        let mut attempts = w
            .state()
            .await
            .attempts
            .values()
            .cloned()
            .collect::<Vec<_>>();
        let lost_one = attempts.remove(0).attempt_id;
        let found = bodies::settle(
            &*w.state().await,
            "reconcile",
            lost_one.as_str(),
            "CONFIRMED_APPLIED",
            3,
        );
        w.send(HUMAN, found).await;
        until(&w, |state| state.manifests.size() == 3).await;
        let calls = (calls_of(root.path(), "a"), calls_of(root.path(), "b"));
        assert_eq!((calls, money(&w)), ((1, 1), (6, 0)));
        w.finish().await;
    }
}
