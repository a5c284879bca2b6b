//! What each node of a coding run does: effects to plan, boundaries to commit.
//! Invariant: everything follows from the run's state and stored evidence, so that the same question has the same answer after a crash.
//! Called by the engine for every run of a coding contract.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use aiws::decimal::Dec;
use aiws::error::{Code, Error};
use aiws::id::{ApprovalId, GrantId, HoldId, MissionId, NodeId, RunId};
use aiws::json::Value;
use aiws::object;
use aiws::record::{
    Artifact, Cause, Context, HoldDecision, HoldReason, HoldScope, HoldScopeKind, Manifest,
    OutcomeStatus, Ref,
};
use praxis_artifacts::ArtifactProvider;
use praxis_engine::program::{Conclusion, EffectPlan, NodeContext, Program};
use praxis_model::command::{Body, BoundaryIntent, GrantCommand, HoldProposal};
use praxis_model::run::RunState;
use tokio::sync::watch;

use super::actions::Grants;
use super::adapter::{AGENT, CHECK};
use super::attempt::Settled;
use super::contract::Job;
use super::graph::Stage;
use super::outcome::{
    CHECK_FILE, Capture, Outcome, PATCH_FILE, PLAN_FILE, TRANSCRIPT_FILE, counts,
};
use super::pending::{current, current_approval, digest_in, inputs_of, is_about, kept, next_id};
use super::tries::Tries;
use super::workspace::Workspace;
use crate::limits::AGENT_STARTS;

/// The coding workflow as a program of the engine.
pub struct Coding {
    store: PathBuf,
    /// The runs that go on in this engine.
    driven: Mutex<BTreeSet<RunId>>,
    /// What agents and checks of a run find in their environment, where it was handed in with the run.
    lent: Mutex<BTreeMap<RunId, BTreeMap<String, String>>>,
    artifacts: Arc<dyn ArtifactProvider>,
    jobs: Mutex<BTreeMap<MissionId, Arc<Job>>>,
    /// What kept a tree from being built; whoever drives the runs stops then.
    trouble: watch::Sender<Option<Error>>,
    /// Set once nothing new is started any more.
    stopping: watch::Sender<bool>,
}

impl Coding {
    /// The program over a store directory and its artifacts.
    #[must_use]
    pub fn new(store: PathBuf, artifacts: Arc<dyn ArtifactProvider>) -> Self {
        let (trouble, stopping) = (watch::Sender::new(None), watch::Sender::new(false));
        Self {
            store,
            driven: Mutex::default(),
            lent: Mutex::default(),
            artifacts,
            jobs: Mutex::default(),
            trouble,
            stopping,
        }
    }

    /// Lets a run go on in this engine from now on, with these variables for its agents and checks. Values are kept in
    /// memory alone.
    pub fn drive(&self, run: &RunId, environment: BTreeMap<String, String>) {
        locked(&self.lent).insert(run.clone(), environment);
        locked(&self.driven).insert(run.clone());
    }

    /// The variables that were handed in with a run.
    #[must_use]
    pub fn environment(&self, run: &RunId) -> BTreeMap<String, String> {
        locked(&self.lent).get(run).cloned().unwrap_or_default()
    }

    /// Waits until something kept a tree from being built.
    pub async fn trouble(&self) -> Error {
        let mut trouble = self.trouble.subscribe();
        // The sender is ours, so the wait ends only with an error to tell.
        let seen = trouble
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|error| error.clone());
        seen.unwrap_or_else(|| Error::new(Code::ActorLost, "the workflow is gone"))
    }

    /// Says that nothing new is started any more.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Tells of trouble and waits until whoever drives the runs has stopped, so that the attempts that are left are
    /// not used up on a full disk before anybody can look.
    pub async fn wait_out(&self, error: Error) {
        self.trouble.send_replace(Some(error));
        let mut stopping = self.stopping.subscribe();
        // The sender is ours, so the wait cannot fail.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }

    /// The job of a run.
    ///
    /// # Errors
    ///
    /// As [`Job::load`].
    pub fn job(&self, state: &RunState) -> Result<Arc<Job>, Error> {
        let mut jobs = locked(&self.jobs);
        if let Some(job) = jobs.get(&state.subject.mission_id) {
            return Ok(Arc::clone(job));
        }
        let job = Arc::new(Job::load(&state.contract, self.artifacts.as_ref())?);
        jobs.insert(state.subject.mission_id.clone(), Arc::clone(&job));
        Ok(job)
    }

    /// The git workspace of a job.
    #[must_use]
    pub fn workspace(&self, job: &Job) -> Workspace {
        Workspace::at(&self.store, job.run_id.as_str(), &job.base_commit)
    }

    /// The job of a mission that was asked about before; the engine always plans an effect before it has it.
    #[must_use]
    pub fn known(&self, mission: &MissionId) -> Option<Arc<Job>> {
        locked(&self.jobs).get(mission).cloned()
    }
}

/// What a panic left behind is still whole: nothing here is changed in two steps.
fn locked<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Program for Coding {
    fn drives(&self, run: &RunState) -> bool {
        let wanted = run
            .subject
            .run_id
            .as_ref()
            .is_some_and(|run| locked(&self.driven).contains(run));
        wanted && Job::named_in(&run.contract).is_some()
    }

    fn effect(&self, ctx: &NodeContext) -> Result<EffectPlan, Error> {
        let job = self.job(&ctx.state)?;
        let inputs = inputs_of(&ctx.state, &ctx.node.id);
        let plan_digest = || digest_in(&inputs, PLAN_FILE);
        let agent =
            |action: Value, grant_id: GrantId, approval_id: Option<ApprovalId>| EffectPlan {
                adapter: AGENT.to_owned(),
                action,
                amount: Dec::from_u64(1),
                grant_id,
                approval_id,
            };
        match stage(&ctx.node.id)? {
            Stage::Plan => Ok(agent(job.plan_action(), GrantId::new(Grants::PLAN)?, None)),
            Stage::Implement => {
                let action = job.implement_action(&plan_digest()?);
                let approval = current_approval(&ctx.state, &action, ctx.now_ms)?;
                Ok(agent(action, GrantId::new(Grants::IMPLEMENT)?, approval))
            }
            Stage::Correct(number) => {
                let plan = plan_digest()?;
                Ok(agent(
                    job.correct_action(&plan, number),
                    Grants::correction(&plan)?,
                    None,
                ))
            }
            Stage::Check(_) => Ok(EffectPlan {
                adapter: CHECK.to_owned(),
                action: job.check_action(&digest_in(&inputs, PATCH_FILE)?),
                amount: Dec::ZERO,
                grant_id: GrantId::new(Grants::CHECK)?,
                approval_id: None,
            }),
            _ => Err(unexpected(&ctx.node.id)),
        }
    }

    /// The contract's attempts are there for lost checks and trees that could not be built. An agent that does nothing
    /// is not started as often.
    fn gives_up(&self, ctx: &NodeContext) -> Result<bool, Error> {
        Ok(stage(&ctx.node.id)?.agent().is_some() && Tries::of(ctx).starts() >= AGENT_STARTS)
    }

    fn conclude(&self, ctx: &NodeContext) -> Result<Conclusion, Error> {
        let inputs = inputs_of(&ctx.state, &ctx.node.id);
        match stage(&ctx.node.id)? {
            Stage::Approve => self.conclude_approve(ctx, &inputs),
            Stage::Plan | Stage::Implement | Stage::Correct(_) | Stage::Check(_) => {
                self.conclude_work(ctx, &inputs)
            }
            Stage::Decide(_) => {
                let passed = inputs.iter().all(|manifest| counts(manifest));
                let kept = kept(&inputs, &[PLAN_FILE, PATCH_FILE, CHECK_FILE]);
                Ok(completed(ctx, object! { "passed": passed }, kept))
            }
            Stage::Passed(_) | Stage::Result => Ok(completed(
                ctx,
                object! { "passed": true },
                kept(&inputs, &[PLAN_FILE, PATCH_FILE]),
            )),
            Stage::Verify => conclude_verify(ctx, &inputs),
            Stage::Accept => Ok(conclude_accept(ctx, &inputs)),
            Stage::End => Ok(completed(
                ctx,
                object! { "disposition": "COMPLETED" },
                kept(&inputs, &[PLAN_FILE, PATCH_FILE]),
            )),
        }
    }
}

impl Coding {
    /// The approved plan goes on once the grant for its corrections is in force.
    fn conclude_approve(
        &self,
        ctx: &NodeContext,
        inputs: &[Arc<Manifest>],
    ) -> Result<Conclusion, Error> {
        let job = self.job(&ctx.state)?;
        let plan = digest_in(inputs, PLAN_FILE)?;
        let Some(approval) =
            current_approval(&ctx.state, &job.implement_action(&plan), ctx.now_ms)?
        else {
            return Ok(Conclusion::Wait {
                what: "the approval of the plan".to_owned(),
            });
        };
        let grant = job.correction_grant(&plan)?;
        if job.corrections() > 0 && !ctx.mission.grants.contains_key(&grant.grant_id) {
            return Ok(Conclusion::Command(Body::GrantCommand(GrantCommand {
                grant,
            })));
        }
        let mut boundary = boundary(ctx, OutcomeStatus::Completed, object! { "approved": true });
        boundary.artifacts = kept(inputs, &[PLAN_FILE]);
        boundary.approvals = vec![approval];
        Ok(Conclusion::Boundary(boundary))
    }

    /// An agent run or a check is concluded from its evidence.
    fn conclude_work(
        &self,
        ctx: &NodeContext,
        inputs: &[Arc<Manifest>],
    ) -> Result<Conclusion, Error> {
        let job = self.job(&ctx.state)?;
        let stage = stage(&ctx.node.id)?;
        if !has_applied(ctx) {
            return exhausted(ctx, &job);
        }
        let reported = ctx
            .evidence
            .iter()
            .rev()
            .find_map(|record| match &record.report {
                Some(report) => Outcome::from_value(&report.evidence),
                // A person found out that it did its work: what stood in the workspace then is its result.
                None => Capture::from_bytes(&record.bytes).map(|capture| capture.outcome),
            });
        let outcome = match (reported, &ctx.operation) {
            (Some(outcome), _) => outcome,
            (None, Some(operation)) => Settled {
                job: &job,
                workspace: &self.workspace(&job),
                node: &ctx.node.id,
                number: operation.attempts.len() as u64,
                artifacts: ctx.artifacts.as_ref(),
            }
            .recapture()?,
            (None, None) => return Err(unexpected(&ctx.node.id)),
        };
        let mut artifacts = kept(inputs, &carried(stage));
        replace(&mut artifacts, &outcome.artifacts);
        let (status, hold) = match (stage, &outcome.failure) {
            (Stage::Plan, Some(_)) => (OutcomeStatus::Failed, None),
            (Stage::Check(number), Some(_)) if number == job.corrections() => (
                OutcomeStatus::Blocked,
                Some(hold(ctx, &job, HoldReason::AttemptLimit)?),
            ),
            _ => (OutcomeStatus::Completed, None),
        };
        let mut boundary = boundary(ctx, status, outcome.result());
        boundary.artifacts = artifacts;
        boundary.hold = hold;
        boundary.cause = (status == OutcomeStatus::Failed).then(|| Cause {
            code: "PLAN_FAILED".to_owned(),
            detail: outcome.failure.clone().unwrap_or_default(),
        });
        Ok(Conclusion::Boundary(boundary))
    }
}

/// The artifacts that a working stage passes on from its inputs unless it makes them anew.
fn carried(stage: Stage) -> Vec<&'static str> {
    match stage {
        Stage::Plan => Vec::new(),
        Stage::Implement => vec![PLAN_FILE],
        _ => vec![PLAN_FILE, PATCH_FILE],
    }
}

/// Every attempt is confirmed not to have been applied and there will be no other: a person has to look.
fn exhausted(ctx: &NodeContext, job: &Job) -> Result<Conclusion, Error> {
    let failure = Tries::of(ctx).sentence();
    let mut boundary = boundary(
        ctx,
        OutcomeStatus::Blocked,
        object! { "passed": false, "failure": failure },
    );
    boundary.artifacts = kept(
        &inputs_of(&ctx.state, &ctx.node.id),
        &[PLAN_FILE, PATCH_FILE],
    );
    boundary.hold = Some(hold(ctx, job, HoldReason::AttemptLimit)?);
    Ok(Conclusion::Boundary(boundary))
}

/// The node rests on the verification that [`verification`] proposes; the engine asks once it is there.
fn conclude_verify(ctx: &NodeContext, inputs: &[Arc<Manifest>]) -> Result<Conclusion, Error> {
    let patch = digest_in(inputs, PATCH_FILE)?;
    let verified = current(&ctx.state.verifications)
        .is_some_and(|last| last.verdict.is_positive() && is_about(last, &patch));
    Ok(match verified {
        true => completed(
            ctx,
            object! { "passed": true },
            kept(inputs, &[PLAN_FILE, PATCH_FILE]),
        ),
        false => Conclusion::Wait {
            what: "the verification of the result".to_owned(),
        },
    })
}

fn conclude_accept(ctx: &NodeContext, inputs: &[Arc<Manifest>]) -> Conclusion {
    let patch = digest_in(inputs, PATCH_FILE).ok();
    let accepted = current(&ctx.state.acceptances).is_some_and(|last| {
        last.verdict.is_positive() && patch.is_some_and(|patch| is_about(last, &patch))
    });
    if accepted {
        completed(
            ctx,
            object! { "accepted": true },
            kept(inputs, &[PLAN_FILE, PATCH_FILE]),
        )
    } else {
        Conclusion::Wait {
            what: "the acceptance of the result".to_owned(),
        }
    }
}

/// Puts `made` in place of what has the same name; transcripts come last.
fn replace(artifacts: &mut Vec<Artifact>, made: &[Artifact]) {
    for artifact in made {
        artifacts.retain(|known| known.locator.key != artifact.locator.key);
        artifacts.push(artifact.clone());
    }
    artifacts.sort_by_key(|artifact| artifact.locator.key.as_str() == TRANSCRIPT_FILE);
}

fn has_applied(ctx: &NodeContext) -> bool {
    ctx.operation.as_ref().is_some_and(|operation| {
        operation.status == aiws::record::OperationStatus::ConfirmedApplied
    })
}

fn stage(node: &NodeId) -> Result<Stage, Error> {
    Stage::of(node).ok_or_else(|| unexpected(node))
}

pub(super) fn unexpected(node: &NodeId) -> Error {
    Error::new(
        Code::GraphInvalid,
        format!("expected a node of the coding workflow, found {node}"),
    )
}

fn boundary(ctx: &NodeContext, status: OutcomeStatus, result: Value) -> BoundaryIntent {
    BoundaryIntent {
        node_id: ctx.node.id.clone(),
        status,
        result,
        artifacts: Vec::new(),
        criteria: Vec::new(),
        approvals: Vec::new(),
        context: Context::default(),
        cause: None,
        hold: None,
    }
}

fn completed(ctx: &NodeContext, result: Value, artifacts: Vec<Artifact>) -> Conclusion {
    let mut boundary = boundary(ctx, OutcomeStatus::Completed, result);
    boundary.artifacts = artifacts;
    Conclusion::Boundary(boundary)
}

/// A hold over the whole run that only a cancellation ends: no command adds corrections or attempts.
fn hold(ctx: &NodeContext, job: &Job, reason: HoldReason) -> Result<HoldProposal, Error> {
    let one = Dec::from_u64(1);
    Ok(HoldProposal {
        hold_id: HoldId::from(next_id(&ctx.state, "hold")),
        scope: HoldScope {
            kind: HoldScopeKind::Run,
            scope_ref: Ref {
                id: job.run_id.as_id(),
                revision: one,
            },
            resolver_revision: one,
        },
        reason,
        owner: job.started_by.as_id(),
        blockers: Vec::new(),
        allowed_decisions: vec![HoldDecision::Cancel],
        stop_disposition: Vec::new(),
    })
}
