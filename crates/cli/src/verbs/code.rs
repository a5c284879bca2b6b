//! `praxis code`: one task through the whole governed workflow.
//! Invariant: everything that can be refused is refused before the store has a mission.
//! Called by `verbs::run`.

use std::path::PathBuf;

use aiws::decimal::Dec;
use aiws::error::{Code, Error};
use aiws::json::Value;

use super::{Call, block_on, say_outcome};
use crate::answer::View;
use crate::args::Code as Args;
use crate::coding::contract::{Choices, From, Job, Origin};
use crate::coding::source::Source;
use crate::exit::Exit;
use crate::follow::Asking;
use crate::limits::{DEFAULT_CORRECTIONS, DEFAULT_TIMEOUT_SECONDS, TASK_BYTES};
use crate::office::environment_of;
use crate::request::Request;
use crate::runner::drive;
use crate::session::{login, named, now_ms, random_name};
use crate::{project, seat, store};

/// Runs it.
///
/// # Errors
///
/// What was refused before the run began; afterwards the exit says how the run stands.
pub fn run(call: &Call, mut args: Args) -> Result<Exit, Error> {
    if let Some(name) = &args.approve_as {
        named("--approve-as", name)?;
    }
    let earlier = args
        .from
        .as_deref()
        .map(|run| Earlier::read(call, run))
        .transpose()?;
    let repo = match (&args.repo, &earlier) {
        (Some(repo), _) => repo.clone(),
        (None, Some(earlier)) => PathBuf::from(&earlier.job.repository),
        (None, None) => return Err(Error::new(Code::Usage, "expected --repo PATH")),
    };
    let source = Source::open(&repo)?;
    source.require_outside(&call.store)?;
    source.require_room()?;
    let taken = project::settle(&mut args, &source)?;
    if !call.json {
        project::say(&taken, &source.root);
    }
    let asking = Asking {
        in_advance: args.approve_as.clone(),
        no_wait: args.no_wait,
        notify: args.notify.clone(),
        json: call.json,
    };
    let repository = source.root.to_str().ok_or_else(|| {
        Error::new(
            Code::RepoUnusable,
            format!("the path {} is not UTF-8", source.root.display()),
        )
    })?;
    let origin = Origin {
        started_by: login()?,
        started_at_ms: now_ms(),
        name: random_name()?,
    };
    let job = Job::new(choices(args, earlier)?, repository, &source.base, origin)?;
    let environment = environment_of(&job.environment);
    if let Some(name) = job
        .environment
        .iter()
        .find(|name| !environment.contains_key(name.as_str()))
    {
        let message = format!(
            "--env {name}: not set here; set it: export {name}=..., or leave the option out"
        );
        return Err(Error::new(Code::Usage, message));
    }
    store::create_if_missing(&call.store)?;
    if !call.json {
        crate::render::say(&format!(
            "run {}: {}",
            job.run_id,
            crate::render::escape::line(job.task.lines().next().unwrap_or_default())
        ));
    }
    let again = Request::Resume {
        run: Some(job.run_id.to_string()),
        environment: environment.clone(),
    };
    let start = Request::Start { job, environment };
    let outcome = block_on(drive(&call.store, start, again, &asking))?;
    say_outcome(call, &outcome)
}

/// What was typed, over what the earlier run had.
fn choices(args: Args, earlier: Option<Earlier>) -> Result<Choices, Error> {
    let missing = |option: &str| {
        let message = format!(
            "expected {option}, or agent and check in the repository's praxis.toml; praxis code --help says more"
        );
        Error::new(Code::Usage, message)
    };
    let corrections_given = args.max_corrections.is_some();
    let old = earlier.as_ref().map(|earlier| &earlier.job);
    let typed = |typed: Option<String>, old: Option<&String>, option: &str| {
        typed
            .or_else(|| old.cloned())
            .ok_or_else(|| missing(option))
    };
    let one_of = |typed: Vec<String>, old: Option<&Vec<String>>| match typed.is_empty() {
        true => old.cloned().unwrap_or_default(),
        false => typed,
    };
    Ok(Choices {
        task: typed(args.task, old.map(|job| &job.task), "--task TEXT")?,
        agent: typed(args.agent, old.map(|job| &job.agent), "--agent CMD")?,
        check: typed(args.check, old.map(|job| &job.check), "--check CMD")?,
        environment: one_of(args.env, old.map(|job| &job.environment)),
        secrets: one_of(args.secret, old.map(|job| &job.secrets)),
        max_corrections: args
            .max_corrections
            .or_else(|| old.map(Job::corrections))
            .unwrap_or(DEFAULT_CORRECTIONS),
        budget: args
            .budget
            .map(Dec::from_u64)
            // A budget that only followed from the old bound on corrections follows from the new one.
            .or_else(|| {
                old.filter(|job| !(corrections_given && job.has_default_budget()))
                    .map(|job| job.budget)
            }),
        timeout_seconds: args
            .timeout
            .or_else(|| old.map(|job| job.timeout_seconds.0))
            .unwrap_or(DEFAULT_TIMEOUT_SECONDS),
        from: earlier.map(|earlier| earlier.from),
    })
}

/// A run that is begun again.
struct Earlier {
    job: Job,
    from: From,
}

impl Earlier {
    /// Reads it from the store, with what the agent is told of it.
    fn read(call: &Call, run: &str) -> Result<Self, Error> {
        let request = Request::Show {
            run: Some(run.to_owned()),
        };
        let page = block_on(seat::ask(&call.store, request, View::PROGRAM))?.value;
        let unread = || {
            Error::new(
                Code::NotFound,
                format!("expected {run} to be a coding run, found another kind"),
            )
        };
        let job = page.get("job").ok_or_else(unread)?;
        let job: Job = aiws::canonical::from_value(job)?;
        let text = |name: &str| page.get(name).and_then(Value::as_str);
        let mut feedback = format!(
            "The earlier run {} of this task ended: {}.\n",
            job.run_id,
            text("standing").unwrap_or_default()
        );
        if let Some(cause) = text("cause") {
            feedback.push_str(&format!("{cause}\n"));
        }
        if let Some(plan) = text("plan") {
            feedback.push_str(&format!("\nIts plan was:\n\n{plan}\n"));
        }
        let from = From {
            run_id: job.run_id.clone(),
            feedback: clipped(feedback),
        };
        Ok(Self { job, from })
    }
}

/// At most as many bytes as a task has, at a character's border.
fn clipped(mut text: String) -> String {
    let mut end = text.len().min(TASK_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
