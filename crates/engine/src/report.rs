//! Reports of effects: from what an adapter or a worker says to a settled attempt.
//!
//! Invariant: the evidence record is durable before the attempt is settled; a report has no epoch power, so one
//! that comes after the owner changed is evidence that the current owner reconciles (T-18); what cannot be settled
//! as said becomes UNKNOWN, never lost (FV-EFF.2). Part of the run's owner.

use std::collections::BTreeSet;
use std::sync::Arc;

use aiws::decimal::Dec;
use aiws::error::{Code, Error, Stage};
use aiws::id::{AttemptId, EvidenceId};
use aiws::record::{Attempt, AttemptStatus, SettledOutcome};
use praxis_model::command::{Body, Intent, Reconcile, Settle};
use praxis_model::run::RunState;

use crate::adapter::{EffectOutcome, EffectReport};
use crate::ask::evidence_id;
use crate::capability::{CLASS_LOOKUP, Capability};
use crate::error::{actor_lost, may_be_sent_again, of_artifact};
use crate::limits::EVIDENCE_BYTES;
use crate::message::Request;
use crate::ports::Ask;
use crate::run_actor::{RunOwner, own_request};

impl RunOwner {
    /// Records what was said about an attempt, if whoever says it may settle. An attempt that is settled already stays as it is.
    ///
    /// # Errors
    ///
    /// The refusal, where neither the report nor UNKNOWN could be recorded; the attempt stays uncertain then.
    pub(crate) async fn report(
        &mut self,
        capability: &Capability,
        attempt_id: &AttemptId,
        report: &EffectReport,
    ) -> Result<(), Error> {
        let state = self.current().await?;
        self.may_report(&state, capability, attempt_id)?;
        let Some(attempt) = state.attempts.get(attempt_id).cloned() else {
            return Err(Error::new(
                Code::NotFound,
                format!("expected an attempt of this run, found none named {attempt_id}"),
            ));
        };
        if attempt.status.is_confirmed() {
            return Ok(());
        }
        let stored = self.store(&attempt, report).await;
        let (outcome, actual) = match &stored {
            Ok(_) => settled(report),
            // Without durable evidence nothing is confirmed.
            Err(_) => (SettledOutcome::Unknown, Dec::ZERO),
        };
        let evidence: Vec<EvidenceId> = stored.ok().into_iter().collect();
        let words = self.words(capability, &state, &attempt, outcome, actual, &evidence);
        let said = self.say(words?).await;
        match said {
            // What the store could not take now is as true as before, and is said again.
            Err(error) if outcome != SettledOutcome::Unknown && !may_be_sent_again(&error) => {
                tracing::warn!(attempt = %attempt_id, code = error.code().name(), message = %error.message, "a report was refused");
                let state = self.current().await?;
                let unknown = SettledOutcome::Unknown;
                let words = self.words(capability, &state, &attempt, unknown, Dec::ZERO, &evidence);
                match words? {
                    Some(request) => self.take(&request).await.map(drop),
                    // It is uncertain already, and stays so: whoever reported is told why.
                    None => Err(error),
                }
            }
            said => said,
        }
    }

    /// Stage 4, before anything is looked up or stored: whether somebody outside may settle at all.
    fn may_report(
        &self,
        state: &RunState,
        capability: &Capability,
        attempt_id: &AttemptId,
    ) -> Result<(), Error> {
        if capability.is_engine() {
            return Ok(());
        }
        let command = Body::Settle(Settle {
            run_id: state.subject.run_id.clone().ok_or_else(actor_lost)?,
            attempt_id: attempt_id.clone(),
            outcome: SettledOutcome::Unknown,
            actual: Dec::ZERO,
            evidence: Vec::new(),
        });
        let answer = self.core.authorizer.authorize(&Ask {
            capability,
            command: &command,
            subject: &state.subject,
            run: Some(state),
            mission: None,
            now_ms: self.core.now_ms().max(state.last_ms),
            draft_admission: None,
        });
        if answer.allowed && answer.actor_id == *capability.actor_id() {
            return Ok(());
        }
        let refused = "expected authority to settle attempts of this run, found none; nothing of the report was kept";
        Err(Error::new(Code::AuthorizationDenied, refused).in_stage(Stage::Authority))
    }

    /// The settlement that a report of the engine's own worker asks for, its evidence stored; none where nothing is
    /// confirmed by it, or not any more.
    pub(crate) async fn settlement(
        &self,
        state: &RunState,
        capability: &Capability,
        attempt: &Attempt,
        report: &EffectReport,
    ) -> Option<Request> {
        let (outcome, actual) = settled(report);
        if attempt.status.is_confirmed() || outcome == SettledOutcome::Unknown {
            return None;
        }
        let evidence = vec![self.store(attempt, report).await.ok()?];
        self.words(capability, state, attempt, outcome, actual, &evidence)
            .ok()?
    }

    async fn say(&mut self, words: Option<Request>) -> Result<(), Error> {
        match words {
            Some(request) => self.take(&request).await.map(drop),
            None => Ok(()),
        }
    }

    /// A settlement or a reconciliation, whichever the attempt's epoch asks for; none where nothing more is known.
    fn words(
        &self,
        capability: &Capability,
        state: &RunState,
        attempt: &Attempt,
        outcome: SettledOutcome,
        actual: Dec,
        evidence: &[EvidenceId],
    ) -> Result<Option<Request>, Error> {
        let old = attempt.epoch.get() < state.epoch;
        let uncertain = old || attempt.status == AttemptStatus::Unknown;
        if uncertain && outcome == SettledOutcome::Unknown {
            // It is uncertain already.
            return Ok(None);
        }
        let run_id = state.subject.run_id.clone().ok_or_else(actor_lost)?;
        let attempt_id = attempt.attempt_id.clone();
        let stored_evidence: BTreeSet<EvidenceId> = evidence.iter().cloned().collect();
        let evidence = evidence.to_vec();
        let (capability, body) = if uncertain && capability.is_engine() {
            let body = Body::Reconcile(Reconcile {
                run_id,
                attempt_id,
                outcome,
                actual,
                evidence,
            });
            (Capability::system(CLASS_LOOKUP)?, body)
        } else {
            (
                capability.clone(),
                Body::Settle(Settle {
                    run_id,
                    attempt_id,
                    outcome,
                    actual,
                    evidence,
                }),
            )
        };
        let engine = capability.is_engine();
        let mut request = own_request(capability, Intent::Command { body })?;
        if engine {
            // What the engine's own adapter said is stored by the engine; of others' word the host is asked (CRD-1).
            request.stored_evidence = stored_evidence;
        }
        Ok(Some(request))
    }

    /// Stores the evidence record and returns its id.
    async fn store(&self, attempt: &Attempt, report: &EffectReport) -> Result<EvidenceId, Error> {
        let record =
            aiws::canonical::to_bytes(&report.record(&attempt.operation_id, &attempt.attempt_id));
        if record.len() as u64 > EVIDENCE_BYTES {
            let found = record.len();
            return Err(Error::schema(
                "/evidence",
                format!("expected at most {EVIDENCE_BYTES} bytes, found {found}"),
            ));
        }
        let artifacts = Arc::clone(&self.core.artifacts);
        let owner = Capability::system(CLASS_LOOKUP)?.actor_id().clone();
        // Evidence is kept as long as the ledger that names it.
        let put = move || artifacts.put(&record, "evidence", "application/json", &owner, u64::MAX);
        let stored = tokio::task::spawn_blocking(put)
            .await
            .map_err(|_| actor_lost())?;
        let artifact = stored.map_err(|error| of_artifact(&error))?;
        evidence_id(&artifact.digest)
    }
}

/// What a report says, where its evidence is durable.
fn settled(report: &EffectReport) -> (SettledOutcome, Dec) {
    match &report.outcome {
        EffectOutcome::Applied { actual } => (SettledOutcome::ConfirmedApplied, *actual),
        EffectOutcome::NotApplied => (SettledOutcome::ConfirmedNotApplied, Dec::ZERO),
        EffectOutcome::Uncertain { .. } => (SettledOutcome::Unknown, Dec::ZERO),
    }
}
