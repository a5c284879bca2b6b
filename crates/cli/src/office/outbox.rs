//! The outbox: what a consumer has not acknowledged yet, as notices for people.
//! Invariant: a notice comes until it is acknowledged, also after a restart; a consumer that acknowledges nothing holds
//! up itself alone. Part of the office, and of the verb `outbox` where no engine has the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use aiws::error::{Code, Error};
use aiws::id::ConsumerId;
use aiws::object;
use aiws::record::{Hold, HoldState};
use praxis_journal::StoreError;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;

use super::{Items, Office, Peer, blocking};
use crate::answer::{Answer, View};
use crate::coding::contract::Job;
use crate::coding::publish;
use crate::limits::{OUTBOX_NOTICES, OUTBOX_QUIET_EVENTS};
use crate::notices::{self, Kind, Moved, Notice};
use crate::render::json;
use crate::render::page::Standing;
use crate::render::rows::is_uncertain;
use crate::session::now_ms;
use crate::store::Reader;

/// The consumer that `--notify` tells.
pub const NOTIFY: &str = "notify";

/// How often is looked whether there is something new: a look is a load of one pointer.
const TICK: Duration = Duration::from_millis(200);
/// How often is looked whether a shim still answers for an attempt.
const SHIM_TICK: Duration = Duration::from_secs(2);

/// What a consumer has not acknowledged yet.
#[derive(Debug, Default)]
pub struct Pending {
    /// The notices, in the order of their events.
    pub notices: Vec<Notice>,
    /// The first event that cannot be told yet: a shim still answers for its attempt. Nothing from there on is
    /// acknowledged, so that it is told where the shim is lost.
    pub undecided: Option<u64>,
    /// Up to where there is nothing more to tell.
    pub reached: u64,
}

/// The name of a consumer.
///
/// # Errors
///
/// `USAGE` for one that is empty, overlong or has controls, and for the one that brings results to branches.
pub fn consumer(name: &str) -> Result<ConsumerId, Error> {
    let plain = !name.trim().is_empty()
        && name.chars().count() <= 64
        && crate::render::escape::line(name) == name;
    if plain && name != publish::CONSUMER {
        return ConsumerId::new(name);
    }
    let message = format!(
        "expected a consumer's name of 1 to 64 plain characters, and not {}, which is the engine's own",
        publish::CONSUMER
    );
    Err(Error::new(Code::Usage, message))
}

/// What a consumer has not acknowledged yet, without what it has already in hand; at most a bounded number.
///
/// # Errors
///
/// A store code where events cannot be read.
pub fn pending(
    reader: &Reader,
    consumer: &ConsumerId,
    in_hand: &BTreeSet<u64>,
) -> Result<Pending, Error> {
    let journal = &reader.journal;
    let (from, end) = (journal.cursor(consumer) + 1, journal.view().sequence());
    let mut found = Pending {
        reached: end,
        ..Pending::default()
    };
    let mut events = Vec::new();
    let failed = |error: StoreError| Error::new(error.code(), error.to_string());
    journal
        .scan(from, |sequence, sealed| {
            if sealed.event.subject.run_id.is_some() {
                events.push((sequence, sealed));
            }
            true
        })
        .map_err(failed)?;
    let mut runs: BTreeMap<Subject, Option<Followed>> = BTreeMap::new();
    for (sequence, sealed) in events {
        let event = &sealed.event;
        let run = match runs.get_mut(&event.subject) {
            Some(run) => run,
            None => {
                let followed = Followed::of(reader, &event.subject, event.revision.get())?;
                runs.entry(event.subject.clone()).or_insert(followed)
            }
        };
        // A run of another kind has nothing that the verbs could do for it.
        let Some(run) = run else { continue };
        let before = run.state.clone();
        run.state = praxis_model::evolve::run(before.clone(), event, &sealed.hash)
            .map_err(|error| Error::new(Code::StoreCorrupt, error.to_string()))?;
        let moved = Moved {
            sequence,
            at_ms: event.at_ms.get(),
            before: &before,
            after: &run.state,
            job: &run.job,
        };
        let Some(notice) = notices::of(&moved) else {
            continue;
        };
        match run.is_due(reader, &notice)? {
            Due::Now if in_hand.contains(&sequence) => {}
            Due::Now if found.notices.len() == OUTBOX_NOTICES => {
                found.reached = sequence - 1;
                break;
            }
            Due::Now => found.notices.push(notice),
            Due::Later => found.undecided = found.undecided.or(Some(sequence)),
            Due::Never => {}
        }
    }
    Ok(found)
}

/// Whether a notice is to be told.
enum Due {
    Now,
    Later,
    Never,
}

/// A run on the way through its events.
struct Followed {
    state: RunState,
    job: Job,
    /// The run as it is now, and as it is seen with what its shims say.
    now: Option<(RunState, RunState)>,
}

impl Followed {
    /// The run as it was before one of its events; none where it is no coding run.
    fn of(reader: &Reader, subject: &Subject, revision: u64) -> Result<Option<Self>, Error> {
        let state = reader.state_before(subject, revision)?;
        if Job::named_in(&state.contract).is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            job: reader.job(&state)?,
            state,
            now: None,
        }))
    }

    /// Whether it is to be told now: of an attempt that is settled by now there is nothing to tell, and as long as a
    /// shim answers for one, nobody is asked about it.
    fn is_due(&mut self, reader: &Reader, notice: &Notice) -> Result<Due, Error> {
        let Some(attempt) = notice
            .attempt
            .as_ref()
            .filter(|_| notice.kind == Kind::Unknown)
        else {
            return Ok(Due::Now);
        };
        if self.now.is_none() {
            let (now, _) = reader.state(&self.state.subject)?;
            let seen = reader.left(&now);
            self.now = Some((now, seen));
        }
        let uncertain = |state: &RunState| {
            let attempt = state.attempts.get(attempt);
            attempt.is_some_and(|attempt| is_uncertain(state, attempt))
        };
        Ok(match &self.now {
            Some((_, seen)) if uncertain(seen) => Due::Now,
            Some((now, _)) if uncertain(now) => Due::Later,
            _ => Due::Never,
        })
    }
}

/// How far a consumer may acknowledge: never past what could not be told yet.
fn bounded(pending: &Pending, wanted: u64) -> u64 {
    pending
        .undecided
        .map_or(wanted, |undecided| wanted.min(undecided - 1))
}

/// What a consumer asks for.
pub(super) struct Wanted {
    pub consumer: String,
    pub acknowledge: Option<u64>,
    pub in_hand: Vec<u64>,
    pub wait: bool,
}

impl Office {
    /// Acknowledges, and answers what is still to be told; waits for something where that is wanted.
    pub(super) async fn outbox(
        &self,
        wanted: Wanted,
        view: View,
        peer: &Peer,
        items: &Items,
    ) -> Result<Answer, Error> {
        let name = consumer(&wanted.consumer)?;
        if name.as_str() == NOTIFY && !matches!(peer, Peer::Own) {
            let message = "expected a consumer of your own, found notify, which is --notify's";
            return Err(Error::new(Code::Usage, message));
        }
        let in_hand: Arc<BTreeSet<u64>> = Arc::new(wanted.in_hand.into_iter().collect());
        let upto = wanted.acknowledge;
        // An agent that acknowledges keeps a person from being told.
        if upto.is_some() {
            self.require_person(peer).await?;
        }
        loop {
            let (reader, name, held) = (self.reader(), name.clone(), Arc::clone(&in_hand));
            let (found, cursor) = blocking(move || {
                let found = taken(&reader, &name, upto, &held)?;
                Ok((found, reader.journal.cursor(&name)))
            })
            .await?;
            if !found.notices.is_empty() || !wanted.wait {
                return Ok(answer(&found, cursor, view));
            }
            self.something_new(&found, items).await?;
        }
    }

    /// Waits until there is an event that was not looked at, or a shim may have been lost.
    async fn something_new(&self, found: &Pending, items: &Items) -> Result<(), Error> {
        let begun = tokio::time::Instant::now();
        loop {
            tokio::select! {
                () = tokio::time::sleep(TICK) => {}
                () = items.closed() => return Err(super::gone()),
            }
            if self.is_closing() {
                return Err(super::closing());
            }
            let moved = self.session.host.journal().view().sequence() > found.reached;
            if moved || found.undecided.is_some() && begun.elapsed() > SHIM_TICK {
                return Ok(());
            }
        }
    }
}

/// Acknowledges up to a sequence, and finds what is still to be told.
///
/// # Errors
///
/// `USAGE` for a sequence that the log does not have; a store code.
pub fn taken(
    reader: &Reader,
    consumer: &ConsumerId,
    acknowledge: Option<u64>,
    in_hand: &BTreeSet<u64>,
) -> Result<Pending, Error> {
    if let Some(upto) = acknowledge {
        let mut in_hand = in_hand.clone();
        in_hand.insert(upto);
        let found = pending(reader, consumer, &in_hand)?;
        // One that could not be told before may be due by now, though later ones were told.
        let untold = found.notices.first().map(|notice| notice.sequence - 1);
        let upto = untold.map_or(upto, |untold| upto.min(untold));
        acknowledge_in(reader, consumer, bounded(&found, upto))?;
    }
    let found = pending(reader, consumer, in_hand)?;
    let quiet = found.notices.is_empty() && found.undecided.is_none();
    let cursor = reader.journal.cursor(consumer);
    if quiet && reader.can_acknowledge() && found.reached > cursor + OUTBOX_QUIET_EVENTS {
        acknowledge_in(reader, consumer, found.reached)?;
    }
    Ok(found)
}

/// The answer to whoever takes notices.
#[must_use]
pub fn answer(found: &Pending, cursor: u64, view: View) -> Answer {
    let values: Vec<_> = found.notices.iter().map(Notice::to_value).collect();
    let value = json::object(
        "outbox",
        object! {
            "notices": values,
            "acknowledged": cursor.to_string(),
            "reached": bounded(found, found.reached).to_string(),
        },
    );
    Answer::done(value, view, |_| String::new())
}

/// What a consumer that is told for the first time need not be told: what was over before.
///
/// # Errors
///
/// A store code where a run cannot be read.
pub fn over(reader: &Reader, consumer: &ConsumerId) -> Result<BTreeSet<u64>, Error> {
    let mut over = BTreeSet::new();
    loop {
        let found = pending(reader, consumer, &over)?;
        let before = over.len();
        for notice in &found.notices {
            let (state, _) = reader.state(&reader.find(Some(&notice.run))?)?;
            let job = reader.job(&state)?;
            let standing = Standing::of(&reader.left(&state), &job, now_ms());
            let current = match notice.kind {
                Kind::ApprovalNeeded => standing == Standing::NeedsApproval,
                Kind::AcceptanceNeeded => standing == Standing::NeedsAcceptance,
                // Beside a held branch a run is under way.
                Kind::Hold => {
                    let open = |hold: &Hold| hold.state == HoldState::Open;
                    let beside = standing == Standing::Going && state.holds.values().any(open);
                    standing == Standing::Held || beside
                }
                Kind::Unknown => standing == Standing::Uncertain,
                Kind::Ended => false,
            };
            if !current {
                over.insert(notice.sequence);
            }
        }
        if over.len() == before {
            return Ok(over);
        }
    }
}

/// Acknowledges up to a sequence; what was acknowledged before stays.
fn acknowledge_in(reader: &Reader, consumer: &ConsumerId, upto: u64) -> Result<(), Error> {
    let journal = &reader.journal;
    if upto > journal.view().sequence() {
        let message = format!(
            "expected a sequence of the store, found {upto}; its last one is {}",
            journal.view().sequence()
        );
        return Err(Error::new(Code::Usage, message));
    }
    if upto <= journal.cursor(consumer) {
        return Ok(());
    }
    let failed = |error: StoreError| Error::new(error.code(), error.to_string());
    journal.acknowledge(consumer, upto).map_err(failed)
}
