//! What must hold: nothing changes on a refusal, and every scenario ends with the whole of its store checked.
//! Invariant: the replay asks no clock, no adapter and no engine, only the export's lines.
//! Called by the world.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use aiws::decimal::Dec;
use aiws::digest::{Digest, sha256};
use aiws::id::{ConsumerId, StreamId};
use aiws::record::AttemptStatus;
use praxis_engine::Shutdown;
use praxis_journal_format::{Sealed, export};
use praxis_model::account::AccountRow;
use praxis_model::command::Body;
use praxis_model::evolve;
use praxis_model::mission::{MissionState, cost_account};
use praxis_model::moves;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;

use crate::traces;
use crate::wire::id;
use crate::world::{MISSION, World};

/// More events than any scenario makes.
const OUTBOX: usize = 10_000;

/// Everything that a refusal may not change.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    runs: BTreeMap<String, (u64, Digest, Digest)>,
    mission: (u64, Digest, Digest),
    outbox: Vec<Digest>,
    account: AccountRow,
    artifacts: BTreeMap<String, Digest>,
    calls: u64,
}

impl Mark {
    /// How the world stands now.
    pub async fn of(world: &World) -> Mark {
        let engine = world.engine();
        let mut runs = BTreeMap::new();
        for run in engine.runs() {
            let state = engine
                .run_state(&run.mission_id, &run.run_id)
                .await
                .expect("a run");
            let (revision, hash) = (state.head.revision.get(), state.head.hash);
            runs.insert(
                run.run_id.as_str().to_owned(),
                (revision, hash, hash_of(&*state)),
            );
        }
        let mission = engine.mission_state(&id(MISSION)).await.expect("a mission");
        let (revision, hash) = (mission.head.revision.get(), mission.head.hash);
        Mark {
            runs,
            mission: (revision, hash, hash_of(&*mission)),
            outbox: outbox(world),
            account: account(world),
            artifacts: files(&world.artifacts())
                .into_iter()
                .map(|(name, bytes)| (name, sha256(&bytes)))
                .collect(),
            calls: world.outside.calls(),
        }
    }
}

/// The hash of a state: of its canonical bytes.
pub fn hash_of(state: &impl serde::Serialize) -> Digest {
    aiws::canonical::digest_of(state).expect("a state has canonical bytes")
}

/// What the outbox would deliver to somebody who acknowledged nothing.
pub fn outbox(world: &World) -> Vec<Digest> {
    let consumer: ConsumerId = id("nobody");
    let pending = world
        .host()
        .journal()
        .pending(&consumer, OUTBOX)
        .expect("an outbox");
    pending.into_iter().map(|(_, sealed)| sealed.hash).collect()
}

/// The mission's account.
pub fn account(world: &World) -> AccountRow {
    let key = cost_account(&Subject::mission(id(MISSION)));
    world
        .host()
        .journal()
        .view()
        .account(&key)
        .cloned()
        .expect("an account")
}

/// What is spent and reserved.
pub fn money(world: &World) -> (u64, u64) {
    let row = account(world);
    (row.spent.to_u64().unwrap(), row.reserved.to_u64().unwrap())
}

/// The export of the whole store.
pub fn export_of(world: &World) -> Vec<u8> {
    let mut bytes = Vec::new();
    world
        .host()
        .journal()
        .export(&mut bytes)
        .expect("an export");
    bytes
}

/// All states that follow from an export's events alone.
pub struct Replayed {
    /// The mission.
    pub mission: MissionState,
    /// Its runs.
    pub runs: BTreeMap<StreamId, RunState>,
    /// How many events there were.
    pub events: usize,
}

/// Folds an export, as whoever has nothing else would.
pub fn replay(export: &[u8]) -> Replayed {
    let events = export::read(export).expect("a sound export").events;
    let (mut mission, mut runs): (Option<MissionState>, BTreeMap<StreamId, RunState>) =
        (None, BTreeMap::new());
    for (_, Sealed { event, hash, .. }) in &events {
        for change in &event.outcome.transitions {
            // The commands of docs/HANDOFF.md are those that make the moves.
            let kind = event.kind;
            assert!(
                moves::are_of(kind, change),
                "{} made {change:?}",
                kind.name()
            );
        }
        if event.subject.run_id.is_none() {
            mission = Some(evolve::mission(mission, event, hash).expect("a mission's event"));
            if let Body::StartRun(_) = &event.command {
                let run = RunState::admitted(event, hash).expect("an admitted run");
                runs.insert(run.stream.clone(), run);
            }
            continue;
        }
        let state = runs.remove(&event.stream).expect("a run that was admitted");
        runs.insert(
            event.stream.clone(),
            evolve::run(state, event, hash).expect("a run's event"),
        );
    }
    Replayed {
        mission: mission.expect("a mission"),
        runs,
        events: events.len(),
    }
}

impl World {
    /// What every scenario ends with: the chain and every projection verified, the same states from the export
    /// alone, the account within its bound and equal to the attempts, and no raw token anywhere. Where the engine drives
    /// runs, it comes to rest first.
    pub async fn finish(&mut self) {
        if self.driver.is_some() {
            self.engine().drain().await;
        }
        let report = self
            .host()
            .journal()
            .verify_deep(&mut |_, _| {})
            .expect("a readable log");
        assert!(report.is_sound(), "{:?}", report.findings);
        let deep = report.deep.expect("what was decided again");
        assert_eq!(deep.reached, report.events, "{deep:?}");
        let export = export_of(self);
        let replayed = replay(&export);
        let mission = self
            .engine()
            .mission_state(&id(MISSION))
            .await
            .expect("a mission");
        assert_eq!(hash_of(&replayed.mission), hash_of(&*mission));
        let listed = self.engine().runs();
        assert_eq!(listed.len(), replayed.runs.len());
        for run in listed {
            let state = self
                .engine()
                .run_state(&run.mission_id, &run.run_id)
                .await
                .expect("a run");
            assert_eq!(hash_of(&replayed.runs[&state.stream]), hash_of(&*state));
        }
        balanced(&account(self), &replayed);
        assert_eq!(self.outside.calls(), 0);
        self.close(Shutdown::Drain).await;
        self.no_token(&export);
    }

    /// The raw tokens that were handed out stand neither in the store's files, nor in the export, nor in any trace.
    fn no_token(&self, export: &[u8]) {
        let mut all = files(&self.store());
        all.push(("the export".to_owned(), export.to_vec()));
        all.push(("a trace".to_owned(), traces::since(self.traced)));
        for (name, bytes) in &all {
            for token in &self.tokens {
                let found = bytes
                    .windows(token.len())
                    .any(|window| window == token.as_bytes());
                assert!(!found, "a raw claim token stands in {name}");
            }
        }
    }
}

/// The account is what the attempts say, and within its bound but for recorded overruns.
fn balanced(row: &AccountRow, replayed: &Replayed) {
    let (mut spent, mut reserved) = (0, 0);
    for attempt in replayed.runs.values().flat_map(|run| run.attempts.values()) {
        let number = |dec: Dec| dec.to_u64().unwrap();
        match attempt.status {
            AttemptStatus::ConfirmedApplied => spent += number(attempt.actual.expect("a cost")),
            AttemptStatus::ConfirmedNotApplied => {}
            _ => reserved += number(attempt.reserved),
        }
    }
    assert_eq!(
        (row.spent.to_u64(), row.reserved.to_u64()),
        (Some(spent), Some(reserved))
    );
    let (bound, overrun) = (row.bound.to_u64().unwrap(), row.overrun.to_u64().unwrap());
    assert!(spent + reserved <= bound + overrun, "{row:?}");
}

/// Every file below a directory with its bytes.
pub fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push((path.display().to_string(), fs::read(&path).expect("a file")));
        }
    }
    all
}
