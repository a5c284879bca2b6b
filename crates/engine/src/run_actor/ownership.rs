//! Ownership of a run: taking it over, letting it go, and being deposed.
//!
//! Invariant: an owner acts under one epoch, raised by its own commits alone; one that could not take the run over, or
//! finds another epoch in the log, acts no more (T-15, T-16). Part of the run's owner.

use std::sync::Arc;
use std::time::Duration;

use aiws::error::{Code, Error, Stage};
use praxis_model::command::{Body, CommandType, Intent, RecoverOwnership};
use praxis_model::evolve;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;

use super::RunOwner;
use crate::capability::CLASS_RECOVERY;
use crate::core::Core;
use crate::error::{may_be_sent_again, of_store};
use crate::limits::STORE_PAUSE_MS;
use crate::message::{Request, RunMessage, What};

impl RunOwner {
    /// Whether the owner may act: not after a recovery that it needed was refused, except to be recovered.
    pub(super) fn may_act(&self, request: &Request) -> Result<(), Error> {
        let recovery = match &request.what {
            What::Strict(command) => command.body.kind() == CommandType::RecoverOwnership,
            What::Intent {
                intent: Intent::Command { body },
                ..
            } => body.kind() == CommandType::RecoverOwnership,
            What::Intent { .. } | What::Acknowledge { .. } => false,
        };
        match &self.blocked {
            Some(error) if !recovery => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Whether the owner waits for somebody to recover the run.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    /// Whether another owner took over.
    pub(super) fn is_deposed(&self) -> bool {
        self.state.is_none()
            && self
                .blocked
                .as_ref()
                .is_some_and(|error| error.code() == Code::StaleOwner)
    }

    /// Takes the run over from a dead owner (T-15): SYSTEM with the host's recovery authority.
    pub(crate) async fn recover(&mut self, expected_epoch: u64, reason: String) {
        let body = Body::RecoverOwnership(RecoverOwnership {
            expected_epoch: aiws::decimal::Dec::from_u64(expected_epoch),
            reason: reason.clone(),
            decision_ref: None,
        });
        match self.own(CLASS_RECOVERY, Intent::Command { body }).await {
            Ok(_) => tracing::info!(run = ?self.subject.run_id, "recovered"),
            Err(error) => {
                let again = may_be_sent_again(&error);
                self.not_recovered(expected_epoch, error).await;
                if again && self.is_blocked() {
                    self.recover_later(expected_epoch, reason);
                }
            }
        }
    }

    /// The store could not take the recovery now: it is tried again after a pause, and until then nothing is taken.
    fn recover_later(&self, expected_epoch: u64, reason: String) {
        // Whoever closes the store meanwhile does not wait for this.
        let (core, subject) = (Arc::downgrade(&self.core), self.subject.clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(STORE_PAUSE_MS)).await;
            let entry = core.upgrade().and_then(|core| core.directory.run(&subject));
            if let Some(entry) = entry {
                // An owner that is gone is followed by one that recovers the run itself.
                let _ = entry.actor.cast(RunMessage::Recover {
                    expected_epoch,
                    reason,
                });
            }
        });
    }

    /// Somebody else recovered the run first, which is as good; or nobody may, and then nothing runs on.
    pub(super) async fn not_recovered(&mut self, expected_epoch: u64, error: Error) {
        if let Ok(state) = self.current().await
            && state.epoch > expected_epoch
        {
            self.blocked = None;
            return;
        }
        tracing::warn!(code = error.code().name(), message = %error.message, "the run was not recovered");
        self.blocked = Some(error);
    }

    /// Lets go of the run, so that the next open need not recover it (T-16). An owner that could not take the run
    /// over has nothing to let go of.
    pub(super) fn release(&self) {
        if self.epoch.is_some() && self.blocked.is_none() {
            // A full queue costs one needless recovery at the next open.
            let _ = self.core.journal.release_owner(&self.stream);
        }
    }
}

/// Folds a run's stream over the event that admitted it.
pub(super) fn fold(core: &Core, subject: &Subject) -> Result<RunState, Error> {
    let (stream, store) = (subject.stream(), |error: praxis_journal::StoreError| {
        of_store(&error)
    });
    let events = core.journal.stream(&stream).map_err(store)?;
    let opening = match events.first() {
        Some(first) => Some(first.event.prev_hash),
        None => core.opening(&stream),
    };
    let mission = Subject::mission(subject.mission_id.clone()).stream();
    let sequence = match opening {
        Some(hash) => core.journal.find_event(&mission, &hash).map_err(store)?,
        None => None,
    };
    let Some(sequence) = sequence else {
        return Err(crate::engine::no_such_run(subject));
    };
    let admission = core.read(sequence)?;
    let mut state = RunState::admitted(&admission.event, &admission.hash).map_err(unfoldable)?;
    for sealed in &events {
        state = evolve::run(state, &sealed.event, &sealed.hash).map_err(unfoldable)?;
    }
    Ok(state)
}

/// An event that the model cannot fold: nothing was changed, and nothing can be decided on.
pub(super) fn unfoldable(illegal: praxis_model::evolve::IllegalEvent) -> Error {
    Error::new(
        Code::InternalStore,
        format!("{illegal}; run verify and report what it says"),
    )
}

pub(super) fn deposed(own: u64, found: u64) -> Error {
    Error::new(
        Code::StaleOwner,
        format!("expected to own the run under epoch {own}, found epoch {found}; whoever owns it now continues it"),
    )
    .in_stage(Stage::Ownership)
}
