//! People's decisions: the approval of a plan and the acceptance of a result.
//! Invariant: what is approved is the fingerprint of exactly what was shown; in advance only a yes is given, and it is recorded as such.
//! Called by `runner` when a run waits for a person.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aiws::decimal::Ms;
use aiws::error::{Code, Error};
use aiws::id::{ActorId, ApprovalId, AssessmentId, Id, RunId};
use aiws::record::{AcceptanceVerdict, ApprovalDecision};
use praxis_model::command::{Accept, Approve, Body, Intent};
use praxis_model::run::RunState;

use crate::coding::contract::Job;
use crate::coding::pending::{Candidate, Proposal, candidate, next_id, proposal};
use crate::limits::APPROVAL_MS;
use crate::prompt::{Answer, ask, at_terminal};
use crate::render::live::Live;
use crate::render::text::{short_commit, units};
use crate::render::{escape, program, say};
use crate::runner::Asking;
use crate::session::{Session, login, now_ms, pretty};

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// A decision was recorded.
    Something,
    /// Nobody could be asked, or nobody answered.
    Nothing,
}

/// Asks people.
pub struct Decider<'a> {
    session: &'a Session,
    asking: &'a Asking,
    /// Somebody at the terminal left a question open; it is not put again by itself.
    left_open: AtomicBool,
    /// The runs of which it was said that nobody can be asked here.
    unasked: Mutex<BTreeSet<RunId>>,
}

impl<'a> Decider<'a> {
    /// Asks in the way that the command line says.
    #[must_use]
    pub fn new(session: &'a Session, asking: &'a Asking) -> Self {
        Self {
            session,
            asking,
            left_open: AtomicBool::new(false),
            unasked: Mutex::default(),
        }
    }

    /// Whether what waits for a person is left for later: nobody here decides it any more.
    #[must_use]
    pub fn leaves_waiting(&self) -> bool {
        self.asking.no_wait || self.left_open.load(Ordering::Relaxed)
    }

    /// Has the pending decision of a run made, if anybody can make it.
    ///
    /// # Errors
    ///
    /// The code of the decision that was refused; a store code when what is to be shown cannot be read.
    pub async fn decide(
        &self,
        state: &Arc<RunState>,
        job: &Arc<Job>,
        live: &mut Live,
    ) -> Result<Decided, Error> {
        if let Some(proposal) = proposal(state, job, now_ms())? {
            let question = format!(
                "Approve the plan of run {} and exactly this action?",
                job.run_id
            );
            let Some((actor, yes)) = self
                .answer(job, live, &question, || self.show_plan(job, &proposal))
                .await?
            else {
                return Ok(Decided::Nothing);
            };
            return self.approve(state, job, &proposal, &actor, yes).await;
        }
        if let Some(candidate) = candidate(state)? {
            let question = format!("Accept the result of run {}?", job.run_id);
            let Some((actor, yes)) = self
                .answer(job, live, &question, || self.show_result(job, &candidate))
                .await?
            else {
                return Ok(Decided::Nothing);
            };
            return self.accept(state, job, &candidate, &actor, yes).await;
        }
        Ok(Decided::Nothing)
    }

    /// Who answers, and what; none when nobody does. `show` makes what a person at a terminal sees first.
    async fn answer(
        &self,
        job: &Job,
        live: &mut Live,
        question: &str,
        show: impl Fn() -> Result<String, Error>,
    ) -> Result<Option<(ActorId, bool)>, Error> {
        if let Some(actor) = &self.asking.in_advance {
            return Ok(Some((actor.clone(), true)));
        }
        if self.left_open.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if self.asking.json || !at_terminal() {
            self.say_unasked(job, live);
            return Ok(None);
        }
        live.leave();
        let (shown, question) = (show()?, question.to_owned());
        let asked = tokio::task::spawn_blocking(move || {
            // Not locked: an interrupt during the question has something to say too.
            let mut terminal = std::io::stderr();
            terminal.write_all(shown.as_bytes())?;
            ask(&question, &mut std::io::stdin().lock(), &mut terminal)
        });
        let failed = |why: String| {
            Error::new(
                Code::TerminalNeeded,
                format!("the terminal did not answer: {why}"),
            )
        };
        let answer = asked
            .await
            .map_err(|error| failed(error.to_string()))?
            .map_err(|error| failed(error.to_string()))?;
        match answer {
            Answer::Yes => Ok(Some((login()?, true))),
            Answer::No => Ok(Some((login()?, false))),
            Answer::Open => {
                say(&format!(
                    "Nothing is decided: {} resume {} asks again later.",
                    program(),
                    job.run_id
                ));
                self.left_open.store(true, Ordering::Relaxed);
                Ok(None)
            }
        }
    }

    /// Says once that the run waits and that nobody can be asked here; where it leaves at once, the page says it.
    fn say_unasked(&self, job: &Job, live: &mut Live) {
        let mut said = self.unasked.lock().unwrap_or_else(PoisonError::into_inner);
        if self.asking.no_wait || !said.insert(job.run_id.clone()) {
            return;
        }
        live.leave();
        let why = match at_terminal() {
            true => "--json asks nobody",
            false => "there is no terminal",
        };
        say(&format!(
            "run {run} waits for a person and {why}: stop this (Ctrl-C) and run {praxis} resume {run} at one, or give --approve-as NAME; --no-wait leaves at once",
            run = job.run_id,
            praxis = program(),
        ));
    }

    async fn approve(
        &self,
        state: &RunState,
        job: &Job,
        proposal: &Proposal,
        actor: &ActorId,
        yes: bool,
    ) -> Result<Decided, Error> {
        let approval_id = ApprovalId::from(next_id(state, "approval"));
        let deadline_ms = state.contract.deadline_ms.to_u64().unwrap_or(u64::MAX);
        let expires_ms = now_ms().saturating_add(APPROVAL_MS).min(deadline_ms);
        let body = Body::Approve(Approve {
            approval_id: approval_id.clone(),
            run_id: job.run_id.clone(),
            fingerprint: proposal.fingerprint,
            decision: if yes {
                ApprovalDecision::Approved
            } else {
                ApprovalDecision::Denied
            },
            expires_at_ms: Ms::from_u64(expires_ms),
        });
        self.submit(job, actor, approval_id.as_str(), body).await
    }

    async fn accept(
        &self,
        state: &RunState,
        job: &Job,
        candidate: &Candidate,
        actor: &ActorId,
        yes: bool,
    ) -> Result<Decided, Error> {
        let assessment_id = AssessmentId::from(next_id(state, "assessment"));
        let body = Body::Accept(Accept {
            assessment_id: assessment_id.clone(),
            run_id: job.run_id.clone(),
            subject: Id::new(candidate.patch.digest.to_string())?,
            verdict: if yes {
                AcceptanceVerdict::Accepted
            } else {
                AcceptanceVerdict::Rejected
            },
            evidence: candidate.evidence.clone(),
        });
        self.submit(job, actor, assessment_id.as_str(), body).await
    }

    async fn submit(
        &self,
        job: &Job,
        actor: &ActorId,
        id: &str,
        body: Body,
    ) -> Result<Decided, Error> {
        let capability = self.session.decided(
            actor,
            self.asking.in_advance.is_some(),
            &format!("decision:{id}"),
        );
        let request = format!("decide:{id}");
        let intent = Intent::Command { body };
        self.session
            .submit(&capability, &job.mission_id, &job.run_id, &request, intent)
            .await?;
        Ok(Decided::Something)
    }

    fn show_plan(&self, job: &Job, proposal: &Proposal) -> Result<String, Error> {
        let plan = self.read(&proposal.plan)?;
        let quoted: Vec<String> = escape::block(&plan)
            .lines()
            .map(|line| format!("  | {line}"))
            .collect();
        let spare = units(job.budget);
        Ok(format!(
            "\nThe plan of run {}:\n\n{}\n\nIf you approve, the agent runs in a private clone of {} at {}\n\
             and may be asked for {} corrections under this plan, within {spare} in all.\n\
             What is approved, and nothing else:{}\n  fingerprint: {}\n\n",
            job.run_id,
            quoted.join("\n"),
            escape::line(&job.repository),
            short_commit(&job.base_commit),
            job.corrections(),
            pretty(&proposal.action, 0),
            proposal.fingerprint,
        ))
    }

    fn show_result(&self, job: &Job, candidate: &Candidate) -> Result<String, Error> {
        let patch = self.read(&candidate.patch)?;
        let shown = escape::block(&patch);
        let (lines, most) = (shown.lines().count(), 200);
        let quoted: Vec<String> = shown
            .lines()
            .take(most)
            .map(|line| format!("  | {line}"))
            .collect();
        let more = if lines > most {
            format!("\n  | [{} lines more]", lines - most)
        } else {
            String::new()
        };
        let empty = if lines == 0 {
            "\n  | [the patch is empty: nothing changes]"
        } else {
            ""
        };
        Ok(format!(
            "\nThe result of run {}: `{}` passed.\n\n{}{more}{empty}\n\n  sha256 {}\n\n",
            job.run_id,
            escape::line(&job.check),
            quoted.join("\n"),
            candidate.patch.digest
        ))
    }

    fn read(&self, artifact: &aiws::record::Artifact) -> Result<String, Error> {
        let bytes =
            praxis_artifacts::read_verified(self.session.artifacts.as_ref(), artifact, now_ms());
        let bytes = bytes.map_err(|error| Error::new(error.code(), error.to_string()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
