//! Questions that a run's owner puts to others: to its program, and to its mission.
//!
//! Invariant: a program is asked on a thread that may block, outside every actor, and its answer comes back as a
//! message; what it panics with becomes a refusal of its step. Called by the scheduler.

use std::sync::Arc;

use aiws::digest::{Digest, sha256};
use aiws::error::{Code, Error};
use aiws::id::{AttemptId, EvidenceId, MissionId};
use aiws::record::Node;
use praxis_model::mission::MissionState;
use praxis_model::plan::Step;
use praxis_model::run::RunState;
use ractor::ActorRef;

use crate::adapter::EffectReport;
use crate::core::Core;
use crate::effects::operation_of;
use crate::error::closing;
use crate::limits::EVIDENCE_BYTES;
use crate::message::{MissionMessage, Planned, Request, Response, RunMessage};
use crate::mission_actor;
use crate::program::{EvidenceRecord, NodeContext, Program};
use crate::supervisor::{ask_mission, ensure_mission};

/// What evidence ids that the engine gives begin with; the rest is the record's digest.
const EVIDENCE_PREFIX: &str = "sha256:";

/// Asks the program about a step.
pub(crate) fn program(
    core: &Arc<Core>,
    program: Arc<dyn Program>,
    state: Arc<RunState>,
    node: Node,
    step: Step,
    owner: ActorRef<RunMessage>,
) {
    let (core, guard) = (Arc::clone(core), core.work.enter(None));
    tokio::spawn(async move {
        let answer = match mission_state(&core, &state.subject.mission_id, Origin::Inside).await {
            Ok(mission) => answer(&core, program, state, mission, node, step.clone()).await,
            Err(error) => Err(error),
        };
        // An owner that is gone has a successor, which asks anew.
        let _ = owner.cast(RunMessage::Planned {
            step,
            answer: Box::new(answer),
        });
        // The store can be opened again as soon as nothing is in flight, so let go of it first.
        drop(core);
        drop(guard);
    });
}

async fn answer(
    core: &Arc<Core>,
    program: Arc<dyn Program>,
    state: Arc<RunState>,
    mission: Arc<MissionState>,
    node: Node,
    step: Step,
) -> Result<Planned, Error> {
    let core = Arc::clone(core);
    let asked = tokio::task::spawn_blocking(move || {
        let ctx = context(&core, state, mission, node);
        match step {
            Step::Conclude { .. } => program.conclude(&ctx).map(Planned::Conclusion),
            Step::Retry { .. } => match program.gives_up(&ctx)? {
                true => program.conclude(&ctx).map(Planned::Conclusion),
                false => Ok(Planned::Retry),
            },
            _ => program.effect(&ctx).map(Planned::Effect),
        }
    });
    asked.await.unwrap_or_else(|_| {
        Err(Error::new(
            Code::ActorLost,
            "expected an answer from the run's program, found that it panicked",
        ))
    })
}

/// What a program sees of a node.
pub(crate) fn context(
    core: &Core,
    state: Arc<RunState>,
    mission: Arc<MissionState>,
    node: Node,
) -> NodeContext {
    let operation = operation_of(&state, &node.id).cloned();
    let attempts = operation.iter().flat_map(|operation| &operation.attempts);
    let ids: Vec<(AttemptId, EvidenceId)> = attempts
        .filter_map(|id| state.attempts.get(id))
        .flat_map(|attempt| {
            attempt
                .evidence
                .iter()
                .map(|id| (attempt.attempt_id.clone(), id.clone()))
        })
        .collect();
    let evidence = ids
        .into_iter()
        .filter_map(|(attempt, id)| evidence(core, attempt, id))
        .collect();
    NodeContext {
        state,
        mission,
        node,
        operation,
        evidence,
        artifacts: Arc::clone(&core.artifacts),
        now_ms: core.now_ms(),
    }
}

/// A stored record by its id; none where the id is not one of ours or the bytes are gone.
fn evidence(core: &Core, attempt_id: AttemptId, evidence_id: EvidenceId) -> Option<EvidenceRecord> {
    let digest: Digest = evidence_id
        .as_str()
        .strip_prefix(EVIDENCE_PREFIX)?
        .parse()
        .ok()?;
    // Whatever the provider says, only the bytes of that digest are the record (ART-6).
    let bytes = core
        .artifacts
        .read_digest(&digest, EVIDENCE_BYTES)
        .ok()
        .filter(|bytes| sha256(bytes) == digest)?;
    let report = aiws::strict::parse(&bytes)
        .ok()
        .and_then(|record| EffectReport::from_record(&record));
    Some(EvidenceRecord {
        attempt_id,
        evidence_id,
        report,
        bytes: Arc::from(bytes),
    })
}

/// The id of a stored record.
pub(crate) fn evidence_id(digest: &Digest) -> Result<EvidenceId, Error> {
    EvidenceId::new(format!("{EVIDENCE_PREFIX}{digest}"))
}

/// Sends a command to the mission's owner. An owner is started for a mission that is open, or for a command that
/// would open it: a name costs no memory.
pub(crate) async fn mission_command(
    core: &Arc<Core>,
    mission: &MissionId,
    request: Request,
) -> Result<Response, Error> {
    if core.is_closing() {
        return Err(closing());
    }
    if !core.is_open(mission) {
        mission_actor::before_opening(core, mission, &request)?;
    }
    let entry = ensure_mission(core, mission).await?;
    let permit = entry.kept.permit()?;
    ask_mission(&entry, |reply| MissionMessage::Take {
        request: Box::new(request),
        permit,
        reply,
    })
    .await
}

/// The mission's state.
pub(crate) async fn mission_state(
    core: &Core,
    mission: &MissionId,
    origin: Origin,
) -> Result<Arc<MissionState>, Error> {
    if !core.is_open(mission) {
        return Err(no_such_mission(mission));
    }
    let entry = ensure_mission(core, mission).await?;
    let permit = match origin {
        Origin::Outside => Some(entry.kept.permit()?),
        Origin::Inside => None,
    };
    let state = ask_mission(&entry, |reply| MissionMessage::Snapshot { permit, reply }).await?;
    state.ok_or_else(|| no_such_mission(mission))
}

/// Who looks at a state: what comes from outside needs room in the mailbox (T-55).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A host or a worker.
    Outside,
    /// The engine.
    Inside,
}

fn no_such_mission(mission: &MissionId) -> Error {
    Error::new(
        Code::NotFound,
        format!("expected an open mission, found none named {mission}"),
    )
}
