//! Sequences from outside: several steps of one principal under one request id (T-82).
//!
//! Invariant: a step says no more than an intent alone could; a claim's token is never taken from the log. Used by
//! hosts and worker authors.

use aiws::digest::Digest;
use aiws::error::{Code, Error};
use aiws::id::{DeliveryId, MissionId, RequestId, RunId};
use aiws::object;
use praxis_model::command::{CommandType, Intent};
use praxis_model::stream::Subject;

use super::{Engine, claim_token_of};
use crate::capability::Capability;
use crate::limits::SEQUENCE_STEPS;
use crate::message::{Request, RunMessage, Sequenced, What};
use crate::ports::Draft;
use crate::run_actor::described;
use crate::supervisor::ask_run;

/// Steps with their address and their one request id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceRequest {
    /// The mission.
    pub mission_id: MissionId,
    /// The run.
    pub run_id: RunId,
    /// The caller's name for all of it; the same name with the same steps is a replay.
    pub request_id: RequestId,
    /// What is asked, in order; at most [`SEQUENCE_STEPS`].
    pub steps: Vec<SequenceStep>,
}

/// One step of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a step lives for one message, in a list of a few"
)]
pub enum SequenceStep {
    /// An intent, as it could be sent alone, with the effect admission that goes with it, as proposed.
    Intent {
        /// The intent.
        intent: Intent,
        /// The proposal.
        draft: Option<Draft>,
    },
    /// The acknowledgement of a delivery that an earlier step of the same sequence claims: its token is the one that
    /// this claim makes.
    Acknowledge {
        /// The delivery.
        delivery_id: DeliveryId,
    },
}

impl From<Intent> for SequenceStep {
    fn from(intent: Intent) -> Self {
        Self::Intent {
            intent,
            draft: None,
        }
    }
}

impl Engine {
    /// Takes several steps as one: each is decided on what those before it lead to, under all its guards, and their
    /// events become durable together. A step that is refused refuses the whole, and nothing is kept; only where a
    /// settlement or a reconciliation stands before it, the steps up to that are committed, and the answer's `refused`
    /// says the rest. The same request again gets the first answers, with no events.
    ///
    /// # Errors
    ///
    /// The refusal of the first step that is refused, with its number from 1 in the detail `step`; SCHEMA_INVALID for no
    /// steps, too many, or one that has to be sent alone: a recovery of ownership, or what a claim from before the
    /// sequence permits. Else as for [`submit`](Engine::submit).
    pub async fn submit_sequence(
        &self,
        capability: &Capability,
        request: &SequenceRequest,
    ) -> Result<Sequenced, Error> {
        let steps = whats(&request.steps)?;
        let digest = digest_of(request, &steps)?;
        let whole = |what| Request {
            capability: capability.clone(),
            request_id: Some(request.request_id.clone()),
            digest,
            what,
            stored_evidence: Default::default(),
        };
        let requests: Vec<Request> = steps.into_iter().map(whole).collect();
        let subject = Subject::run(request.mission_id.clone(), request.run_id.clone());
        let first = requests.first().ok_or_else(too_few)?;
        let (entry, permit) = self.door(&subject, first).await?;
        ask_run(&entry, |reply| RunMessage::TakeAll {
            requests,
            permit,
            reply,
        })
        .await
    }
}

fn whats(steps: &[SequenceStep]) -> Result<Vec<What>, Error> {
    if steps.len() > SEQUENCE_STEPS {
        let found = steps.len();
        let wrong = format!("expected at most {SEQUENCE_STEPS} steps, found {found}");
        return Err(Error::new(Code::SchemaInvalid, wrong));
    }
    let what = |(index, step): (usize, &SequenceStep)| match step {
        SequenceStep::Acknowledge { delivery_id } => Ok(What::Acknowledge {
            delivery_id: delivery_id.clone(),
        }),
        SequenceStep::Intent { intent, draft } => match stands_alone(intent) {
            true => Err(Error::schema(
                format!("/steps/{index}"),
                "expected a step of a sequence, found one that has to be sent alone",
            )
            .with("step", (index + 1).to_string())),
            false => Ok(What::Intent {
                intent: intent.clone(),
                draft: draft.clone(),
            }),
        },
    };
    steps.iter().enumerate().map(what).collect()
}

/// A recovery changes who may append the steps behind it; an older claim's token comes beside its intent.
fn stands_alone(intent: &Intent) -> bool {
    let Intent::Command { body } = intent else {
        return false;
    };
    body.kind() == CommandType::RecoverOwnership || claim_token_of(intent).is_some()
}

/// The digest of a sequence's material (T-23).
fn digest_of(request: &SequenceRequest, steps: &[What]) -> Result<Digest, Error> {
    let steps = steps.iter().map(described).collect::<Result<Vec<_>, _>>()?;
    aiws::canonical::digest_of(&object! {
        "requestId": &request.request_id,
        "missionId": &request.mission_id,
        "runId": &request.run_id,
        "steps": steps,
    })
}

fn too_few() -> Error {
    Error::schema("/steps", "expected at least one step, found none")
}
