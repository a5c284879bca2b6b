//! The engine: opened on a store, asked by its host, shut down.
//!
//! Invariant: a handle reaches actors, never a reducer or the store's writer (FV-REC.5); what an earlier process
//! left without letting go is recovered before the first request is taken. Used by hosts, the CLI and the SDK.

mod open;
mod read;
mod sequence;

pub use open::{Options, Shutdown};
pub use read::RunRef;
pub use sequence::{SequenceRequest, SequenceStep};

use std::sync::Arc;

use aiws::digest::Digest;
use aiws::error::{Code, Error, Stage};
use aiws::id::{MissionId, RequestId, RunId};
use aiws::object;
use aiws::record::{Contract, Grant, HandoffConfig};
use aiws::token::ClaimToken;
use praxis_model::command::{Body, GrantCommand, Intent, OpenMission, StartRun};
use praxis_model::stream::Subject;
use praxis_model::table::{self, StreamKind};
use praxis_model::wire;
use tokio::sync::OwnedSemaphorePermit;

use crate::ask;
use crate::capability::Capability;
use crate::core::Core;
use crate::directory::RunEntry;
use crate::error::closing;
use crate::message::{Claimed, Request, Response, RunMessage, What};
use crate::ports::Draft;
use crate::supervisor::{ask_run, ensure_run};
use crate::worker::Worker;

/// An intent with its address and its request id; the owner fills in revision, epoch and basis (T-02).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentRequest {
    /// The mission.
    pub mission_id: MissionId,
    /// The run.
    pub run_id: RunId,
    /// The caller's name for the request; the same name with the same intent is a replay.
    pub request_id: RequestId,
    /// What is asked.
    pub intent: Intent,
}

/// A handle to an open engine. Clones share it; when the last is dropped without a shutdown, everything stops as
/// if the process had ended.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    core: Arc<Core>,
}

impl Engine {
    /// Takes a strict request: an envelope or a finite command in its outer form (T-02).
    ///
    /// # Errors
    ///
    /// The code of the first stage that refuses (ERR-PREC.1); BUSY and ACTOR_LOST may be sent again as they are.
    pub async fn apply(&self, capability: &Capability, bytes: &[u8]) -> Result<Response, Error> {
        self.strict(capability, bytes)
            .await
            .map(|claimed| claimed.response)
    }

    /// As [`apply`](Engine::apply), for a claim: the one call that hands out the raw token (API-4).
    ///
    /// # Errors
    ///
    /// As for [`apply`](Engine::apply).
    pub async fn claim(&self, capability: &Capability, bytes: &[u8]) -> Result<Claimed, Error> {
        self.strict(capability, bytes).await
    }

    /// Takes an intent.
    ///
    /// # Errors
    ///
    /// As for [`apply`](Engine::apply); what moves under an intent is decided again, a bounded number of times.
    pub async fn submit(
        &self,
        capability: &Capability,
        request: &IntentRequest,
    ) -> Result<Response, Error> {
        self.intent(capability, request, None)
            .await
            .map(|claimed| claimed.response)
    }

    /// As [`submit`](Engine::submit), for a command of who holds a claim: an acknowledgement or a release. Its
    /// `claim_token` is the token's fingerprint, which everybody can read in the log; the token itself is what counts.
    ///
    /// # Errors
    ///
    /// STALE_OWNER where the command names another token; else as for [`submit`](Engine::submit).
    pub async fn submit_with_token(
        &self,
        capability: &Capability,
        request: &IntentRequest,
        token: &ClaimToken,
    ) -> Result<Response, Error> {
        capability.authenticated()?;
        let named = claim_token_of(&request.intent);
        if named.is_some_and(|named| !named.ct_eq(&token.fingerprint())) {
            let wrong = "expected the command to name the token that came with it, found another fingerprint";
            return Err(Error::new(Code::StaleOwner, wrong).in_stage(Stage::Ownership));
        }
        self.taken(capability, request, None)
            .await
            .map(|claimed| claimed.response)
    }

    /// As [`submit`](Engine::submit), for an intent that claims.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Engine::submit).
    pub async fn submit_claim(
        &self,
        capability: &Capability,
        request: &IntentRequest,
    ) -> Result<Claimed, Error> {
        self.intent(capability, request, None).await
    }

    /// As [`submit`](Engine::submit), for an admission with the effect that goes with it, as proposed.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Engine::submit).
    pub async fn submit_admission(
        &self,
        capability: &Capability,
        request: &IntentRequest,
        draft: Draft,
    ) -> Result<Response, Error> {
        self.intent(capability, request, Some(draft))
            .await
            .map(|claimed| claimed.response)
    }

    /// Opens the contract's mission.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Engine::submit); IDENTITY_CONFLICT or STATE_INVALID where the mission is open already.
    pub async fn open_mission(
        &self,
        capability: &Capability,
        request_id: &RequestId,
        contract: Contract,
        config: HandoffConfig,
    ) -> Result<Response, Error> {
        let mission_id = contract.mission_id.clone();
        self.mission(
            capability,
            &mission_id,
            request_id,
            Body::OpenMission(OpenMission { contract, config }),
        )
        .await
    }

    /// Admits a run.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Engine::submit).
    pub async fn start_run(
        &self,
        capability: &Capability,
        mission_id: &MissionId,
        request_id: &RequestId,
        run_id: RunId,
    ) -> Result<Response, Error> {
        self.mission(
            capability,
            mission_id,
            request_id,
            Body::StartRun(StartRun { run_id }),
        )
        .await
    }

    /// Puts a grant in force.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Engine::submit).
    pub async fn grant(
        &self,
        capability: &Capability,
        mission_id: &MissionId,
        request_id: &RequestId,
        grant: Grant,
    ) -> Result<Response, Error> {
        self.mission(
            capability,
            mission_id,
            request_id,
            Body::GrantCommand(GrantCommand { grant }),
        )
        .await
    }

    /// A worker's handle to one run: typed calls of one principal, and nothing else.
    pub fn worker(&self, capability: Capability, mission_id: MissionId, run_id: RunId) -> Worker {
        Worker::new(self.clone(), capability, mission_id, run_id)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }

    async fn strict(&self, capability: &Capability, bytes: &[u8]) -> Result<Claimed, Error> {
        let parsed = wire::parse(bytes)?;
        let (mission_id, run_id) = (
            parsed.command.mission_id.clone(),
            parsed.command.run_id.clone(),
        );
        let kind = parsed.command.body.kind();
        let request = Request {
            capability: capability.clone(),
            request_id: Some(parsed.request_id),
            digest: parsed.digest,
            what: What::Strict(parsed.command),
            stored_evidence: Default::default(),
        };
        match (table::row(kind).stream, run_id) {
            (StreamKind::Run, Some(run_id)) => {
                self.ask(Subject::run(mission_id, run_id), request).await
            }
            _ => {
                let response = ask::mission_command(&self.inner.core, &mission_id, request).await?;
                Ok(Claimed {
                    response,
                    token: None,
                })
            }
        }
    }

    /// An intent without a claim's token: whoever needs one has to bring it.
    async fn intent(
        &self,
        capability: &Capability,
        request: &IntentRequest,
        draft: Option<Draft>,
    ) -> Result<Claimed, Error> {
        if claim_token_of(&request.intent).is_some() {
            return Err(Error::schema(
                "/intent/claimToken",
                "expected the claim's token beside the intent, found its fingerprint alone; send it with submit_with_token",
            ));
        }
        self.taken(capability, request, draft).await
    }

    async fn taken(
        &self,
        capability: &Capability,
        request: &IntentRequest,
        draft: Option<Draft>,
    ) -> Result<Claimed, Error> {
        let subject = Subject::run(request.mission_id.clone(), request.run_id.clone());
        let request = Request {
            capability: capability.clone(),
            request_id: Some(request.request_id.clone()),
            digest: intent_digest(request, draft.as_ref())?,
            what: What::Intent {
                intent: request.intent.clone(),
                draft,
            },
            stored_evidence: Default::default(),
        };
        self.ask(subject, request).await
    }

    /// Sends a request to the run's owner, within the mailbox's bound.
    async fn ask(&self, subject: Subject, request: Request) -> Result<Claimed, Error> {
        let (entry, permit) = self.door(&subject, &request).await?;
        ask_run(&entry, |reply| RunMessage::Take {
            request: Box::new(request),
            permit,
            reply,
        })
        .await
    }

    /// The run's owner with room in its mailbox for a request.
    async fn door(
        &self,
        subject: &Subject,
        request: &Request,
    ) -> Result<(RunEntry, OwnedSemaphorePermit), Error> {
        let core = &self.inner.core;
        // Stages 2 and 3 come before the question whether there is such a run at all.
        request.capability.authenticated()?;
        if core.is_closing() {
            return Err(closing());
        }
        let entry = match ensure_run(core, subject).await {
            Ok(entry) => entry,
            Err(error) => {
                let mission = &subject.mission_id;
                core.replayed(
                    mission,
                    &request.capability,
                    request.request_id.as_ref(),
                    &request.digest,
                )?;
                return Err(error);
            }
        };
        let permit = entry.kept.permit()?;
        Ok((entry, permit))
    }

    async fn mission(
        &self,
        capability: &Capability,
        mission_id: &MissionId,
        request_id: &RequestId,
        body: Body,
    ) -> Result<Response, Error> {
        let digest = aiws::canonical::digest_of(&object! {
            "requestId": request_id,
            "missionId": mission_id,
            "command": aiws::canonical::to_value(&body)?,
        })?;
        let request = Request {
            capability: capability.clone(),
            request_id: Some(request_id.clone()),
            digest,
            what: What::Intent {
                intent: Intent::Command { body },
                draft: None,
            },
            stored_evidence: Default::default(),
        };
        ask::mission_command(&self.inner.core, mission_id, request).await
    }
}

/// The fingerprint of the token that an intent's command needs, if it needs one.
fn claim_token_of(intent: &Intent) -> Option<Digest> {
    match intent {
        Intent::Command { body } => match body {
            Body::AcknowledgeDelivery(body) => Some(body.claim_token),
            Body::ReleaseDelivery(body) => Some(body.claim_token),
            _ => None,
        },
        _ => None,
    }
}

/// The digest of an intent's material: what the owner fills in is not part of it (T-23).
fn intent_digest(request: &IntentRequest, draft: Option<&Draft>) -> Result<Digest, Error> {
    let draft = match draft {
        Some(draft) => Some(draft.described()?),
        None => None,
    };
    aiws::canonical::digest_of(&object! {
        "requestId": &request.request_id,
        "missionId": &request.mission_id,
        "runId": &request.run_id,
        "intent": aiws::canonical::to_value(&request.intent)?,
        "draft": draft,
    })
}

/// Stage 5: there is no such run.
pub(crate) fn no_such_run(subject: &Subject) -> Error {
    let run = subject.run_id.as_ref().map_or("", RunId::as_str);
    Error::new(
        Code::StaleOwner,
        format!("expected an admitted run, found none named {run:?} in this mission"),
    )
    .in_stage(Stage::Ownership)
    .with("missionId", &subject.mission_id)
}
