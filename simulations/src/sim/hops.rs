//! The five hops without actors: facts, decide, link, seal, fold, and the append with its conditions.
//!
//! Invariant: as the engine does it, with the product's own functions; nothing is swapped in here. Called by owners and
//! people of a simulation.

use std::collections::{BTreeMap, BTreeSet};

use aiws::decimal::{Dec, U64};
use aiws::digest::Digest;
use aiws::error::Error;
use aiws::id::{EvidenceId, Id, RequestId};
use aiws::json::Value;
use aiws::record::{ActorKind, AdmissionProposal};
use praxis_artifacts::{ArtifactProvider, read_verified};
use praxis_journal::{Append, Conditions, View};
use praxis_journal_format::{Sealed, link, seal};
use praxis_model::command::{Body, Command, Intent};
use praxis_model::event::{Event, Head};
use praxis_model::facts::{Facts, MaterialError, VerifiedMaterial};
use praxis_model::mission::{MissionState, cost_account};
use praxis_model::register::RegisterRead;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use praxis_model::{decide, draft, evolve, needs};

use crate::cast;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// The engine, in a class of decision.
    Engine(&'static str),
    /// A person.
    Person,
    /// An agent, which may work and decide nothing.
    Agent,
}

/// The engine's ordinary class of decision.
pub(super) const ENGINE: Who = Who::Engine("POLICY");

/// What is asked.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub who: Who,
    pub intent: Intent,
    /// The request's id; none for what the engine does itself.
    pub request: Option<String>,
    /// Evidence that the host confirms.
    pub evidence: Vec<EvidenceId>,
    /// The effect that the host admits.
    pub admission: Option<(Id, AdmissionProposal)>,
    /// The token that a claim hands out.
    pub claim: Option<Digest>,
}

impl Ask {
    pub fn of(who: Who, body: Body) -> Self {
        Self::intent(who, Intent::Command { body })
    }

    pub fn intent(who: Who, intent: Intent) -> Self {
        Self {
            who,
            intent,
            request: None,
            evidence: Vec::new(),
            admission: None,
            claim: None,
        }
    }

    pub fn with_evidence(mut self, evidence: &EvidenceId) -> Self {
        self.evidence.push(evidence.clone());
        self
    }

    pub fn with_request(mut self, request: Option<String>) -> Self {
        self.request = request;
        self
    }
}

/// What facts are gathered from.
pub(super) struct Around<'a> {
    pub view: &'a View,
    pub artifacts: &'a dyn ArtifactProvider,
    pub now_ms: u64,
    /// The defect that material is taken on trust.
    pub trusting: bool,
}

/// A run's command that was decided, sealed and folded, ready to be handed in.
pub(super) struct Decided<S> {
    pub append: Append,
    pub next: S,
}

/// Decides a run's command.
pub(super) fn run(
    around: &Around<'_>,
    state: &RunState,
    ask: &Ask,
) -> Result<Decided<RunState>, Error> {
    let mut facts = facts(around, &state.subject, ask, state.last_ms)?;
    let mut command = command(ask, &state.subject, state.head, Some(state.epoch))?;
    command.body = draft::command(state, &ask.intent, &facts)?;
    facts.registers = registers(around.view, state, &command.body, &facts);
    // Drafted again: what was read decides what is drafted.
    command.body = draft::command(state, &ask.intent, &facts)?;
    material(around, state, &command.body, &mut facts);
    let decision = decide::run(state, &command, &facts)?;
    let event = link(
        state.subject.clone(),
        state.head,
        &command,
        &decision,
        &facts,
        facts.now_ms,
        Some(state.epoch),
    );
    let sealed = sealed(event)?;
    let next = evolve::run(state.clone(), &sealed.event, &sealed.hash).map_err(illegal)?;
    let conditions = Conditions::of(
        &state.subject,
        Some(state.epoch),
        &command,
        &decision,
        &facts.actor_id,
    );
    Ok(Decided {
        append: Append {
            sealed: vec![sealed],
            conditions,
        },
        next,
    })
}

/// Decides a mission's command.
pub(super) fn mission(
    around: &Around<'_>,
    state: Option<&MissionState>,
    ask: &Ask,
) -> Result<Decided<MissionState>, Error> {
    let subject = cast::mission()?;
    let head = state.map_or(
        Head {
            revision: U64(0),
            hash: Digest::ZERO,
        },
        |state| state.head,
    );
    let facts = facts(
        around,
        &subject,
        ask,
        state.map_or(0, |state| state.last_ms),
    )?;
    let mut command = command(ask, &subject, head, None)?;
    if let Intent::Command { body } = &ask.intent {
        command.body = body.clone();
    }
    if state.is_none() {
        command.expected_revision = None;
    }
    let decision = decide::mission(state, &command, &facts)?;
    let event = link(
        subject.clone(),
        head,
        &command,
        &decision,
        &facts,
        facts.now_ms,
        None,
    );
    let sealed = sealed(event)?;
    let next = evolve::mission(state.cloned(), &sealed.event, &sealed.hash).map_err(illegal)?;
    let conditions = Conditions::of(&subject, None, &command, &decision, &facts.actor_id);
    Ok(Decided {
        append: Append {
            sealed: vec![sealed],
            conditions,
        },
        next,
    })
}

/// The run's state over the events of its stream, from the event that admitted it on.
pub(super) fn fold(log: &[Sealed], subject: &Subject) -> Option<Result<RunState, Error>> {
    let stream = subject.stream();
    let admission = log
        .iter()
        .find(|sealed| sealed.event.outcome.opens.contains(&stream))?;
    let mut state = match RunState::admitted(&admission.event, &admission.hash) {
        Ok(state) => state,
        Err(error) => return Some(Err(illegal(error))),
    };
    for sealed in log.iter().filter(|sealed| sealed.event.stream == stream) {
        state = match evolve::run(state, &sealed.event, &sealed.hash) {
            Ok(state) => state,
            Err(error) => return Some(Err(illegal(error))),
        };
    }
    Some(Ok(state))
}

/// The mission's state over its events.
pub(super) fn fold_mission(log: &[Sealed]) -> Result<Option<MissionState>, Error> {
    let stream = cast::mission()?.stream();
    let mut state = None;
    for sealed in log.iter().filter(|sealed| sealed.event.stream == stream) {
        state = Some(evolve::mission(state, &sealed.event, &sealed.hash).map_err(illegal)?);
    }
    Ok(state)
}

/// Seals an event again after a change: what somebody sends who made it up.
pub(super) fn sealed(event: Event) -> Result<Sealed, Error> {
    seal(event).map_err(|error| Error::new(error.code(), error.to_string()))
}

fn illegal(error: evolve::IllegalEvent) -> Error {
    Error::new(error.code(), error.to_string())
}

fn command(ask: &Ask, subject: &Subject, head: Head, epoch: Option<u64>) -> Result<Command, Error> {
    let request_id = ask.request.as_deref().map(RequestId::new).transpose()?;
    let digest = aiws::canonical::digest_of(&ask.intent)?;
    let body = match &ask.intent {
        Intent::Command { body } => body.clone(),
        // Replaced by the draft before anything is decided.
        _ => Body::RecoverOwnership(praxis_model::command::RecoverOwnership {
            expected_epoch: Dec::ZERO,
            reason: "none".to_owned(),
            decision_ref: None,
        }),
    };
    Ok(Command {
        mission_id: subject.mission_id.clone(),
        run_id: subject.run_id.clone(),
        request_id,
        request_digest: digest,
        expected_revision: Some(Dec::from(head.revision)),
        owner_epoch: epoch.map(Dec::from_u64),
        body,
    })
}

fn facts(around: &Around<'_>, subject: &Subject, ask: &Ask, last_ms: u64) -> Result<Facts, Error> {
    let (actor, actor_kind, class) = match ask.who {
        Who::Engine(class) => ("engine", ActorKind::System, class),
        Who::Person => ("ann", ActorKind::Human, "AT_TERMINAL"),
        Who::Agent => ("agent", ActorKind::Agent, "POLICY"),
    };
    let decision_ref = match ask.who {
        Who::Person => Some("ann-decided"),
        Who::Engine(decide::LOST_READ_RULE) => Some("ann-said-so"),
        _ => None,
    };
    let now_ms = around.now_ms.max(last_ms);
    let mission = Subject::mission(subject.mission_id.clone());
    Ok(Facts {
        allowed: true,
        actor_id: cast::id(actor)?,
        actor_kind,
        policy: cast::reference("policy")?,
        decision_class: class.to_owned(),
        decision_ref: decision_ref.map(cast::id).transpose()?,
        authorized_at_ms: now_ms,
        now_ms,
        materials: BTreeMap::new(),
        material_errors: BTreeMap::new(),
        admissions: ask.admission.iter().cloned().collect(),
        registers: Vec::new(),
        account: around.view.account(&cost_account(&mission)).cloned(),
        outer_gates: around.view.gates(&mission).to_vec(),
        clear_evidence: ask.evidence.iter().cloned().collect::<BTreeSet<_>>(),
        restart_allowed: true,
        claim_fingerprint: ask.claim,
        recovery_authority: matches!(ask.who, Who::Engine(_)),
        clock_stepped: false,
    })
}

fn registers(view: &View, state: &RunState, body: &Body, facts: &Facts) -> Vec<RegisterRead> {
    let read = |register| {
        let row = view.register(&register);
        let (revision, value) =
            row.map_or((0, Value::Null), |row| (row.revision, row.value.clone()));
        RegisterRead {
            register,
            revision: U64(revision),
            value,
        }
    };
    needs::registers(state, body, facts)
        .into_iter()
        .map(read)
        .collect()
}

fn material(around: &Around<'_>, state: &RunState, body: &Body, facts: &mut Facts) {
    for artifact in needs::artifacts(state, body) {
        let size_bytes = match around.trusting {
            true => Ok(artifact.size_bytes.to_u64().unwrap_or(0)),
            false => read_verified(around.artifacts, &artifact, facts.now_ms)
                .map(|bytes| bytes.len() as u64),
        };
        match size_bytes {
            Ok(size_bytes) => {
                let size_bytes = U64(size_bytes);
                facts
                    .materials
                    .insert(artifact.digest, VerifiedMaterial { size_bytes });
            }
            Err(error) => {
                let found = match error.code() {
                    aiws::error::Code::ArtifactMismatch => MaterialError::Mismatch,
                    _ => MaterialError::Unavailable,
                };
                facts.material_errors.insert(artifact.digest, found);
            }
        }
    }
}
