//! What a run's events say for its report.
//! Invariant: one pass over the events, oldest first; nothing is taken from anywhere else.
//! Called by `report`.

use std::collections::BTreeMap;

use aiws::id::{AttemptId, EvidenceId, HoldId};
use aiws::json::Value;
use aiws::record::{
    AcceptanceVerdict, ApprovalDecision, HoldDecision, HoldReason, Manifest, OutcomeStatus,
    SettledOutcome, VerificationVerdict,
};
use praxis_journal_format::Sealed;
use praxis_model::command::{Body, Reconcile};
use praxis_model::event::Event;
use praxis_model::transition::Transition;

use super::{Check, Decision, HoldLife, Settled, UncertainLife, proven};
use crate::coding::graph::Stage;
use crate::coding::outcome::{CHECK_FILE, PATCH_FILE, PLAN_FILE, counts, digest_of};
use crate::render::escape;

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    pub plan: Option<String>,
    pub patch: Option<String>,
    pub corrections: usize,
    pub checks: Vec<Check>,
    pub decisions: Vec<Decision>,
    pub holds: Vec<HoldLife>,
    pub uncertain: Vec<UncertainLife>,
    /// Node and time of the start of each attempt.
    starts: BTreeMap<AttemptId, (String, u64)>,
}

impl Found {
    pub(super) fn of(events: &[Sealed]) -> Self {
        let mut found = Self::default();
        for sealed in events {
            found.add(&sealed.event);
        }
        found
    }

    fn add(&mut self, event: &Event) {
        match &event.command {
            Body::Dispatch(body) => {
                let node = escape::line(body.node_id.as_str());
                self.starts
                    .insert(body.attempt_id.clone(), (node, event.at_ms.0));
            }
            Body::Settle(body) if body.outcome == SettledOutcome::Unknown => {
                self.doubt(&body.attempt_id, event.at_ms.0);
            }
            Body::Reconcile(body) => self.settled(event, body),
            Body::CommitBoundary(body) => {
                self.boundary(event, &body.manifest);
                if let Some(hold) = &body.hold {
                    self.held(event, &hold.hold_id, hold.reason);
                }
            }
            Body::PlaceHold(body) => {
                self.held(event, &body.hold.hold_id, body.hold.reason);
                if body.hold.reason == HoldReason::Operator {
                    self.decided(event, "paused the run".to_owned(), None, &[]);
                }
            }
            body => {
                // What opens a hold of itself has it among its transitions.
                for transition in &event.outcome.transitions {
                    if let Transition::HoldOpened { hold } = transition {
                        self.held(event, &hold.hold_id, hold.reason);
                    }
                }
                self.said(event, body);
            }
        }
    }

    /// Decisions that are nothing else.
    fn said(&mut self, event: &Event, body: &Body) {
        match body {
            Body::Approve(body) => {
                let yes = body.decision == ApprovalDecision::Approved;
                let verb = if yes { "approved" } else { "denied" };
                let about = body.fingerprint.to_string();
                self.decided(
                    event,
                    format!("{verb} the plan and its exact action"),
                    Some(&about),
                    &[],
                );
            }
            Body::RevokeApproval(body) => {
                let reason = escape::line(&body.reason);
                self.decided(event, format!("withdrew the approval: {reason}"), None, &[]);
            }
            Body::Verify(body) => {
                let passed = body.verdict == VerificationVerdict::Pass;
                let verb = if passed { "passed" } else { "failed" };
                let about = Some(body.subject.as_str());
                self.decided(
                    event,
                    format!("recorded that the check {verb} for the patch"),
                    about,
                    &body.evidence,
                );
            }
            Body::Accept(body) => {
                let yes = body.verdict == AcceptanceVerdict::Accepted;
                let verb = if yes { "accepted" } else { "rejected" };
                let about = Some(body.subject.as_str());
                self.decided(event, format!("{verb} the patch"), about, &body.evidence);
            }
            Body::CancelRun(body) => {
                let reason = escape::line(&body.reason);
                self.decided(event, format!("canceled the run: {reason}"), None, &[]);
            }
            Body::InvalidateHandoff(body) => {
                let reason = escape::line(&body.reason);
                let about = Some(body.handoff.handoff_id.as_str());
                self.decided(
                    event,
                    format!("found what a node handed over to be wrong: {reason}"),
                    about,
                    &body.evidence,
                );
            }
            Body::ResolveHold(body) => {
                let decision = match body.decision {
                    HoldDecision::Recheck => "had a hold looked at again, which released it",
                    HoldDecision::Cancel => "ended a hold by canceling",
                };
                let id = escape::line(body.hold_id.as_str());
                if let Some(hold) = self.holds.iter_mut().find(|hold| hold.id == id) {
                    let actor = escape::line(event.actor_id.as_str());
                    hold.ended = Some((event.at_ms.0, actor, body.decision.to_string()));
                }
                self.decided(event, decision.to_owned(), Some(&id), &body.evidence);
            }
            _ => {}
        }
    }

    fn decided(
        &mut self,
        event: &Event,
        what: String,
        about: Option<&str>,
        evidence: &[EvidenceId],
    ) {
        let reference = event.decision_ref.as_ref();
        self.decisions.push(Decision {
            at_ms: event.at_ms.0,
            what,
            about: about.map(escape::line),
            actor: escape::line(event.actor_id.as_str()),
            kind: event.actor_kind.to_string(),
            class: escape::line(&event.decision_class),
            proven: proven(&event.decision_class),
            reference: reference.map(|id| escape::line(id.as_str())),
            evidence: names(evidence),
            proof: None,
            revision: event.revision.0,
        });
    }

    fn boundary(&mut self, event: &Event, manifest: &Manifest) {
        let digest =
            |name: &str| digest_of(&manifest.artifacts, name).map(|digest| digest.to_string());
        let ran = manifest.outcome.status != OutcomeStatus::Skipped;
        match Stage::of(&manifest.producer.node_id) {
            Some(Stage::Plan) => self.plan = digest(PLAN_FILE).or(self.plan.take()),
            Some(Stage::Implement) => self.patch = digest(PATCH_FILE).or(self.patch.take()),
            Some(Stage::Correct(_)) if ran => {
                self.corrections += 1;
                self.patch = digest(PATCH_FILE).or(self.patch.take());
            }
            Some(Stage::Check(_)) if ran => {
                let text = |name: &str| {
                    manifest
                        .result
                        .get(name)
                        .and_then(Value::as_str)
                        .map(escape::line)
                };
                self.checks.push(Check {
                    node: escape::line(manifest.producer.node_id.as_str()),
                    passed: counts(manifest),
                    ended: text("failure")
                        .or_else(|| text("ended"))
                        .unwrap_or_default(),
                    output: digest(CHECK_FILE),
                    at_ms: event.at_ms.0,
                });
            }
            _ => {}
        }
    }

    fn held(&mut self, event: &Event, hold_id: &HoldId, reason: HoldReason) {
        self.holds.push(HoldLife {
            id: escape::line(hold_id.as_str()),
            reason: reason.to_string(),
            opened_ms: event.at_ms.0,
            opened_by: escape::line(event.actor_id.as_str()),
            ended: None,
        });
    }

    /// The attempt as one whose outcome is unknown, once.
    fn doubt(&mut self, attempt: &AttemptId, since_ms: u64) -> usize {
        let name = escape::line(attempt.as_str());
        if let Some(known) = self
            .uncertain
            .iter()
            .position(|life| life.attempt == name && life.settled.is_none())
        {
            return known;
        }
        let node = self
            .starts
            .get(attempt)
            .map(|(node, _)| node.clone())
            .unwrap_or_default();
        self.uncertain.push(UncertainLife {
            attempt: name,
            node,
            since_ms,
            settled: None,
        });
        self.uncertain.len() - 1
    }

    fn settled(&mut self, event: &Event, body: &Reconcile) {
        let since_ms = self
            .starts
            .get(&body.attempt_id)
            .map_or(event.at_ms.0, |(_, at_ms)| *at_ms);
        let index = self.doubt(&body.attempt_id, since_ms);
        if let Some(life) = self.uncertain.get_mut(index) {
            life.settled = Some(Settled {
                outcome: body.outcome.to_string(),
                at_ms: event.at_ms.0,
                actor: escape::line(event.actor_id.as_str()),
                class: escape::line(&event.decision_class),
                evidence: names(&body.evidence),
                proof: None,
                revision: event.revision.0,
            });
        }
    }
}

fn names(evidence: &[EvidenceId]) -> Vec<String> {
    evidence
        .iter()
        .map(|id| escape::line(id.as_str()))
        .collect()
}
