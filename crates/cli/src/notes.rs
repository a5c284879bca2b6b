//! The last refusal of a step, caught from the engine's log, so that a run that stands still can say why.
//! Invariant: notes are for people alone; nothing branches on them.
//! Installed by `main`, read by `runner`.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use aiws::error::{Code, Error};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

static LAST: Mutex<Option<(Instant, Error)>> = Mutex::new(None);

/// What was refused last and when, if anything was.
#[must_use]
pub fn last_refusal() -> Option<(Instant, Error)> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Catches refusals; with `PRAXIS_LOG` set to a filter such as `praxis_engine=debug`, also writes a log to the
/// standard error.
pub fn install() {
    let filter = std::env::var("PRAXIS_LOG")
        .ok()
        .map(tracing_subscriber::EnvFilter::new);
    let log = filter.map(|filter| {
        tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .log_internal_errors(false)
            .with_filter(filter)
    });
    // A second installation, as tests in one process make it, changes nothing.
    let _ = tracing_subscriber::registry()
        .with(Refusals)
        .with(log)
        .try_init();
}

struct Refusals;

impl<S: Subscriber> Layer<S> for Refusals {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut seen = Seen::default();
        event.record(&mut seen);
        if let Some(code) = seen
            .code
            .as_deref()
            .and_then(|code| Code::parse(code.trim_matches('"')))
        {
            // The literal, which says what the engine did about it, comes first; the refusal's own sentence second.
            let said = match seen.messages.as_slice() {
                [_, said, ..] => said.as_str(),
                _ => code.sentence(),
            };
            let message = crate::render::escape::line(said.trim_matches('"'));
            *LAST.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((Instant::now(), Error::new(code, message)));
        }
    }
}

#[derive(Default)]
struct Seen {
    code: Option<String>,
    messages: Vec<String>,
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "code" => self.code = Some(format!("{value:?}")),
            "message" => self.messages.push(format!("{value:?}")),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_noted_in_its_own_words() {
        let (code, message) = (Code::ApprovalStale.name(), "the approval expired");
        tracing::subscriber::with_default(tracing_subscriber::registry().with(Refusals), || {
            tracing::info!(step = 1, code, message = %message, "a step was refused");
        });
        let (_, error) = last_refusal().unwrap();
        assert_eq!(error.code(), Code::ApprovalStale);
        assert_eq!(error.message, message);
    }
}
