//! What is answered from the journal alone.
//! Invariant: changes nothing in the store, and says the same whether an engine has it open or not.
//! Called by the office, and by the verbs where no engine has the store.

use std::path::Path;

use aiws::error::{Code, Error};
use aiws::object;

use super::decide::nothing_waits;
use crate::answer::{Answer, View};
use crate::coding::outcome::{PATCH_FILE, named};
use crate::coding::pending::{candidate, proposal};
use crate::exit::Exit;
use crate::render::approval::{self, Finished, Plan};
use crate::render::page::Page;
use crate::render::{holds, inbox, json, list, patch, report};
use crate::request::Request;
use crate::session::now_ms;
use crate::store::{Reader, Run};
use crate::verbs;

/// Answers a request that only looks.
///
/// # Errors
///
/// `RUN_NOT_FOUND`, `RUN_AMBIGUOUS`, a store code; `USAGE` for a request that does more.
pub fn look(reader: &Reader, request: &Request, view: View) -> Result<Answer, Error> {
    match request {
        Request::List {} => all(reader, |pages| {
            let value = list::value(pages);
            Answer::done(value, view, |style| list::text(pages, style, now_ms()))
        }),
        Request::Inbox {} => all(reader, |pages| {
            let items = inbox::items(pages);
            let value = inbox::value(&items);
            Answer::done(value, view, |style| inbox::text(&items, style, now_ms()))
        }),
        Request::Holds {} => all(reader, |pages| {
            let value = holds::value(pages);
            Answer::done(value, view, |style| holds::text(pages, style))
        }),
        Request::Show { run } => verbs::show::answer(reader, run.as_deref(), view),
        Request::Log { run } => verbs::log::answer(reader, run.as_deref(), view),
        Request::Unknown { run } => verbs::unknown::answer(reader, run.as_deref(), view),
        Request::Diff { run } => diff(reader, run.as_deref(), view),
        Request::Report { run } => {
            let (run, page) = one(reader, run.as_deref())?;
            let mut report = report::Report::of(&page, &run.events, &run.job);
            report.prove(|revision| {
                let mut events = run.events.iter();
                let sealed = events.find(|sealed| sealed.event.revision.0 == revision)?;
                reader.decision(sealed)
            });
            let value = report::value(&report);
            Ok(Answer::done(value, view, |_| report::markdown(&report)))
        }
        Request::Run { mission_id, run_id } => {
            let subject = praxis_model::stream::Subject::run(mission_id.clone(), run_id.clone());
            super::worker::run(reader, &subject, view)
        }
        Request::Live { run } => live(reader, run.as_deref()),
        Request::Pending { run } => pending(reader, run, view),
        Request::Transcript { run } => verbs::attach::answer(reader, run.as_deref(), view),
        Request::Verify {
            deep,
            checkpoints,
            verifier_key,
        } => {
            let kept = verbs::verify::Kept::of(checkpoints, verifier_key.as_deref())?;
            verbs::verify::answer(&reader.journal, *deep, &kept, &mut |_, _| {}, view)
        }
        Request::Checkpoint {} => verbs::checkpoint::answer(&reader.journal, view),
        Request::Export {
            file,
            mission: Some(mission),
            checkpoint,
        } => {
            let note = checkpoint.as_deref().unwrap_or_default();
            verbs::export::answer_mission(reader, mission, note, Path::new(file), view)
        }
        Request::Export { file, .. } => {
            verbs::export::answer(&reader.journal, Path::new(file), view)
        }
        Request::Doctor {} => Ok(verbs::doctor::answer(reader, view)),
        Request::Backup { directory } => verbs::backup::answer(reader, Path::new(directory), view),
        Request::Clean {
            dry_run: true,
            older_than_days,
        } => verbs::clean::answer(reader, true, *older_than_days, view),
        Request::Pause {
            run,
            branch,
            dry_run: true,
            ..
        } => super::branch::answer(reader, run, branch.as_deref(), view),
        other => Err(Error::new(
            Code::Usage,
            format!("expected a request that only looks, found {other:?}"),
        )),
    }
}

/// Refuses what the store as it stands already refuses, so that nothing is opened for it.
///
/// # Errors
///
/// What the request will be refused with: a run, hold or attempt that is not there, nothing that waits.
pub fn refuse_early(reader: &Reader, request: &Request) -> Result<(), Error> {
    match request {
        Request::Decide(decide) => pending(reader, &decide.run, View::PROGRAM).map(drop),
        Request::Cancel { run, .. }
        | Request::Pause { run, .. }
        | Request::Continue { run, .. }
        | Request::Resume { run: Some(run), .. } => live(reader, Some(run)).map(drop),
        Request::Recheck { hold, .. } => reader.find_hold(hold).map(drop),
        Request::Reconcile { attempt, .. } => super::reconcile::find(reader, attempt).map(drop),
        _ => Ok(()),
    }
}

/// The pages of all runs. One that cannot be read is said, and hides no other.
fn all(reader: &Reader, made: impl Fn(&[Page]) -> Answer) -> Result<Answer, Error> {
    let (mut pages, mut unreadable) = (Vec::new(), Vec::new());
    for subject in reader.runs()? {
        match reader.load(&subject) {
            Ok(run) => pages.push(reader.page(&run, now_ms())),
            Err(error) => unreadable.push(error),
        }
    }
    let mut answer = made(&pages);
    for error in &unreadable {
        answer.exit = answer.exit.worse(Exit::of(error.code()));
        if !answer.text.is_empty() {
            answer.text.push_str(&format!("cannot be read: {error}\n"));
        }
    }
    if let (aiws::json::Value::Object(members), false) = (&mut answer.value, unreadable.is_empty())
    {
        let errors: Vec<_> = unreadable.iter().map(Error::to_value).collect();
        members.insert("unreadable".to_owned(), errors.into());
    }
    Ok(answer)
}

fn one(reader: &Reader, named: Option<&str>) -> Result<(Run, Page), Error> {
    let run = reader.load(&reader.find(named)?)?;
    let page = reader.page(&run, now_ms());
    Ok((run, page))
}

/// The live runs that are meant, by name: one that was begun and not admitted has the name that its job gives it.
fn live(reader: &Reader, named: Option<&str>) -> Result<Answer, Error> {
    let mut runs = reader.runs()?;
    let begun = reader.begun();
    runs.extend(begun.iter().cloned());
    if let Some(named) = named {
        runs = vec![crate::store::pick(&runs, named)?];
    }
    runs.retain(|run| crate::store::is_live(&reader.journal, run));
    let line = |run: &praxis_model::stream::Subject| {
        // What cannot be read is met again, and said, where the run is driven.
        let job = reader.job_of(&run.mission_id).ok();
        object! {
            "run": run.run_id.as_ref().map(|run| run.as_str()),
            "environment": job.map(|job| job.environment).unwrap_or_default(),
        }
    };
    let lines: Vec<_> = runs.iter().map(line).collect();
    let value = json::object("live", object! { "runs": lines });
    Ok(Answer::done(value, View::PROGRAM, |_| String::new()))
}

/// What would be accepted, or was: the newest patch of the run.
fn diff(reader: &Reader, run: Option<&str>, view: View) -> Result<Answer, Error> {
    let (run, page) = one(reader, run)?;
    let patches = run.state.manifests.values().filter_map(|committed| {
        let patch = named(&committed.manifest.artifacts, PATCH_FILE)?;
        Some((committed.revision, patch.clone()))
    });
    let Some((_, artifact)) = patches.max_by_key(|(revision, _)| *revision) else {
        let message = format!(
            "expected a patch of run {}, found none yet; {} show {} says how far it is",
            page.run,
            crate::render::program(),
            page.run
        );
        return Err(Error::new(Code::StateInvalid, message));
    };
    let bytes = reader.artifact(&artifact)?;
    let shown = String::from_utf8_lossy(&bytes);
    let stat: Vec<_> = patch::stat(&shown)
        .iter()
        .map(|file| {
            object! { "file": file.path.as_str(), "added": file.added.to_string(), "removed": file.removed.to_string() }
        })
        .collect();
    let value = json::object(
        "diff",
        object! {
            "run": page.run.as_str(),
            "digest": artifact.digest.to_string(),
            "files": stat,
            "patch": shown.as_ref(),
        },
    );
    Ok(Answer::done(value, view, |style| {
        patch::text(&shown, style, None)
    }))
}

/// What a person has to see before a yes.
fn pending(reader: &Reader, run: &str, view: View) -> Result<Answer, Error> {
    let run = reader.load(&reader.find(Some(run))?)?;
    let (state, job) = (&run.state, &run.job);
    let read = |artifact: &aiws::record::Artifact| {
        reader
            .artifact(artifact)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let told = |what: &str, digest: String, material: &str| {
        json::object(
            "pending",
            object! {
                "run": job.run_id.as_str(),
                "what": what,
                "digest": digest,
                "material": material,
            },
        )
    };
    if let Some(proposal) = proposal(state, job, now_ms())? {
        let plan = read(&proposal.plan)?;
        let fingerprint = proposal.fingerprint.to_string();
        let mut value = told("plan", fingerprint.clone(), &plan);
        if let aiws::json::Value::Object(members) = &mut value {
            members.insert("action".to_owned(), proposal.action.clone());
        }
        return Ok(Answer::done(value, view, |style| {
            let shown = Plan {
                run: job.run_id.as_str(),
                repository: &job.repository,
                base: &job.base_commit,
                task: &job.task,
                corrections: job.corrections(),
                budget: job.budget,
                plan: &plan,
                action: &proposal.action,
                fingerprint: &fingerprint,
            };
            approval::plan_text(&shown, style)
        }));
    }
    let Some(candidate) = candidate(state)? else {
        return Err(nothing_waits(job.run_id.as_str()));
    };
    let patch = read(&candidate.patch)?;
    let digest = candidate.patch.digest.to_string();
    let value = told("result", digest.clone(), &patch);
    Ok(Answer::done(value, view, |style| {
        let shown = Finished {
            run: job.run_id.as_str(),
            check: &job.check,
            patch: &patch,
            digest: &digest,
        };
        approval::result_text(&shown, style)
    }))
}
