//! Driving a ledger into a crash, and judging what is found afterwards.
//!
//! Invariant: the judge knows only what was acknowledged and what was in flight, and reads the store through its
//! public doors. Called by crash scenarios.

use std::fmt::Debug;
use std::sync::Arc;

use aiws::digest::Digest;
use aiws::id::StoreId;
use praxis_journal::{Append, AppendError, Appended, Ledger, Options, StoreError};

use crate::disk::CrashDisk;
use crate::script::ScriptError;

/// The hot segment of a store whose log has not rolled over.
pub const HOT_LOG: &str = "log-000001.redb";

/// The index.
pub const INDEX: &str = "index.redb";

/// What the world was told before the power went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Whether the creation of the store was answered.
    pub created: bool,
    /// The events that were acknowledged, in log order.
    pub acknowledged: Vec<Digest>,
    /// The events of the batch that had no answer, or were answered with an error.
    pub in_flight: Vec<Digest>,
    /// Whether the batch in flight was answered with 'nothing was stored'.
    pub denied: bool,
    /// How many batches were acknowledged.
    pub batches: usize,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(pub String);

impl Violation {
    fn of(what: impl Debug) -> Self {
        Self(format!("{what:?}"))
    }
}

impl From<ScriptError> for Violation {
    fn from(error: ScriptError) -> Self {
        Self(error.to_string())
    }
}

impl From<StoreError> for Violation {
    fn from(error: StoreError) -> Self {
        Self(format!("{}: {error}", error.code()))
    }
}

/// The id of simulated stores.
///
/// # Errors
/// Never: the id is one.
pub fn store_id() -> Result<StoreId, Violation> {
    StoreId::new("simulated").map_err(Violation::of)
}

/// Creates a store and commits batch after batch, until one has no good answer; gives the ledger as it is then.
/// `between` runs after each acknowledged batch, for what a scenario does beside it (writing the index, for example).
pub fn drive(
    disk: &CrashDisk,
    options: &Options,
    batches: &[Vec<Append>],
    between: impl FnMut(usize, &mut Ledger),
) -> (Told, Option<Ledger>) {
    drive_on(disk, options, batches, 1, between)
}

/// As [`drive`], but a batch without a good answer is handed in again, up to `tries` times in all: the store had a
/// storage error and goes on.
pub fn drive_on(
    disk: &CrashDisk,
    options: &Options,
    batches: &[Vec<Append>],
    tries: usize,
    mut between: impl FnMut(usize, &mut Ledger),
) -> (Told, Option<Ledger>) {
    let mut told = Told::default();
    let made = store_id().map(|id| Ledger::create(Arc::new(disk.clone()), id, options));
    let Ok(Ok(mut ledger)) = made else {
        return (told, None);
    };
    told.created = true;
    for (number, batch) in batches.iter().enumerate() {
        told.in_flight = hashes(batch);
        // Once an answer was in doubt, a later refusal says nothing about what that try left.
        let mut doubt = false;
        let answered = (0..tries).any(|_| {
            let answers = ledger.commit(batch, 0);
            let error = answers.iter().find_map(|answer| answer.as_ref().err());
            doubt |= matches!(error, Some(AppendError::Store(error)) if error.in_doubt());
            told.denied = error.is_some() && !doubt;
            error.is_none()
        });
        if !answered {
            break;
        }
        told.acknowledged.append(&mut told.in_flight);
        told.batches += 1;
        between(number, &mut ledger);
    }
    (told, Some(ledger))
}

/// The events of a batch, in log order.
pub fn hashes(batch: &[Append]) -> Vec<Digest> {
    batch
        .iter()
        .flat_map(|append| append.sealed.iter().map(|sealed| sealed.hash))
        .collect()
}

/// Opens what a crash left and checks it: the acknowledged prefix is there, the batch in flight is there whole or not
/// at all (and not at all if it was answered so), nothing else is, the chain and every projection verify.
///
/// # Errors
/// The first promise that is broken.
pub fn judge(disk: &CrashDisk, options: &Options, told: &Told) -> Result<Ledger, Violation> {
    let ledger = match Ledger::open(Arc::new(disk.clone()), options) {
        Ok(ledger) => ledger,
        // A store whose creation was never answered may be none yet; then it can be created.
        Err(StoreError::NotAStore { .. }) if !told.created => {
            Ledger::create(Arc::new(disk.clone()), store_id()?, options)?
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(why) = ledger.read_only() {
        return Err(Violation(format!("opened read-only: {why}")));
    }
    let found = ledger.view().sequence();
    let expected = expected(told, found)?;
    for (sequence, hash) in (1..).zip(&expected) {
        let event = ledger
            .read(sequence)?
            .ok_or_else(|| Violation(format!("sequence {sequence} is missing")))?;
        if event.hash != *hash {
            return Err(Violation(format!(
                "sequence {sequence} holds another event"
            )));
        }
    }
    sound(&ledger)?;
    Ok(ledger)
}

/// The events that must be there, given how many are.
fn expected(told: &Told, found: u64) -> Result<Vec<Digest>, Violation> {
    let mut expected = told.acknowledged.clone();
    let acknowledged = expected.len() as u64;
    if found < acknowledged {
        return Err(Violation(format!(
            "acknowledged events are lost: {found} of {acknowledged} are there"
        )));
    }
    if found == acknowledged {
        return Ok(expected);
    }
    if told.denied {
        return Err(Violation(
            "an append that was answered as not stored is there".to_owned(),
        ));
    }
    expected.extend(&told.in_flight);
    match found == expected.len() as u64 {
        true => Ok(expected),
        false => Err(Violation(format!(
            "an append is there in part, or more than was handed in: {found} events after {acknowledged} acknowledged"
        ))),
    }
}

/// Verifies a ledger.
///
/// # Errors
/// What the verification found.
pub fn sound(ledger: &Ledger) -> Result<(), Violation> {
    let report = ledger.verify(&mut |_, _| ())?;
    match report.findings.first() {
        None => Ok(()),
        Some(finding) => Err(Violation::of(finding)),
    }
}

/// Goes on after a judged crash: the batch in flight and those after it are handed in again, and each append is
/// answered as committed now or as replayed; then the index is written and everything is verified once more.
///
/// # Errors
/// The first promise that is broken.
pub fn go_on(
    mut ledger: Ledger,
    told: &Told,
    batches: &[Vec<Append>],
) -> Result<Ledger, Violation> {
    for batch in &batches[told.batches.min(batches.len())..] {
        for answer in ledger.commit(batch, 0) {
            match answer {
                Ok(Appended::Committed { .. } | Appended::Replayed { .. }) => {}
                Err(error) => return Err(Violation(format!("after recovery: {error}"))),
            }
        }
    }
    ledger.flush_index()?;
    sound(&ledger)?;
    let all: usize = batches.iter().map(|batch| hashes(batch).len()).sum();
    match ledger.view().sequence() == all as u64 {
        true => Ok(ledger),
        false => Err(Violation(format!(
            "expected {all} events in the end, found {}",
            ledger.view().sequence()
        ))),
    }
}
