//! `praxis reconcile`: a person settles an uncertain agent run by what was found out.
//! Invariant: the finding is read whole before anything is asked of the store.
//! Called by `verbs::run`.

use aiws::error::{Code, Error};

use super::{Call, ask, confirmed};
use crate::args::Reconcile as Args;
use crate::exit::Exit;
use crate::files::read_bounded;
use crate::limits::EVIDENCE_BYTES;
use crate::request::Request;
use crate::session::named;

/// Runs it.
///
/// # Errors
///
/// `EVIDENCE_UNREADABLE`, `ATTEMPT_NOT_FOUND`, a store code, or the code of the decision that was refused.
pub fn run(call: &Call, args: &Args) -> Result<Exit, Error> {
    if let Some(name) = &args.actor {
        named("--as", name)?;
    }
    let evidence = read_bounded(&args.evidence, EVIDENCE_BYTES, Code::EvidenceUnreadable)?;
    if evidence.trim_ascii().is_empty() {
        let file = super::shown_path(&args.evidence);
        let message = format!("expected what you found in {file}, found nothing; write it down");
        return Err(Error::new(Code::EvidenceUnreadable, message));
    }
    let word = match args.applied {
        true => "applied: what stands in its tree is taken as its result",
        false => "not applied: it may be started again",
    };
    let question = format!(
        "Record attempt {} as {word}?",
        crate::render::escape::line(&args.attempt)
    );
    let Some(way) = confirmed(call, &question)? else {
        return Ok(Exit::Waits);
    };
    let request = Request::Reconcile {
        attempt: args.attempt.clone(),
        applied: args.applied,
        way,
        evidence_hex: evidence.iter().map(|byte| format!("{byte:02x}")).collect(),
        name: args.actor.clone(),
    };
    ask(call, request)
}
