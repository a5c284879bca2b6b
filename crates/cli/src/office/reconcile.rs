//! A person settles an uncertain attempt by what was found out.
//! Invariant: the finding, and what stands in the tree of work that was done, are stored as evidence before the decision
//! is recorded; where the tree cannot be captured, nothing is recorded. Part of the office.

use aiws::decimal::Dec;
use aiws::digest::Digest;
use aiws::error::{Code, Error};
use aiws::id::{ActorId, AttemptId, EvidenceId};
use aiws::object;
use aiws::record::{Attempt, SettledOutcome};
use praxis_journal_format::Sealed;
use praxis_model::command::{Body, Intent, Reconcile};
use praxis_model::stream::Subject;

use super::person::Said;
use super::{Office, Peer, blocking};
use crate::answer::{Answer, View};
use crate::coding::attempt::Settled;
use crate::coding::outcome::{Capture, Outcome, PATCH_FILE, PLAN_FILE};
use crate::limits::{EVIDENCE_BYTES, RETENTION_MS};
use crate::render::page::short;
use crate::render::rows::is_uncertain;
use crate::render::words::utc;
use crate::render::{escape, json, program};
use crate::request::Given;
use crate::session::now_ms;
use crate::store::Reader;

/// A finding, as it was brought.
pub(super) struct Finding {
    /// The attempt, or an unambiguous beginning of its name.
    pub attempt: String,
    /// Whether it did its work.
    pub applied: bool,
    /// What shows it.
    pub evidence: Vec<u8>,
    /// How it was given.
    pub way: Given,
    /// In whose name, where it is not the caller's login.
    pub name: Option<String>,
}

impl Office {
    pub(super) async fn reconcile(
        &self,
        finding: Finding,
        view: View,
        peer: &Peer,
    ) -> Result<Answer, Error> {
        let evidence = &finding.evidence;
        if evidence.trim_ascii().is_empty() || evidence.len() as u64 > EVIDENCE_BYTES {
            let message = format!(
                "expected what you found as evidence, 1 to {EVIDENCE_BYTES} bytes, found {}; write it down",
                evidence.len()
            );
            return Err(Error::new(Code::EvidenceUnreadable, message));
        }
        let (reader, named) = (self.reader(), finding.attempt.clone());
        let (subject, attempt) = blocking(move || find(&reader, &named)).await?;
        let run = subject.run_id.clone();
        let run = run.ok_or_else(|| Error::new(Code::RunNotFound, "expected a run"))?;
        let said = Said {
            verb: "reconcile",
            about: object! {
                "run": run.as_str(),
                "attemptId": attempt.attempt_id.as_str(),
                "applied": finding.applied,
            },
            reason: None,
            grants: true,
        };
        let person = self
            .person(peer, finding.way, finding.name.as_deref(), said)
            .await?;
        let captured = match finding.applied {
            true => Some(self.capture(&subject, &attempt).await?),
            false => None,
        };
        let actor = person.actor_id();
        let mut stored = vec![self.keep(actor, "finding", "text/plain", evidence)?];
        if let Some(outcome) = &captured {
            let bytes = aiws::canonical::bytes_of(&Capture::of(outcome.clone()))?;
            stored.push(self.keep(actor, "capture", "application/json", &bytes)?);
        }
        let (outcome, actual) = match finding.applied {
            true => (SettledOutcome::ConfirmedApplied, attempt.reserved),
            false => (SettledOutcome::ConfirmedNotApplied, Dec::ZERO),
        };
        let body = Body::Reconcile(Reconcile {
            run_id: run.clone(),
            attempt_id: attempt.attempt_id.clone(),
            outcome,
            actual,
            evidence: stored,
        });
        let request = format!("reconcile:{}", attempt.attempt_id);
        let intent = Intent::Command { body };
        self.session
            .submit(&person, &subject.mission_id, &run, &request, intent)
            .await?;
        let result = captured.as_ref().and_then(result_of);
        let value = json::object(
            "reconciled",
            object! {
                "attemptId": &attempt.attempt_id,
                "run": &run,
                "outcome": outcome,
                "actual": actual,
                "result": result.map(|(_, digest)| digest.to_string()),
            },
        );
        let going = self.keeper.find(&run).is_some();
        Ok(Answer::done(value, view, |_| {
            let id = short(attempt.attempt_id.as_str());
            let word = match finding.applied {
                true => "applied",
                false => "not applied",
            };
            let with = result
                .map(|(name, digest)| format!(" with {name} sha256 {digest}"))
                .unwrap_or_default();
            let next = match going {
                true => format!("{} attach {run}", program()),
                false => format!("{} resume {run}", program()),
            };
            format!("attempt {id} is recorded as {word}{with}\nnext\n  {next}\n")
        }))
    }

    /// Stores evidence and names it.
    fn keep(
        &self,
        actor: &ActorId,
        name: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<EvidenceId, Error> {
        let until_ms = now_ms().saturating_add(RETENTION_MS);
        let kept = self
            .session
            .artifacts
            .put(bytes, name, media_type, actor, until_ms);
        let kept = kept.map_err(|error| Error::new(error.code(), error.to_string()))?;
        EvidenceId::new(format!("sha256:{}", kept.digest))
    }

    /// What stands in the tree of the attempt: once it is recorded as done, this is its result, whatever becomes of the
    /// tree.
    async fn capture(&self, subject: &Subject, attempt: &Attempt) -> Result<Outcome, Error> {
        let state = self.session.state(subject).await?;
        let job = self.session.coding.job(&state)?;
        let operation = state.operations.get(&attempt.operation_id);
        let place = operation.and_then(|operation| {
            let of = |id: &AttemptId| *id == attempt.attempt_id;
            let number = operation.attempts.iter().position(of)?;
            Some((operation.node_id.clone()?, number as u64 + 1))
        });
        let Some((node, number)) = place else {
            let message = "expected the attempt to belong to a node, found none";
            return Err(Error::new(Code::AttemptNotFound, message));
        };
        let workspace = self.session.coding.workspace(&job);
        let artifacts = std::sync::Arc::clone(&self.session.artifacts);
        let captured = blocking(move || {
            Settled {
                job: &job,
                workspace: &workspace,
                node: &node,
                number,
                artifacts: artifacts.as_ref(),
            }
            .capture()
        });
        captured.await.map_err(|mut error| {
            error.message = format!(
                "what the agent left cannot be taken as its result: {}; nothing was recorded; put it back, or settle it with --not-applied",
                error.message
            );
            error
        })
    }
}

/// The plan or the patch that was captured.
fn result_of(outcome: &Outcome) -> Option<(&'static str, Digest)> {
    let found = |what, name| Some((what, outcome.artifact(name)?.digest));
    found("plan", PLAN_FILE).or_else(|| found("patch", PATCH_FILE))
}

/// The uncertain attempt of this name or of an unambiguous beginning of it.
pub(super) fn find(reader: &Reader, named: &str) -> Result<(Subject, Attempt), Error> {
    let (mut fitting, mut unreadable, mut settled) = (Vec::new(), None, None);
    for subject in reader.runs()? {
        // A run that cannot be read is no reason to leave another one's attempt unsettled.
        let (state, events) = match reader.state(&subject) {
            Ok((state, events)) => (reader.left(&state), events),
            Err(error) => {
                unreadable = unreadable.or(Some(error));
                continue;
            }
        };
        settled = settled.or_else(|| settled_already(&events, named));
        let uncertain = state
            .attempts
            .values()
            .filter(|attempt| is_uncertain(&state, attempt));
        for attempt in uncertain.filter(|attempt| attempt.attempt_id.as_str().starts_with(named)) {
            fitting.push((subject.clone(), attempt.clone()));
        }
    }
    let found = fitting.len();
    let shown = escape::line(named);
    match fitting.pop() {
        Some(meant) if found == 1 && !named.is_empty() => Ok(meant),
        Some(_) if !named.is_empty() => Err(Error::new(
            Code::AttemptNotFound,
            format!("{shown} is the beginning of {found} uncertain attempts; write more of it"),
        )),
        _ if settled.is_some() && !named.is_empty() => Err(Error::new(
            Code::AttemptNotFound,
            settled.unwrap_or_default(),
        )),
        // What is meant may be in what could not be read.
        _ if unreadable.is_some() => unreadable.map_or_else(|| Err(none(&shown)), Err),
        _ => Err(none(&shown)),
    }
}

/// That an attempt of this beginning was settled: as what, by whom and when.
fn settled_already(events: &[Sealed], named: &str) -> Option<String> {
    events.iter().rev().find_map(|sealed| {
        let event = &sealed.event;
        let (id, outcome) = match &event.command {
            Body::Settle(body) => (&body.attempt_id, body.outcome.to_string()),
            Body::Reconcile(body) => (&body.attempt_id, body.outcome.to_string()),
            _ => return None,
        };
        let word = match outcome.as_str() {
            "CONFIRMED_APPLIED" => "applied",
            "CONFIRMED_NOT_APPLIED" => "not applied",
            // An attempt that was settled as unknown is not settled.
            _ => return None,
        };
        id.as_str().starts_with(named).then(|| {
            format!(
                "attempt {} is settled already: {word}, by {}, {}",
                short(id.as_str()),
                escape::line(event.actor_id.as_str()),
                utc(event.at_ms.0)
            )
        })
    })
}

fn none(shown: &str) -> Error {
    Error::new(
        Code::AttemptNotFound,
        format!("expected an uncertain attempt, found none that begins with {shown}"),
    )
}
