//! `praxis code`: one task through the whole governed workflow.
//! Invariant: everything that can be refused is refused before the store has a mission.
//! Called by `verbs::run`.

use aiws::decimal::Dec;
use aiws::error::{Code, Error};
use praxis_model::stream::Subject;

use super::{Call, block_on, say_outcome};
use crate::args::Code as Args;
use crate::coding::contract::{Choices, Job, Origin};
use crate::coding::program::Driven;
use crate::coding::source::Source;
use crate::exit::Exit;
use crate::runner::{Asking, drive, unset};
use crate::session::{Session, login, named, now_ms, random_name};
use crate::store;

/// Runs it.
///
/// # Errors
///
/// What was refused before the run began; afterwards the exit says how the run stands.
pub fn run(call: &Call, args: Args) -> Result<Exit, Error> {
    let in_advance = args
        .approve_as
        .as_deref()
        .map(|name| named("--approve-as", name))
        .transpose()?;
    let asking = Asking {
        in_advance,
        no_wait: args.no_wait,
        json: call.json,
    };
    let source = Source::open(&args.repo)?;
    source.require_outside(&call.store)?;
    source.require_room()?;
    let repository = source.root.to_str().ok_or_else(|| {
        Error::new(
            Code::RepoUnusable,
            format!("the path {} is not UTF-8", source.root.display()),
        )
    })?;
    let choices = Choices {
        task: args.task,
        agent: args.agent,
        check: args.check,
        environment: args.env,
        max_corrections: args.max_corrections,
        budget: args.budget.map(Dec::from_u64),
        timeout_seconds: args.timeout,
    };
    let origin = Origin {
        started_by: login()?,
        started_at_ms: now_ms(),
        name: random_name()?,
    };
    let job = Job::new(choices, repository, &source.base, origin)?;
    if let Some(name) = unset(&job) {
        let message = format!(
            "--env {name}: not set here; set it: export {name}=..., or leave the option out"
        );
        return Err(Error::new(Code::Usage, message));
    }
    store::create_if_missing(&call.store)?;
    let outcome = block_on(async {
        let session = Session::open(&call.store, Driven::One(job.run_id.clone())).await?;
        session.coding.workspace(&job).prepare(&source.root)?;
        session.start(&job).await?;
        if !call.json {
            crate::render::say(&format!(
                "run {}: {}",
                job.run_id,
                crate::render::escape::line(job.task.lines().next().unwrap_or_default())
            ));
        }
        let subject = Subject::run(job.mission_id.clone(), job.run_id.clone());
        Ok(drive(&session, &[subject], asking).await)
    })?;
    say_outcome(call, &outcome)
}
