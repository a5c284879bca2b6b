//! Facts gathering: what a command's decision needs beyond state and command.
//!
//! Invariant: every fact comes from the host's ports or the journal's published view, never from the request
//! (HC-ENV.6, CRD-2); registers come with the revision that the append will pin. Called by hop 1.

mod material;

use std::collections::BTreeMap;
use std::sync::Arc;

use aiws::decimal::{Dec, DecPlus};
use aiws::digest::Digest;
use aiws::error::{Code, Error, Stage};
use aiws::id::Id;
use aiws::record::Ref;
use aiws::token::ClaimToken;
use praxis_model::account::AccountRow;
use praxis_model::command::{Body, Command};
use praxis_model::facts::Facts;
use praxis_model::mission::MissionState;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use praxis_model::{draft, needs};

use crate::capability::{CLASS_LOST_READ_RULE, Capability};
use crate::core::Core;
use crate::error::actor_lost;
use crate::message::{Request, What};
use crate::ports::{Ask, Authorization, Draft, LeaseBounds};
use material::materials;

/// Verified copies of material, by digest.
pub(crate) type Copies = BTreeMap<Digest, Arc<[u8]>>;

/// A command with its facts, ready to be decided.
pub(crate) struct Gathered {
    pub(crate) command: Command,
    pub(crate) facts: Facts,
    /// Verified copies of what was read, for the effect that may follow.
    pub(crate) bytes: Copies,
    /// The token that a claim hands out.
    pub(crate) token: Option<ClaimToken>,
}

/// Facts for a run's command. `account` is the mission's, with what the steps before in a sequence post.
pub(crate) async fn run(
    core: &Arc<Core>,
    state: &Arc<RunState>,
    request: &Request,
    account: Option<AccountRow>,
) -> Result<Gathered, Error> {
    let mut facts = base(core, &state.subject, request, state.last_ms)?;
    facts.account = account;
    let mut command = command(state, request, &facts)?;
    let (draft, now_ms) = (draft_of(&request.what), facts.now_ms);
    let ask = Ask {
        capability: &request.capability,
        command: &command.body,
        subject: &state.subject,
        run: Some(state),
        mission: None,
        now_ms,
        draft_admission: draft,
    };
    let answer = core.authorizer.authorize(&ask);
    let lease = answer.lease;
    settle_authority(&mut facts, &request.capability, answer)?;
    if request.capability.is_engine() && facts.decision_class == CLASS_LOST_READ_RULE {
        // The engine acts in the name of the human who approved the contract's rule (T-20).
        facts.decision_ref = state
            .contract
            .lost_reads
            .as_ref()
            .map(|rule| rule.decision_ref.clone());
    }
    facts.registers = needs::registers(state, &command.body, &facts)
        .into_iter()
        .map(|key| core.register(key))
        .collect();
    if let What::Intent { intent, .. } = &request.what {
        command.body = draft::command(state, intent, &facts)?;
    }
    bound_lease(state, &mut command.body, lease)?;
    let mut bytes = BTreeMap::new();
    if is_current(state, &command) {
        let artifacts = needs::artifacts(state, &command.body);
        bytes = materials(core, artifacts, &mut facts).await?;
    }
    let token = claim_token(core, state, &command.body, request)?;
    facts.claim_fingerprint = token.as_ref().map(ClaimToken::fingerprint);
    // Read again after the material: a slow read must not stretch a lease or an approval (CRD-3, T-30).
    facts.now_ms = core.now_ms().max(state.last_ms);
    Ok(Gathered {
        command,
        facts,
        bytes,
        token,
    })
}

/// Facts for a mission's command.
pub(crate) fn mission(
    core: &Arc<Core>,
    subject: &Subject,
    state: Option<&MissionState>,
    request: &Request,
) -> Result<Gathered, Error> {
    let last_ms = state.map_or(0, |state| state.last_ms);
    let mut facts = base(core, subject, request, last_ms)?;
    let command = match &request.what {
        What::Strict(command) => command.clone(),
        What::Intent {
            intent: praxis_model::command::Intent::Command { body },
            ..
        } => Command {
            mission_id: subject.mission_id.clone(),
            run_id: None,
            request_id: request.request_id.clone(),
            request_digest: request.digest,
            expected_revision: None,
            owner_epoch: None,
            body: body.clone(),
        },
        What::Intent { .. } | What::Acknowledge { .. } => {
            return Err(Error::schema(
                "/intent",
                "expected a mission's command, found a run's intent",
            ));
        }
    };
    let ask = Ask {
        capability: &request.capability,
        command: &command.body,
        subject,
        run: None,
        mission: state,
        now_ms: facts.now_ms,
        draft_admission: None,
    };
    let answer = core.authorizer.authorize(&ask);
    settle_authority(&mut facts, &request.capability, answer)?;
    Ok(Gathered {
        command,
        facts,
        bytes: BTreeMap::new(),
        token: None,
    })
}

/// Facts before anybody was asked. A draft needs to be drawn up before it can be judged, so these allow; nothing is
/// decided on them.
fn base(core: &Core, subject: &Subject, request: &Request, last_ms: u64) -> Result<Facts, Error> {
    let nothing = Ref {
        id: Id::new("none")?,
        revision: Dec::ZERO,
    };
    let Authorization {
        allowed,
        actor_id,
        actor_kind,
        policy,
        decision_class,
        ..
    } = Authorization::allowed(&request.capability, nothing);
    let now_ms = core.now_ms().max(last_ms);
    let admissions =
        draft_of(&request.what).map(|draft| (draft.admission_ref.clone(), draft.proposal.clone()));
    Ok(Facts {
        allowed,
        actor_id,
        actor_kind,
        policy,
        decision_class,
        decision_ref: None,
        authorized_at_ms: now_ms,
        now_ms,
        materials: BTreeMap::new(),
        material_errors: BTreeMap::new(),
        // A first draft may look at what was proposed; the host's answer replaces it before anything is decided.
        admissions: admissions.into_iter().collect(),
        registers: Vec::new(),
        account: core.account(&subject.mission_id),
        outer_gates: core.outer_gates(&subject.mission_id),
        clear_evidence: request.stored_evidence.clone(),
        restart_allowed: false,
        claim_fingerprint: None,
        recovery_authority: false,
        clock_stepped: false,
    })
}

/// The command as it is decided, if nothing moves.
fn command(state: &RunState, request: &Request, facts: &Facts) -> Result<Command, Error> {
    match &request.what {
        What::Strict(command) => Ok(command.clone()),
        What::Intent { intent, .. } => Ok(Command {
            mission_id: state.subject.mission_id.clone(),
            run_id: state.subject.run_id.clone(),
            request_id: request.request_id.clone(),
            request_digest: request.digest,
            expected_revision: Some(Dec::from(state.head.revision)),
            owner_epoch: Some(Dec::from_u64(state.epoch)),
            body: draft::command(state, intent, facts)?,
        }),
        // Filled in before it comes here; alone it means nothing.
        What::Acknowledge { .. } => Err(actor_lost()),
    }
}

/// Puts the host's answer in the facts. An answer for somebody else than who asked is a refusal.
fn settle_authority(
    facts: &mut Facts,
    capability: &Capability,
    answer: Authorization,
) -> Result<(), Error> {
    if answer.actor_id != *capability.actor_id() {
        return Err(Error::new(
            Code::AuthorizationDenied,
            "expected the authorizer to answer for the principal that asked, found another one; nothing is allowed",
        )
        .in_stage(Stage::Authority));
    }
    facts.allowed = answer.allowed;
    facts.actor_kind = answer.actor_kind;
    facts.policy = answer.policy;
    facts.decision_class = if capability.is_engine() {
        capability.class().to_owned()
    } else {
        answer.decision_class
    };
    facts.decision_ref = answer.decision_ref;
    facts.admissions = answer.admissions;
    facts.clear_evidence.extend(answer.clear_evidence);
    facts.restart_allowed = answer.restart_allowed;
    facts.recovery_authority = answer.recovery_authority;
    Ok(())
}

/// A claim is decided with the lease that the host gives, whatever it asked for (HD-02.7, HC-ENV.5).
fn bound_lease(state: &RunState, body: &mut Body, host: LeaseBounds) -> Result<(), Error> {
    let Body::ClaimDelivery(body) = body else {
        return Ok(());
    };
    if host == LeaseBounds::MISSION {
        return Ok(());
    }
    let wanted_ms = body
        .lease_ms
        .map(|wanted| wanted.to_u64().unwrap_or(u64::MAX));
    let mission_ms = state.config.lease_ms.to_u64().unwrap_or(u64::MAX);
    let Some(granted_ms) = host.granted(wanted_ms, mission_ms) else {
        return Err(Error::new(
            Code::AuthorizationDenied,
            "expected a lease that the host gives, found that it gives none; ask who runs the engine",
        )
        .in_stage(Stage::Authority));
    };
    body.lease_ms = Some(DecPlus::new(Dec::from_u64(granted_ms))?);
    Ok(())
}

fn draft_of(what: &What) -> Option<&Draft> {
    match what {
        What::Strict(_) | What::Acknowledge { .. } => None,
        What::Intent { draft, .. } => draft.as_ref(),
    }
}

/// Whether revision and epoch are right, so that reading material is worth its while.
fn is_current(state: &RunState, command: &Command) -> bool {
    let revision = command
        .expected_revision
        .is_none_or(|revision| revision == Dec::from(state.head.revision));
    revision
        && command
            .owner_epoch
            .is_none_or(|epoch| epoch == Dec::from_u64(state.epoch))
}

/// The token that a claim would hand out (T-24).
fn claim_token(
    core: &Core,
    state: &RunState,
    body: &Body,
    request: &Request,
) -> Result<Option<ClaimToken>, Error> {
    let Body::ClaimDelivery(body) = body else {
        return Ok(None);
    };
    let Some(delivery) = state.deliveries.get(&body.delivery_id) else {
        return Ok(None);
    };
    let generation = delivery.record.generation.get() + 1;
    let principal = request.capability.actor_id();
    core.token(
        &body.delivery_id,
        generation,
        state.epoch,
        principal,
        request.request_id.as_ref(),
    )
    .map(Some)
}
