//! The conditions of an append, in the order of the error stages. This is the law; every earlier check is a courtesy.
//!
//! Invariant: the first condition that fails is the answer, and nothing of the append is applied. The only workflow
//! knowledge here is the table that says what launches work (T-51). Called by the ledger for every append.

use aiws::decimal::U64;
use praxis_journal_format::Sealed;
use praxis_journal_format::chain::belongs;
use praxis_model::account::Posting;
use praxis_model::event::{Event, Identity};
use praxis_model::stream::Subject;
use praxis_model::table::{Launch, launches};
use praxis_plant::{self as plant, Plant};

use crate::append::{Append, AppendError, Conditions, Refusal, RequestKey};
use crate::error::StoreError;
use crate::limits::{self, APPEND_EVENTS};
use crate::rows::{IdentityKey, IdentityRow, RequestRow};
use crate::view::{Dirty, View, identities, links, post};

/// Rows that are in the index only.
pub(crate) trait Lookup {
    fn request(&self, key: &RequestKey) -> Result<Option<RequestRow>, StoreError>;
    fn identity(&self, key: &IdentityKey) -> Result<Option<IdentityRow>, StoreError>;
}

/// What a checked append comes to.
pub(crate) enum Checked {
    /// All conditions hold; the view with the append folded in, and what each of its frames says beside the event.
    Accepted { next: Box<View>, hints: Vec<Hint> },
    /// The request was committed at this sequence.
    Replayed { sequence: u64 },
}

/// What a frame says beside its event.
pub(crate) struct Hint {
    /// Sequence of the stream's previous event.
    pub previous: u64,
    /// The owner's marker.
    pub boot: u64,
}

/// The writer's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// UTC milliseconds, never below the log's last time.
    pub ms: u64,
    /// How often the writer's clock stepped back.
    pub clock_steps: u64,
}

/// Checks an append against the view with the batch so far, at the writer's time. `start` is the view before the batch,
/// which decides nothing: planted defects alone look at it.
pub(crate) fn check(
    start: &View,
    view: &View,
    append: &Append,
    now: Now,
    lookup: &dyn Lookup,
    dirty: &mut Dirty,
) -> Result<Checked, AppendError> {
    let (conditions, now_ms) = (&append.conditions, now.ms);
    let first = well_formed(append)?;
    if let Some(sequence) = replayed(view, &first.event, lookup)? {
        return Ok(Checked::Replayed { sequence });
    }
    for (part, sealed) in (1..).zip(&append.sealed) {
        conditioned(&sealed.event, conditions).map_err(|error| error.at_part(part))?;
    }
    // Each part is checked against the parts before it, as if they had been committed.
    let mut next = Box::new(view.clone());
    let mut take = |sealed: &Sealed| {
        head(&next, &sealed.event)?;
        fence(old(Plant::FenceAtBatchStart, start, &next), conditions)?;
        clock(conditions, now.clock_steps)?;
        decided_under(&sealed.event, conditions)?;
        same(&next, conditions)?;
        gates(&next, append, &sealed.event)?;
        identity(&next, &sealed.event, lookup)?;
        before(conditions, now_ms)?;
        timely(&sealed.event, now_ms)?;
        bounded(old(Plant::BoundAtBatchStart, start, &next), &sealed.event)?;
        let previous = next
            .head(&sealed.event.stream)
            .map_or(0, |row| row.sequence);
        let boot = marker(&next, &sealed.event);
        next.apply(sealed, boot, dirty).map_err(illegal)?;
        Ok(Hint { previous, boot })
    };
    let mut hints = Vec::with_capacity(append.sealed.len());
    for (part, sealed) in (1..).zip(&append.sealed) {
        let taken: Result<Hint, AppendError> = take(sealed);
        hints.push(taken.map_err(|error| error.at_part(part))?);
    }
    Ok(Checked::Accepted { next, hints })
}

/// The projections before the batch, for a plant that looks at those.
fn old<'v>(planted: Plant, start: &'v View, view: &'v View) -> &'v View {
    if plant::is(planted) { start } else { view }
}

/// The marker of a frame: this boot's number on a run's first append of the boot (T-16).
fn marker(view: &View, event: &Event) -> u64 {
    let Some(_) = &event.subject.run_id else {
        return 0;
    };
    let marked = view
        .owner(&event.subject.stream())
        .is_some_and(|row| row.boot == view.boot);
    if marked { 0 } else { view.boot }
}

fn well_formed(append: &Append) -> Result<&Sealed, AppendError> {
    let first = append
        .sealed
        .first()
        .ok_or_else(|| illegal("it has no event".to_owned()))?;
    if append.sealed.len() > APPEND_EVENTS {
        return Err(illegal(format!("it has more than {APPEND_EVENTS} events")));
    }
    let of = append.sealed.len() as u64;
    for (part, sealed) in (1..).zip(&append.sealed) {
        let (k, event) = (part as u64, &sealed.event);
        if event.part.k != U64(k) || event.part.of != U64(of) {
            return Err(illegal(format!(
                "expected part {k} of {of}, found {} of {}",
                event.part.k, event.part.of
            )));
        }
        if RequestKey::of(event) != RequestKey::of(&first.event)
            || event.request_digest != first.event.request_digest
        {
            return Err(illegal("its parts are of different requests".to_owned()));
        }
        if !belongs(&event.subject, &event.stream) {
            let what = "its stream belongs neither to its subject nor to its mission";
            return Err(illegal(what.to_owned()).at_part(part));
        }
    }
    let named = &append.conditions.request;
    if named.is_some() && *named != RequestKey::of(&first.event) {
        return Err(illegal(
            "its request condition names another request than its events".to_owned(),
        ));
    }
    Ok(first)
}

/// Stage 3: the same request again gets its first result, another body under its id is a conflict.
fn replayed(view: &View, event: &Event, lookup: &dyn Lookup) -> Result<Option<u64>, AppendError> {
    let Some(key) = RequestKey::of(event) else {
        return Ok(None);
    };
    let row = match view.requests.get(&key) {
        Some(row) => Some(*row),
        None => lookup.request(&key)?,
    };
    match row {
        None => Ok(None),
        Some(row) if row.digest == event.request_digest || plant::is(Plant::DedupeIgnoresBody) => {
            Ok(Some(
                row.sequence + u64::from(plant::is(Plant::ReplayOfAnother)),
            ))
        }
        Some(row) => Err(refuse(Refusal::IdentityConflict {
            key,
            sequence: row.sequence,
        })),
    }
}

/// A launching event needs head, fence and gates, and they must speak of the event's own run and mission.
fn conditioned(event: &Event, conditions: &Conditions) -> Result<(), AppendError> {
    let missing = |missing| {
        Err(refuse(Refusal::Unconditioned {
            kind: event.kind.name(),
            missing,
        }))
    };
    let launch = launches(event.kind);
    if launch == Launch::Nothing {
        return Ok(());
    }
    if !conditions.head {
        return missing("head");
    }
    let own = event.subject.stream();
    if launch == Launch::InRun
        && conditions
            .fence
            .as_ref()
            .is_none_or(|(stream, _)| *stream != own)
    {
        return missing("fence");
    }
    let mission = Subject::mission(event.subject.mission_id.clone());
    let listed = |scope: &Subject| {
        conditions
            .gates
            .as_ref()
            .is_some_and(|scopes| scopes.contains(scope))
    };
    if !listed(&mission) || !listed(&event.subject) {
        return missing("gates");
    }
    Ok(())
}

/// Stage 4: the event continues its stream.
fn head(view: &View, event: &Event) -> Result<(), AppendError> {
    let found = view.head_before(event);
    if links(found, event) || plant::is(Plant::HeadUnchecked) {
        return Ok(());
    }
    Err(refuse(Refusal::Head {
        stream: event.stream.clone(),
        found,
    }))
}

/// Stage 5: the caller still owns the run.
fn fence(view: &View, conditions: &Conditions) -> Result<(), AppendError> {
    let Some((stream, expected)) = &conditions.fence else {
        return Ok(());
    };
    let found = view.owner(stream).map(|row| row.epoch);
    let older = plant::is(Plant::FenceLess) && found >= Some(*expected);
    if found == Some(*expected) || older || plant::is(Plant::FenceUnchecked) {
        return Ok(());
    }
    Err(refuse(Refusal::Fence {
        stream: stream.clone(),
        expected: *expected,
        found,
    }))
}

/// Stage 5: a lease was judged by the clock as it still is.
fn clock(conditions: &Conditions, found: u64) -> Result<(), AppendError> {
    match conditions.clock_steps {
        Some(expected) if expected != found => Err(refuse(Refusal::Clock { expected, found })),
        _ => Ok(()),
    }
}

/// A launching event says itself under which epoch it was decided: the one that its fence holds, or nobody could tell
/// from the log that its owner was the owner.
fn decided_under(event: &Event, conditions: &Conditions) -> Result<(), AppendError> {
    let fenced = conditions.fence.as_ref().map(|(_, epoch)| U64(*epoch));
    if launches(event.kind) != Launch::InRun || event.owner_epoch == fenced {
        return Ok(());
    }
    Err(illegal(format!(
        "it was decided under epoch {:?} and its fence holds {fenced:?}",
        event.owner_epoch
    )))
}

/// Stage 6: what was read of other streams is unchanged.
fn same(view: &View, conditions: &Conditions) -> Result<(), AppendError> {
    for (register, expected) in &conditions.same {
        let found = view.register(register).map_or(0, |row| row.revision);
        if found != *expected {
            return Err(refuse(Refusal::Same {
                register: register.clone(),
                expected: *expected,
                found,
            }));
        }
    }
    Ok(())
}

/// Stage 7: nothing holds the run, its mission or an ancestor; a held branch, only what is launched in it. Whoever asks
/// for gates without launching anything asks for all of them.
fn gates(view: &View, append: &Append, event: &Event) -> Result<(), AppendError> {
    let launching = |event: &Event| launches(event.kind) != Launch::Nothing;
    let concerned =
        launching(event) || !append.sealed.iter().any(|sealed| launching(&sealed.event));
    if !concerned || plant::is(Plant::GateUnchecked) {
        return Ok(());
    }
    let place = event.outcome.launched_in().filter(|_| launching(event));
    for scope in append.conditions.gates.iter().flatten() {
        let mut gates = view.gates(scope).iter();
        if let Some(gate) = gates.find(|gate| gate.stops(place)) {
            return Err(refuse(Refusal::Gate {
                scope: scope.clone(),
                gate: gate.clone(),
            }));
        }
    }
    Ok(())
}

/// Stage 8: identities of the mission are taken once.
fn identity(view: &View, event: &Event, lookup: &dyn Lookup) -> Result<(), AppendError> {
    let mut fresh: Vec<&Identity> = event.outcome.identities.iter().collect();
    fresh.sort();
    if fresh
        .windows(2)
        .any(|pair| (pair[0].kind, &pair[0].key) == (pair[1].kind, &pair[1].key))
    {
        return Err(illegal("it takes one identity twice".to_owned()));
    }
    for (key, wanted) in identities(event, 0) {
        let row = match view.identities.get(&key) {
            Some(row) => Some(row.clone()),
            None => lookup.identity(&key)?,
        };
        if let Some(row) = row {
            let identity = Identity {
                kind: key.kind,
                key: key.key,
                digest: wanted.digest,
            };
            return Err(refuse(Refusal::Identity {
                identity,
                sequence: row.sequence,
                digest: row.digest,
            }));
        }
    }
    Ok(())
}

/// Stage 8: leases, approvals and deadlines at the writer's own clock.
fn before(conditions: &Conditions, now_ms: u64) -> Result<(), AppendError> {
    match conditions
        .before_ms
        .iter()
        .copied()
        .find(|deadline_ms| now_ms >= *deadline_ms)
    {
        Some(deadline_ms) => Err(refuse(Refusal::Before {
            deadline_ms,
            now_ms,
        })),
        None => Ok(()),
    }
}

/// An event's time moves the store's for good, so one from far beyond the writer's own is refused.
fn timely(event: &Event, now_ms: u64) -> Result<(), AppendError> {
    let latest_ms = now_ms.saturating_add(limits::AHEAD_MS);
    if event.at_ms.0 <= latest_ms {
        return Ok(());
    }
    Err(illegal(format!(
        "its time is {}, the writer's clock says {now_ms}",
        event.at_ms
    )))
}

/// Stage 9: every reservation fits, posting after posting.
fn bounded(view: &View, event: &Event) -> Result<(), AppendError> {
    let mut accounts = view.accounts.clone();
    for posting in &event.outcome.accounts {
        let row = accounts.get(posting.account());
        if let Posting::Reserve { account, amount } = posting {
            let total =
                row.and_then(|row| row.spent.checked_add(row.reserved)?.checked_add(*amount));
            let past = total.zip(row).is_none_or(|(total, row)| total > row.bound);
            if past && !plant::is(Plant::BoundUnchecked) {
                let (account, row) = (account.clone(), row.cloned());
                return Err(refuse(Refusal::Bounded {
                    account,
                    row,
                    amount: *amount,
                }));
            }
        }
        let row = post(row, posting).map_err(illegal)?;
        accounts.insert_mut(posting.account().clone(), row);
    }
    Ok(())
}

fn refuse(refusal: Refusal) -> AppendError {
    AppendError::Refused {
        refusal: Box::new(refusal),
        part: None,
    }
}

pub(crate) fn illegal(what: String) -> AppendError {
    refuse(Refusal::Illegal { what })
}
