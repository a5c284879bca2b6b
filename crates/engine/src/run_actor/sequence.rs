//! Sequences: the steps of one request, decided one after the other and appended as one (T-82).
//!
//! Invariant: each step is decided on the state that the steps before it lead to, under all its guards; all of them
//! become durable together or none does. Only what a settlement or a reconciliation says is kept though a later step is
//! refused, for it is true whatever follows. Part of the run's owner; a command alone is a sequence of one.

use std::sync::Arc;

use aiws::decimal::{Dec, DecPlus, U64};
use aiws::error::{Code, Error};
use aiws::id::DeliveryId;
use aiws::json::Value;
use aiws::object;
use aiws::token::ClaimToken;
use praxis_journal::Conditions;
use praxis_journal::view::post;
use praxis_journal_format::{Sealed, link, seal};
use praxis_model::account::AccountRow;
use praxis_model::command::{AcknowledgeDelivery, Body, CommandType, Intent};
use praxis_model::event::{Event, Part as Place};
use praxis_model::limits::MAX_AUTHORIZATION_AGE_MS;
use praxis_model::mission::cost_account;
use praxis_model::run::RunState;
use praxis_model::{decide, evolve};

use super::ownership::unfoldable;
use super::{Done, RunOwner};
use crate::capability::Capability;
use crate::gather::{self, Gathered};
use crate::message::{Claimed, Request, Response, Sequenced, What};

/// Why a sequence was refused.
pub(crate) struct Refused {
    /// The step, from 1; none where it is about all of them.
    pub(crate) step: Option<usize>,
    /// The refusal, as the step alone would have got it.
    pub(crate) error: Error,
}

/// An accepted sequence.
pub(crate) struct Accepted {
    /// The committed steps.
    pub(crate) done: Vec<Done>,
    /// Why the step after them was refused, if it was.
    pub(crate) refused: Option<Refused>,
}

/// A sequence that was decided and is not yet appended.
pub(crate) struct Drawn {
    pub(super) parts: Vec<Part>,
    pub(super) conditions: Conditions,
    /// The state behind its last step.
    pub(crate) next: Arc<RunState>,
    /// How often the clock had stepped back when the run last had no live claim.
    pub(super) clock_seen: u64,
}

/// One decided step.
pub(super) struct Part {
    pub(super) sealed: Arc<Sealed>,
    pub(super) token: Option<ClaimToken>,
    pub(super) bytes: gather::Copies,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self { step: None, error }
    }
}

impl Refused {
    /// The request that was refused, where one step was.
    pub(super) fn of<'r>(&self, requests: &'r [Request]) -> Option<&'r Request> {
        requests.get(self.step?.checked_sub(1)?)
    }

    /// The refusal as a caller gets it, with the step's number in its details.
    pub(crate) fn told(self) -> Error {
        match self.step {
            Some(step) => self.error.with("step", step.to_string()),
            None => self.error,
        }
    }
}

impl Accepted {
    /// The answer as a caller gets it.
    pub(crate) fn told(self) -> Sequenced {
        let claimed = |done: Done| Claimed {
            response: done.response,
            token: done.token,
        };
        Sequenced {
            steps: self.done.into_iter().map(claimed).collect(),
            refused: self.refused.map(Refused::told),
        }
    }
}

impl RunOwner {
    /// Hops 2 and 3 for every step, on a scratch state; nothing is appended.
    pub(crate) async fn draw(
        &self,
        state: &Arc<RunState>,
        requests: &[Request],
    ) -> Result<Drawn, Refused> {
        let clock = self.core.clock.state();
        // Looked for only where it matters: clocks seldom step.
        let is_claimed = |now_ms| state.live_claim(now_ms).is_some();
        let kept = clock.steps == self.clock_seen || is_claimed(clock.now_ms);
        let mut drawn = Drawn {
            parts: Vec::with_capacity(requests.len()),
            conditions: Conditions::default(),
            next: Arc::clone(state),
            clock_seen: if kept { self.clock_seen } else { clock.steps },
        };
        let mut account = self.core.account(&self.subject.mission_id);
        for (request, step) in requests.iter().zip(1..) {
            let place = Place {
                k: U64(step),
                of: U64(requests.len() as u64),
            };
            let added = self.add(&mut drawn, request, place, account.clone()).await;
            let sealed = added.map_err(|error| Refused {
                step: usize::try_from(step).ok(),
                error,
            })?;
            account = after(account, &sealed.event);
        }
        Ok(drawn)
    }

    /// Decides one more step, seals its event and folds it: an event that cannot be folded never reaches the disk.
    async fn add(
        &self,
        drawn: &mut Drawn,
        request: &Request,
        place: Place,
        account: Option<AccountRow>,
    ) -> Result<Arc<Sealed>, Error> {
        let state = Arc::clone(&drawn.next);
        let filled = drawn.filled(request)?;
        let request = filled.as_ref().unwrap_or(request);
        let Gathered {
            command,
            mut facts,
            bytes,
            token,
        } = gather::run(&self.core, &state, request, account).await?;
        let steps = self.core.clock.steps();
        facts.clock_stepped = steps != drawn.clock_seen;
        let decision = decide::run(&state, &command, &facts)?;
        let mut event = link(
            self.subject.clone(),
            state.head,
            &command,
            &decision,
            &facts,
            facts.now_ms,
            Some(state.epoch),
        );
        event.part = place;
        let sealed =
            Arc::new(seal(event).map_err(|error| Error::new(error.code(), error.to_string()))?);
        let next = evolve::run(RunState::clone(&state), &sealed.event, &sealed.hash)
            .map_err(unfoldable)?;
        let mut conditions = Conditions::of(
            &self.subject,
            Some(state.epoch),
            &command,
            &decision,
            &facts.actor_id,
        );
        conditions.clock_steps = decide::leased(&command.body).then_some(steps);
        // What was allowed is allowed for as long as it may wait for the writer, and no longer (CRD-3, T-30).
        let allowed_ms = facts
            .authorized_at_ms
            .saturating_add(MAX_AUTHORIZATION_AGE_MS + 1);
        conditions.before_ms.push(allowed_ms);
        drawn.conditions = match drawn.parts.is_empty() {
            true => conditions,
            false => std::mem::take(&mut drawn.conditions).and(conditions),
        };
        drawn.next = Arc::new(next);
        drawn.parts.push(Part {
            sealed: Arc::clone(&sealed),
            token,
            bytes,
        });
        Ok(sealed)
    }

    /// The answers to a sequence that was committed before. A step that was refused then is not decided again.
    pub(super) async fn replay_all(
        &mut self,
        requests: &[Request],
        events: &[Arc<Sealed>],
    ) -> Result<Accepted, Refused> {
        let mut done = Vec::with_capacity(events.len());
        for (request, event) in requests.iter().zip(events) {
            done.push(self.replay(request, event).await?);
        }
        let refused = (events.len() < requests.len()).then(|| Refused {
            step: Some(events.len() + 1),
            error: Error::new(
                Code::StateInvalid,
                "expected what is left of the sequence from this step on under a new request id, found that it was not kept when \
                 the sequence was first answered: this step or one behind it was refused; the steps before it count",
            ),
        });
        Ok(Accepted { done, refused })
    }
}

impl Drawn {
    /// The events, in order.
    pub(super) fn sealed(&self) -> Vec<Arc<Sealed>> {
        self.parts
            .iter()
            .map(|part| Arc::clone(&part.sealed))
            .collect()
    }

    /// An acknowledgement inside the sequence, filled in from the claim that the sequence itself makes. No other claim
    /// can be meant, so nobody gets by without a token.
    fn filled(&self, request: &Request) -> Result<Option<Request>, Error> {
        let What::Acknowledge { delivery_id } = &request.what else {
            return Ok(None);
        };
        let claimed = self
            .parts
            .iter()
            .rev()
            .find_map(|part| part.claim_of(delivery_id));
        let (Some(token), Some(delivery)) = (claimed, self.next.deliveries.get(delivery_id)) else {
            return Err(Error::new(
                Code::DeliveryState,
                "expected a step before this one to claim the delivery, found none",
            )
            .with("deliveryId", delivery_id));
        };
        let body = Body::AcknowledgeDelivery(AcknowledgeDelivery {
            delivery_id: delivery_id.clone(),
            handoff: delivery.record.handoff.clone(),
            claim_token: token.fingerprint(),
            generation: DecPlus::new(Dec::from(delivery.record.generation))?,
        });
        let what = What::Intent {
            intent: Intent::Command { body },
            draft: None,
        };
        Ok(Some(request.with(what)))
    }
}

impl Part {
    fn claim_of(&self, delivery_id: &DeliveryId) -> Option<&ClaimToken> {
        match &self.sealed.event.command {
            Body::ClaimDelivery(body) if body.delivery_id == *delivery_id => self.token.as_ref(),
            _ => None,
        }
    }

    pub(super) fn done(self) -> Done {
        let event = &self.sealed.event;
        let (revision, result) = (event.revision.get(), event.result.clone());
        Done {
            response: Response {
                event: Some(self.sealed),
                revision,
                result,
            },
            token: self.token,
            bytes: self.bytes,
        }
    }
}

/// How many steps are kept though a later one is refused: those up to the last truth about an effect before it.
pub(super) fn kept(requests: &[Request], refused: &Refused) -> usize {
    let before = refused.step.map_or(0, |step| step.saturating_sub(1));
    let truth = requests.iter().take(before).rposition(is_truth);
    truth.map_or(0, |at| at + 1)
}

fn is_truth(request: &Request) -> bool {
    let kind = match &request.what {
        What::Strict(command) => command.body.kind(),
        What::Intent {
            intent: Intent::Command { body },
            ..
        } => body.kind(),
        What::Intent { .. } | What::Acknowledge { .. } => return false,
    };
    matches!(kind, CommandType::Settle | CommandType::Reconcile)
}

/// The account as the next step reads it: what this step posts is not published yet.
fn after(account: Option<AccountRow>, event: &Event) -> Option<AccountRow> {
    let key = cost_account(&event.subject);
    let own = event.outcome.accounts.iter();
    own.filter(|posting| *posting.account() == key)
        .fold(account, |row, posting| {
            // What cannot be posted is refused by the writer.
            post(row.as_ref(), posting).ok().or(row)
        })
}

/// A sequence of the engine itself, in one class of decision, without a request id.
pub(crate) fn own_sequence(class: &str, steps: Vec<What>) -> Result<Vec<Request>, Error> {
    let material = steps.iter().map(described).collect::<Result<Vec<_>, _>>()?;
    let digest = aiws::canonical::digest_of(&material)?;
    let capability = Capability::system(class)?;
    let request = |what| Request {
        capability: capability.clone(),
        request_id: None,
        digest,
        what,
        stored_evidence: Default::default(),
    };
    Ok(steps.into_iter().map(request).collect())
}

/// A step's material, as the request's digest covers it (T-23).
pub(crate) fn described(what: &What) -> Result<Value, Error> {
    let (intent, draft) = match what {
        What::Acknowledge { delivery_id } => return Ok(object! { "acknowledge": delivery_id }),
        What::Strict(command) => (aiws::canonical::to_value(&command.body)?, None),
        What::Intent { intent, draft } => (aiws::canonical::to_value(intent)?, draft.as_ref()),
    };
    let draft = match draft {
        Some(draft) => Some(draft.described()?),
        None => None,
    };
    Ok(object! { "intent": intent, "draft": draft })
}
