//! What one worker asks of one run, each ask a call of the engine's worker API.
//! Invariant: every change is the engine's command under the worker's own name and request id; a claim's token goes to
//! the claimant alone. Part of the office's worker API.

use std::sync::Arc;

use aiws::digest::Digest;
use aiws::error::{Code, Error};
use aiws::id::{AttemptId, Id, OperationId, RequestId};
use aiws::json::Value;
use aiws::object;
use aiws::record::{AdmissionProposal, NodeKind, OutcomeStatus};
use aiws::token::ClaimToken;
use praxis_engine::{Capability, Draft, EffectOutcome, EffectReport, Response, Worker};
use praxis_model::command::{BoundaryIntent, Intent};
use praxis_model::run::RunState;
use praxis_model::stream::Subject;

use super::{answered, find_node, is_admissible, run_of, with};
use crate::limits::{EVIDENCE_BYTES, RETENTION_MS};
use crate::office::{Office, blocking, decide};
use crate::request::{Boundary, Effect, Reported, Token, WorkAsk};
use crate::session::now_ms;

/// One request of one worker.
pub(super) struct Desk<'a> {
    pub(super) office: &'a Office,
    pub(super) worker: Worker,
    pub(super) capability: Capability,
    pub(super) subject: Subject,
    pub(super) request: RequestId,
}

impl Desk<'_> {
    /// Does what is asked; the kind of the answer, and its members.
    pub(super) async fn answer(&self, ask: WorkAsk) -> Result<(&'static str, Value), Error> {
        let (worker, request) = (&self.worker, &self.request);
        Ok(match ask {
            WorkAsk::Claim {
                delivery_id,
                lease_ms,
            } => {
                let claimed = worker.claim(request, &delivery_id, lease_ms).await?;
                let token = claimed.token.map(|token| token.expose());
                (
                    "claimed",
                    with(answered(&claimed.response), object! { "claimToken": token }),
                )
            }
            WorkAsk::Acknowledge {
                delivery_id,
                handoff,
                claim_token,
                generation,
            } => {
                let token = token(&claim_token)?;
                let said = worker.acknowledge(request, &delivery_id, &handoff, &token, generation);
                let value = answered(&said.await?);
                let state = self.state().await?;
                let node = state.deliveries.get(&delivery_id);
                let node = node.map(|delivery| delivery.record.recipient.node_id.clone());
                let ready = node
                    .as_ref()
                    .is_some_and(|node| is_admissible(&state, node));
                (
                    "acknowledged",
                    with(
                        value,
                        object! { "nodeId": node.map(|node| node.to_string()), "ready": ready },
                    ),
                )
            }
            WorkAsk::Release {
                delivery_id,
                claim_token,
                generation,
            } => {
                let token = token(&claim_token)?;
                let said = worker.release(request, &delivery_id, &token, generation);
                ("released", answered(&said.await?))
            }
            WorkAsk::Admit { node_id, effect } => {
                let draft = match effect {
                    Some(effect) => Some(self.draft(effect)?),
                    None => None,
                };
                let said = worker.admit(request, &node_id, draft).await?;
                ("admitted", answered(&said))
            }
            WorkAsk::Dispatch { node_id } => {
                let said = worker.dispatch(request, &node_id).await?;
                let permitted = said.event.is_some();
                (
                    "dispatched",
                    with(answered(&said), object! { "permitted": permitted }),
                )
            }
            WorkAsk::Retry { operation_id } => {
                let said = self.submit(Intent::RetryOperation { operation_id }).await?;
                ("retried", answered(&said))
            }
            WorkAsk::Report {
                attempt_id,
                outcome,
                actual,
                evidence,
            } => (
                "reported",
                self.report(&attempt_id, outcome, actual, evidence).await?,
            ),
            WorkAsk::Boundary(boundary) => {
                let state = self.state().await?;
                let said = worker
                    .commit_boundary(request, intent(&state, *boundary))
                    .await?;
                let lifecycle = self.state().await?.lifecycle;
                (
                    "committed",
                    with(answered(&said), object! { "lifecycle": lifecycle.name() }),
                )
            }
            WorkAsk::Store {
                name,
                media_type,
                text,
                hex,
            } => ("stored", self.store(name, media_type, text, hex).await?),
            WorkAsk::Fetch { digest } => ("fetched", self.fetch(&digest).await?),
        })
    }

    async fn state(&self) -> Result<Arc<RunState>, Error> {
        self.office.session.state(&self.subject).await
    }

    async fn submit(&self, intent: Intent) -> Result<Response, Error> {
        let (session, subject) = (&self.office.session, &self.subject);
        let run = run_of(subject)?;
        session
            .submit(
                &self.capability,
                &subject.mission_id,
                &run,
                self.request.as_str(),
                intent,
            )
            .await
    }

    /// The admission of an effect, under names that follow from the request alone: sent again, it is the same.
    fn draft(&self, effect: Effect) -> Result<Draft, Error> {
        let parts = object! {
            "missionId": &self.subject.mission_id,
            "worker": self.capability.actor_id().as_str(),
            "requestId": self.request.as_str(),
        };
        let print = aiws::canonical::digest_of(&parts)?.to_string();
        let name = |prefix: &str| Id::new(format!("{prefix}-{}", &print[..32]));
        Ok(Draft {
            admission_ref: name("admission")?,
            proposal: AdmissionProposal {
                operation_id: OperationId::from(name("op")?),
                attempt_id: AttemptId::from(name("at")?),
                fingerprint: aiws::canonical::digest_of(&effect.action)?,
                action: effect.action,
                effect: effect.class,
                grant_id: effect.grant_id,
                approval_id: effect.approval_id,
                amount: effect.amount,
            },
        })
    }

    async fn report(
        &self,
        attempt: &AttemptId,
        outcome: Reported,
        actual: Option<aiws::decimal::Dec>,
        evidence: Value,
    ) -> Result<Value, Error> {
        let outcome = match (outcome, actual) {
            (Reported::Applied, Some(actual)) => EffectOutcome::Applied { actual },
            (Reported::NotApplied, None) => EffectOutcome::NotApplied,
            (Reported::Uncertain, None) => EffectOutcome::Uncertain {
                why: "the worker says that nobody can say".to_owned(),
            },
            _ => {
                let wrong = "expected actual with APPLIED and with nothing else";
                return Err(Error::schema("/ask/actual", wrong));
            }
        };
        let report = EffectReport { outcome, evidence };
        self.worker.report_outcome(attempt, report).await?;
        let state = self.state().await?;
        let attempt = state.attempts.get(attempt);
        let attempt = attempt.map(aiws::canonical::to_value).transpose()?;
        let node = attempt.as_ref().and_then(|attempt| {
            let operation: OperationId = attempt.get("operationId")?.as_str()?.parse().ok()?;
            state.operations.get(&operation)?.node_id.clone()
        });
        Ok(object! { "attempt": attempt, "nodeId": node.map(|node| node.to_string()) })
    }

    async fn store(
        &self,
        name: String,
        media_type: String,
        text: Option<String>,
        hex: Option<String>,
    ) -> Result<Value, Error> {
        let bytes = match (text, hex) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(hex)) => decide::hex(&hex)?,
            _ => return Err(Error::schema("/ask", "expected either text or hex")),
        };
        if bytes.len() as u64 > EVIDENCE_BYTES {
            let wrong = format!(
                "expected at most {EVIDENCE_BYTES} bytes, found {}",
                bytes.len()
            );
            return Err(Error::schema("/ask", wrong));
        }
        let (artifacts, owner) = (
            Arc::clone(&self.office.session.artifacts),
            self.capability.actor_id().clone(),
        );
        let until = now_ms().saturating_add(RETENTION_MS);
        let kept = blocking(move || {
            let kept = artifacts.put(&bytes, &name, &media_type, &owner, until);
            kept.map_err(|error| Error::new(error.code(), error.to_string()))
        });
        Ok(object! { "artifact": aiws::canonical::to_value(&kept.await?)? })
    }

    async fn fetch(&self, digest: &Digest) -> Result<Value, Error> {
        let state = self.state().await?;
        let mut named = state
            .manifests
            .values()
            .flat_map(|committed| &committed.manifest.artifacts);
        let artifact = named.find(|artifact| artifact.digest == *digest).cloned();
        let artifact = artifact.ok_or_else(|| {
            let message = format!("expected an artifact that a manifest of this run names, found none with digest {digest}");
            Error::new(Code::NotFound, message)
        })?;
        let artifacts = Arc::clone(&self.office.session.artifacts);
        let record = aiws::canonical::to_value(&artifact)?;
        let bytes = blocking(move || {
            let read = praxis_artifacts::read_verified(artifacts.as_ref(), &artifact, now_ms());
            read.map_err(|error| Error::new(error.code(), error.to_string()))
        });
        let bytes = bytes.await?;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(object! { "artifact": record, "hex": hex, "text": String::from_utf8(bytes).ok() })
    }
}

fn token(token: &Token) -> Result<ClaimToken, Error> {
    ClaimToken::parse(&token.0).map_err(|error| error.at("/ask/claimToken"))
}

/// The boundary with what was left out.
fn intent(state: &RunState, said: Boundary) -> BoundaryIntent {
    let end = find_node(state, &said.node_id).is_some_and(|node| node.kind == NodeKind::End);
    let result = || match end {
        true => object! { "disposition": "COMPLETED" },
        false => object! {},
    };
    BoundaryIntent {
        status: said.status.unwrap_or(OutcomeStatus::Completed),
        result: said.result.unwrap_or_else(result),
        node_id: said.node_id,
        artifacts: said.artifacts,
        criteria: said.criteria,
        approvals: said.approvals,
        context: said.context,
        cause: said.cause,
        hold: None,
    }
}
