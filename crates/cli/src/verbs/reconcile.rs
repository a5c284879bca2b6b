//! `praxis reconcile`: a person settles an uncertain agent run by what was found out.
//! Invariant: the finding, and what stands in the tree of work that was done, are stored as evidence before the decision
//! is recorded; where the tree cannot be captured, nothing is recorded.
//! Called by `verbs::run`.

use aiws::decimal::Dec;
use aiws::digest::Digest;
use aiws::error::{Code, Error};
use aiws::id::{ActorId, AttemptId, EvidenceId, MissionId, RunId};
use aiws::record::{Attempt, SettledOutcome};
use praxis_engine::Shutdown;
use praxis_journal_format::Sealed;
use praxis_model::command::{Body, Intent, Reconcile};
use praxis_model::stream::Subject;

use super::{Call, block_on, print};
use crate::args::Reconcile as Args;
use crate::coding::attempt::Settled;
use crate::coding::outcome::{Capture, Outcome, PATCH_FILE, PLAN_FILE};
use crate::coding::program::Driven;
use crate::exit::Exit;
use crate::files::read_bounded;
use crate::limits::{EVIDENCE_BYTES, RETENTION_MS};
use crate::render::page::short;
use crate::render::rows::is_uncertain;
use crate::render::text::utc;
use crate::render::{escape, json};
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
    if evidence.trim_ascii().is_empty() {
        let file = super::shown_path(&args.evidence);
        let message = format!("expected what you found in {file}, found nothing; write it down");
        return Err(Error::new(Code::EvidenceUnreadable, message));
    }
    let meant = find(call, &args.attempt)?;
    let (outcome, actual) = match args.applied {
        true => (SettledOutcome::ConfirmedApplied, meant.attempt.reserved),
        false => (SettledOutcome::ConfirmedNotApplied, Dec::ZERO),
    };
    let captured = block_on(async {
        let session = Session::open(&call.store, Driven::None).await?;
        let captured = match args.applied {
            true => Some(capture(&session, &meant).await?),
            false => None,
        };
        let mut stored = vec![keep(&session, &actor, "finding", "text/plain", &evidence)?];
        if let Some(outcome) = &captured {
            let bytes = aiws::canonical::bytes_of(&Capture::of(outcome.clone()))?;
            stored.push(keep(
                &session,
                &actor,
                "capture",
                "application/json",
                &bytes,
            )?);
        }
        let body = Body::Reconcile(Reconcile {
            run_id: meant.run_id.clone(),
            attempt_id: meant.attempt.attempt_id.clone(),
            outcome,
            actual,
            evidence: stored,
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
        said.map(|_| captured)
    })?;
    let result = captured.as_ref().and_then(result_of);
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
            "result": result.map(|(_, digest)| digest.to_string()),
        };
        print(&json::object("reconciled", members).to_string())?;
    } else {
        let id = short(meant.attempt.attempt_id.as_str());
        let with = result
            .map(|(name, digest)| format!(" with {name} sha256 {digest}"))
            .unwrap_or_default();
        print(&format!(
            "attempt {id} is recorded as {word}{with}\nnext\n  {} resume {}",
            crate::render::program(),
            meant.run_id
        ))?;
    }
    Ok(Exit::Done)
}

/// Stores evidence and names it.
fn keep(
    session: &Session,
    actor: &ActorId,
    name: &str,
    media_type: &str,
    bytes: &[u8],
) -> Result<EvidenceId, Error> {
    let until_ms = now_ms().saturating_add(RETENTION_MS);
    let kept = session
        .artifacts
        .put(bytes, name, media_type, actor, until_ms);
    let kept = kept.map_err(|error| Error::new(error.code(), error.to_string()))?;
    EvidenceId::new(format!("sha256:{}", kept.digest))
}

/// What stands in the tree of the attempt: once it is recorded as done, this is its result, whatever becomes of the tree.
async fn capture(session: &Session, meant: &Meant) -> Result<Outcome, Error> {
    let subject = Subject::run(meant.mission_id.clone(), meant.run_id.clone());
    let state = session.state(&subject).await?;
    let job = session.coding.job(&state)?;
    let operation = state.operations.get(&meant.attempt.operation_id);
    let place = operation.and_then(|operation| {
        let of = |id: &AttemptId| *id == meant.attempt.attempt_id;
        let number = operation.attempts.iter().position(of)?;
        Some((operation.node_id.as_ref()?, number as u64 + 1))
    });
    let Some((node, number)) = place else {
        let message = "expected the attempt to belong to a node, found none";
        return Err(Error::new(Code::AttemptNotFound, message));
    };
    let settled = Settled {
        job: &job,
        workspace: &session.coding.workspace(&job),
        node,
        number,
        artifacts: session.artifacts.as_ref(),
    };
    settled.capture().map_err(|mut error| {
        error.message = format!(
            "what the agent left cannot be taken as its result: {}; nothing was recorded; put it back, or settle it with --not-applied",
            error.message
        );
        error
    })
}

/// The plan or the patch that was captured.
fn result_of(outcome: &Outcome) -> Option<(&'static str, Digest)> {
    let found = |what, name| Some((what, outcome.artifact(name)?.digest));
    found("plan", PLAN_FILE).or_else(|| found("patch", PATCH_FILE))
}

/// The uncertain attempt of this name or of an unambiguous beginning of it.
fn find(call: &Call, named: &str) -> Result<Meant, Error> {
    let reader = Reader::open(&call.store)?;
    let (mut fitting, mut unreadable, mut settled) = (Vec::new(), None, None);
    for subject in reader.runs()? {
        // A run that cannot be read is no reason to leave another one's attempt unsettled.
        let (state, events) = match reader.state(&subject) {
            Ok((state, events)) => (orphaned(&state), events),
            Err(error) => {
                unreadable = unreadable.or(Some(error));
                continue;
            }
        };
        let Some(run_id) = subject.run_id.clone() else {
            continue;
        };
        settled = settled.or_else(|| settled_already(&events, named));
        let uncertain = state
            .attempts
            .values()
            .filter(|attempt| is_uncertain(&state, attempt));
        for attempt in uncertain.filter(|attempt| attempt.attempt_id.as_str().starts_with(named)) {
            fitting.push(Meant {
                mission_id: subject.mission_id.clone(),
                run_id: run_id.clone(),
                attempt: attempt.clone(),
            });
        }
    }
    reader
        .journal
        .close()
        .map_err(|error| store::of_store(&call.store, &error))?;
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
