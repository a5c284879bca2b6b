//! `praxis resume`: goes on with runs that were stopped or killed, wherever that was.
//! Invariant: nothing is started twice; what a kill left between mission and graph, or before the branch, is done.
//! Called by `verbs::run`.

use std::collections::BTreeMap;

use aiws::error::{Code, Error};
use aiws::id::RunId;
use praxis_model::stream::Subject;

use super::{Call, block_on, print, say_error, say_outcome};
use crate::args::Resume as Args;
use crate::coding::contract::Job;
use crate::coding::program::Driven;
use crate::exit::Exit;
use crate::render::json;
use crate::runner::{Asking, Outcome, drive, publish_pending, unset};
use crate::session::{Session, named};
use crate::store;

/// Runs it.
///
/// # Errors
///
/// `RUN_NOT_FOUND` or `RUN_AMBIGUOUS`; a store code; afterwards the exit says how the runs stand.
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
    let Meant {
        wanted,
        live,
        skipped,
    } = meant(call, args.run.as_deref())?;
    let driven = match &wanted {
        Some(run) => Driven::One(run.clone()),
        None => Driven::AllBut(skipped.keys().cloned().collect()),
    };
    for error in skipped.values().filter(|_| !call.json) {
        crate::render::say(&format!("skipped: {}", error.message));
    }
    let resumed = block_on(async {
        let session = Session::open(&call.store, driven).await?;
        let mut beside = Beside::default();
        let may = |run: &RunId| {
            wanted.as_ref().is_none_or(|wanted| run == wanted) && !skipped.contains_key(run)
        };
        finish_starts(&session, wanted.is_some(), &may, &mut beside).await?;
        let runs = coding_runs(&session, live, wanted.as_ref(), &mut beside).await?;
        for (_, result) in publish_pending(&session).await? {
            match result {
                Ok(branch) => beside.published.extend(branch),
                Err(error) => beside.failures.push(error),
            }
        }
        if runs.is_empty() {
            session.close(praxis_engine::Shutdown::Drain).await?;
            return Ok((None, beside));
        }
        let outcome = drive(&session, &runs, asking).await;
        Ok((Some(outcome), beside))
    })?;
    let (outcome, mut beside) = resumed;
    let mut exit = Exit::Done;
    if !skipped.is_empty() {
        exit = Exit::Waits;
    }
    for error in &beside.failures {
        exit = exit.worse(Exit::after_start(error.code()));
        if !call.json {
            say_error(error, false);
        }
    }
    if !call.json {
        for branch in &beside.published {
            print(&format!("published {branch}"))?;
        }
    }
    beside.failures.extend(skipped.into_values());
    match outcome {
        Some(mut outcome) => {
            outcome.exit = outcome.exit.worse(exit);
            outcome.error =
                outcome
                    .error
                    .or(beside.failures.into_iter().next().filter(|_| call.json));
            say_outcome(call, &outcome)
        }
        None => nothing_live(call, wanted, exit, beside),
    }
}

/// What is done and met with beside the runs that are driven.
#[derive(Default)]
struct Beside {
    /// Branches that were made.
    published: Vec<String>,
    /// What kept single runs from going on or from their branch; it keeps no other run.
    failures: Vec<Error>,
}

/// What is to be gone on with.
struct Meant {
    /// The run that a person names.
    wanted: Option<RunId>,
    /// The live runs that are meant.
    live: Vec<Subject>,
    /// Those that do not go on, as a variable that they let through is not set here.
    skipped: BTreeMap<RunId, Error>,
}

/// What is meant, looked for while no engine has the store: an engine goes on with a run as soon as it is open, takes
/// it over from an owner that is gone, and may have ended it before anybody looks.
fn meant(call: &Call, named: Option<&str>) -> Result<Meant, Error> {
    let reader = store::Reader::open(&call.store)?;
    let mut runs = reader.runs()?;
    // A run that was not admitted yet has the name that its job gives it.
    let begun = reader.begun();
    runs.extend(begun.iter().cloned());
    let wanted = named.map(|named| store::pick(&runs, named)).transpose()?;
    runs.retain(|run| {
        store::is_live(&reader.journal, run) && wanted.as_ref().is_none_or(|wanted| wanted == run)
    });
    let mut skipped = BTreeMap::new();
    runs.retain(|run| match (without_variable(&reader, run), &run.run_id) {
        (Some(error), Some(id)) => {
            skipped.insert(id.clone(), error);
            false
        }
        _ => true,
    });
    reader
        .journal
        .close()
        .map_err(|error| store::of_store(&call.store, &error))?;
    match skipped.values().next() {
        Some(error) if runs.is_empty() => Err(error.clone()),
        _ => Ok(Meant {
            wanted: wanted.and_then(|wanted| wanted.run_id),
            live: runs,
            skipped,
        }),
    }
}

/// That a run lets a variable through which is not set here. What cannot be read is met again, and said, later.
fn without_variable(reader: &store::Reader, run: &Subject) -> Option<Error> {
    let job = reader.job_of(&run.mission_id).ok()?;
    let name = unset(&job)?;
    let (run, praxis) = (&job.run_id, crate::render::program());
    let message = format!(
        "run {run} lets the variable {name} through, and it is not set here, so it does not go on: {name}=... {praxis} resume {run}"
    );
    Some(Error::new(Code::Usage, message))
}

/// Admits runs and pins graphs where a kill came before that.
async fn finish_starts(
    session: &Session,
    named: bool,
    may: &dyn Fn(&RunId) -> bool,
    beside: &mut Beside,
) -> Result<(), Error> {
    let mut unfinished: Vec<Job> = Vec::new();
    for mission in store::unstarted_missions(session.host.journal()) {
        let state = session.engine.mission_state(&mission).await?;
        if Job::named_in(&state.contract).is_some() {
            match Job::load(&state.contract, session.artifacts.as_ref()) {
                Ok(job) => unfinished.push(job),
                // Only the job says which run it is; one that is named was found by its name.
                Err(error) if !named => beside.failures.push(error),
                Err(_) => {}
            }
        }
    }
    for run in session.engine.runs().into_iter().filter(|run| run.live) {
        let state = session
            .engine
            .run_state(&run.mission_id, &run.run_id)
            .await?;
        if may(&run.run_id) && state.graph.is_none() && Job::named_in(&state.contract).is_some() {
            // One that cannot be loaded is met again, and said, where the runs are picked.
            unfinished.extend(Job::load(&state.contract, session.artifacts.as_ref()).ok());
        }
    }
    for job in unfinished.iter().filter(|job| may(&job.run_id)) {
        session.start(job).await?;
    }
    Ok(())
}

/// The coding runs among these.
async fn coding_runs(
    session: &Session,
    live: Vec<Subject>,
    wanted: Option<&RunId>,
    beside: &mut Beside,
) -> Result<Vec<Subject>, Error> {
    let mut runs: Vec<Subject> = Vec::new();
    for subject in live {
        let state = session.state(&subject).await?;
        if Job::named_in(&state.contract).is_some() {
            match session.coding.job(&state) {
                Ok(_) => runs.push(subject),
                Err(error) if wanted.is_some() => return Err(error),
                Err(error) => beside.failures.push(error),
            }
        }
    }
    Ok(runs)
}

/// Says that nothing is live; for a named run, how it ended.
fn nothing_live(
    call: &Call,
    wanted: Option<RunId>,
    exit: Exit,
    beside: Beside,
) -> Result<Exit, Error> {
    let error = beside.failures.into_iter().next().filter(|_| call.json);
    if let Some(run) = wanted {
        let reader = store::Reader::open(&call.store)?;
        let run = reader.load(&reader.find(Some(run.as_str()))?)?;
        let page = reader.page(&run, crate::session::now_ms());
        let exit = exit.worse(page.standing.exit());
        say_outcome(
            call,
            &Outcome {
                pages: vec![page],
                exit,
                error,
            },
        )?;
        return Ok(exit);
    }
    if call.json {
        let members = aiws::object! {
            "runs": Vec::<aiws::json::Value>::new(),
            "published": beside.published,
            "error": error.as_ref().map(Error::to_value),
            "exit": exit as i32,
        };
        print(&json::object("runs", members).to_string())?;
    } else {
        print("No run is live; praxis show shows the latest one.")?;
    }
    Ok(exit)
}
