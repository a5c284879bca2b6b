//! A person's yes or no to exactly what was named.
//! Invariant: the digest that a decision names is the one that waits now, or nothing is recorded. Part of the office.

use aiws::decimal::Ms;
use aiws::error::{Code, Error};
use aiws::id::{ApprovalId, AssessmentId, Id};
use aiws::object;
use aiws::record::{AcceptanceVerdict, ApprovalDecision};
use praxis_model::command::{Accept, Approve, Body, Intent};
use praxis_model::run::RunState;

use super::person::Said;
use super::{Office, Peer};
use crate::answer::{Answer, View};
use crate::coding::pending::{candidate, next_id, proposal};
use crate::limits::{APPROVAL_MS, EVIDENCE_BYTES};
use crate::render::{json, program};
use crate::request::Decide;
use crate::session::now_ms;

/// What waits for a yes or a no.
enum Waiting {
    /// The plan, by the fingerprint of the action.
    Plan(aiws::digest::Digest),
    /// The result, by the digest of the patch.
    Result(Vec<aiws::id::EvidenceId>),
}

impl Office {
    pub(super) async fn decide(
        &self,
        decide: Decide,
        view: View,
        peer: &Peer,
    ) -> Result<Answer, Error> {
        let (subject, state) = self.meant(&decide.run).await?;
        let job = self.session.coding.job(&state)?;
        let run = &job.run_id;
        let (waiting, what) = waiting(&state, &job, &decide)?;
        let said = Said {
            verb: if decide.yes { "approve" } else { "deny" },
            about: object! { "run": run.as_str(), "what": what, "digest": decide.digest.as_str() },
            reason: decide.reason.as_deref(),
            grants: decide.yes,
        };
        let person = self
            .person(peer, decide.way, decide.name.as_deref(), said)
            .await?;
        let (id, body) = body(&state, &job, &waiting, decide.yes)?;
        let request = format!("decide:{id}");
        let intent = Intent::Command { body };
        self.session
            .submit(&person, &subject.mission_id, run, &request, intent)
            .await?;
        let word = match (&waiting, decide.yes) {
            (Waiting::Plan(_), true) => "approved",
            (Waiting::Result(_), true) => "accepted",
            (_, false) => "denied",
        };
        let value = json::object(
            "decided",
            object! {
                "run": run.as_str(),
                "what": what,
                "digest": decide.digest.as_str(),
                "decision": word,
                "by": person.actor_id().as_str(),
            },
        );
        let going = self.keeper.find(run).is_some();
        Ok(Answer::done(value, view, |_| {
            let next = match (decide.yes, going) {
                (false, _) => format!("{} code --from {run}", program()),
                (true, true) => format!("{} attach {run}", program()),
                (true, false) => format!("{} resume {run}", program()),
            };
            let by = crate::render::escape::line(person.actor_id().as_str());
            format!("the {what} of run {run} is {word} by {by}\nnext\n  {next}\n")
        }))
    }
}

/// What waits in the run, if it is what the decision names.
fn waiting(
    state: &RunState,
    job: &crate::coding::contract::Job,
    decide: &Decide,
) -> Result<(Waiting, &'static str), Error> {
    let run = &job.run_id;
    let other = |what: &str, found: &aiws::digest::Digest| {
        let message = format!(
            "expected a decision on what waits in run {run}, the {what} {found}, found one on {}; look again: {} approve {run}",
            crate::render::escape::line(&decide.digest),
            program()
        );
        Err(Error::new(Code::ApprovalStale, message))
    };
    if let Some(proposal) = proposal(state, job, now_ms())? {
        return match proposal.fingerprint.to_string() == decide.digest {
            true => Ok((Waiting::Plan(proposal.fingerprint), "plan")),
            false => other("action", &proposal.fingerprint),
        };
    }
    if let Some(candidate) = candidate(state)? {
        return match candidate.patch.digest.to_string() == decide.digest {
            true => Ok((Waiting::Result(candidate.evidence), "result")),
            false => other("patch", &candidate.patch.digest),
        };
    }
    Err(nothing_waits(run.as_str()))
}

/// That nothing of a run waits for a decision.
pub(crate) fn nothing_waits(run: &str) -> Error {
    let message = format!(
        "expected run {run} to wait for a decision, found that it does not; {} show {run} says how it stands",
        program()
    );
    Error::new(Code::StateInvalid, message)
}

fn body(
    state: &RunState,
    job: &crate::coding::contract::Job,
    waiting: &Waiting,
    yes: bool,
) -> Result<(Id, Body), Error> {
    let run_id = job.run_id.clone();
    match waiting {
        Waiting::Plan(fingerprint) => {
            let id = next_id(state, "approval");
            let deadline_ms = state.contract.deadline_ms.to_u64().unwrap_or(u64::MAX);
            let expires_ms = now_ms().saturating_add(APPROVAL_MS).min(deadline_ms);
            let body = Body::Approve(Approve {
                approval_id: ApprovalId::from(id.clone()),
                run_id,
                fingerprint: *fingerprint,
                decision: match yes {
                    true => ApprovalDecision::Approved,
                    false => ApprovalDecision::Denied,
                },
                expires_at_ms: Ms::from_u64(expires_ms),
            });
            Ok((id, body))
        }
        Waiting::Result(evidence) => {
            let id = next_id(state, "assessment");
            let patch = candidate(state)?.ok_or_else(|| nothing_waits(run_id.as_str()))?;
            let body = Body::Accept(Accept {
                assessment_id: AssessmentId::from(id.clone()),
                run_id,
                subject: Id::new(patch.patch.digest.to_string())?,
                verdict: match yes {
                    true => AcceptanceVerdict::Accepted,
                    false => AcceptanceVerdict::Rejected,
                },
                evidence: evidence.clone(),
            });
            Ok((id, body))
        }
    }
}

/// Bytes from hex.
pub(super) fn hex(text: &str) -> Result<Vec<u8>, Error> {
    let odd = || Error::new(Code::Usage, "expected evidenceHex as pairs of hex digits");
    if !text.len().is_multiple_of(2) || text.len() as u64 > 2 * EVIDENCE_BYTES {
        return Err(odd());
    }
    let pair = |at: usize| text.get(at..at + 2);
    let bytes = (0..text.len()).step_by(2).map(|at| {
        let pair = pair(at).filter(|pair| pair.bytes().all(|byte| byte.is_ascii_hexdigit()));
        pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())
    });
    bytes.collect::<Option<Vec<u8>>>().ok_or_else(odd)
}
