//! `praxis reconcile`: a person settles an uncertain agent run by what was found out.
//! Invariant: the finding is stored as evidence before the decision is recorded; nothing else moves.
//! Called by `verbs::run`.

use aiws::decimal::Dec;
use aiws::error::{Code, Error};
use aiws::id::{EvidenceId, MissionId, RunId};
use aiws::record::{Attempt, SettledOutcome};
use praxis_engine::Shutdown;
use praxis_model::command::{Body, Intent, Reconcile};

use super::{Call, block_on, print};
use crate::args::Reconcile as Args;
use crate::coding::program::Driven;
use crate::exit::Exit;
use crate::files::read_bounded;
use crate::limits::{EVIDENCE_BYTES, RETENTION_MS};
use crate::render::json;
use crate::render::page::short;
use crate::render::rows::is_uncertain;
use crate::session::{Session, login, named, now_ms};
use crate::store::{self, Reader, orphaned};

/// The attempt that is meant.
struct Meant {
    mission_id: MissionId,
    run_id: RunId,
    attempt: Attempt,
}

/// Runs it.
///
/// # Errors
///
/// `EVIDENCE_UNREADABLE`, `ATTEMPT_NOT_FOUND`, a store code, or the code of the decision that was refused.
pub fn run(call: &Call, args: &Args) -> Result<Exit, Error> {
    let actor = match &args.actor {
        Some(name) => named("--as", name)?,
        None => login()?,
    };
    let evidence = read_bounded(&args.evidence, EVIDENCE_BYTES, Code::EvidenceUnreadable)?;
    let meant = find(call, &args.attempt)?;
    let (outcome, actual) = match args.applied {
        true => (SettledOutcome::ConfirmedApplied, meant.attempt.reserved),
        false => (SettledOutcome::ConfirmedNotApplied, Dec::ZERO),
    };
    block_on(async {
        let session = Session::open(&call.store, Driven::None).await?;
        let kept = session.artifacts.put(
            &evidence,
            "finding",
            "text/plain",
            &actor,
            now_ms().saturating_add(RETENTION_MS),
        );
        let kept = kept.map_err(|error| Error::new(error.code(), error.to_string()))?;
        let body = Body::Reconcile(Reconcile {
            run_id: meant.run_id.clone(),
            attempt_id: meant.attempt.attempt_id.clone(),
            outcome,
            actual,
            evidence: vec![EvidenceId::new(format!("sha256:{}", kept.digest))?],
        });
        let request = format!("reconcile:{}", meant.attempt.attempt_id);
        let person = session.typed(&actor, &request);
        let said = session
            .submit(
                &person,
                &meant.mission_id,
                &meant.run_id,
                &request,
                Intent::Command { body },
            )
            .await;
        session.close(Shutdown::Drain).await?;
        said
    })?;
    let word = if args.applied {
        "applied"
    } else {
        "not applied"
    };
    if call.json {
        let members = aiws::object! {
            "attemptId": &meant.attempt.attempt_id,
            "run": &meant.run_id,
            "outcome": outcome,
            "actual": actual,
        };
        print(&json::object("reconciled", members).to_string())?;
    } else {
        let id = short(meant.attempt.attempt_id.as_str());
        print(&format!(
            "attempt {id} is recorded as {word}\nnext\n  {} resume {}",
            crate::render::program(),
            meant.run_id
        ))?;
    }
    Ok(Exit::Done)
}

/// The uncertain attempt of this name or of an unambiguous beginning of it.
fn find(call: &Call, named: &str) -> Result<Meant, Error> {
    let reader = Reader::open(&call.store)?;
    let mut fitting = Vec::new();
    for subject in reader.runs()? {
        let run = reader.load(&subject)?;
        let state = orphaned(&run.state);
        let uncertain = state
            .attempts
            .values()
            .filter(|attempt| is_uncertain(&state, attempt));
        for attempt in uncertain.filter(|attempt| attempt.attempt_id.as_str().starts_with(named)) {
            let run_id = run.job.run_id.clone();
            fitting.push(Meant {
                mission_id: subject.mission_id.clone(),
                run_id,
                attempt: attempt.clone(),
            });
        }
    }
    reader
        .journal
        .close()
        .map_err(|error| store::of_store(&call.store, &error))?;
    let found = fitting.len();
    let shown = crate::render::escape::line(named);
    match fitting.pop() {
        Some(meant) if found == 1 && !named.is_empty() => Ok(meant),
        Some(_) if !named.is_empty() => Err(Error::new(
            Code::AttemptNotFound,
            format!("{shown} is the beginning of {found} uncertain attempts; write more of it"),
        )),
        _ => Err(Error::new(
            Code::AttemptNotFound,
            format!("expected an uncertain attempt, found none that begins with {shown}"),
        )),
    }
}
