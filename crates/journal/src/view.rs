//! The projections in memory: what conditions speak of, folded from the log event by event.
//!
//! Invariant: applying an event is total over legal events and knows no workflow word; the same log gives the same
//! view. Held by the ledger, published by the journal after each commit, rebuilt by verify.

use std::collections::BTreeSet;

use aiws::decimal::{Dec, U64};
use aiws::digest::Digest;
use aiws::id::{ConsumerId, StreamId};
use praxis_journal_format::Sealed;
use praxis_journal_format::tree::CompactRange;
use praxis_model::account::{AccountKey, AccountRow, Posting};
use praxis_model::event::{DueKind, Event, Gate, Head};
use praxis_model::register::RegisterKey;
use praxis_model::stream::Subject;
use praxis_plant::{self as plant, Plant};
use rpds::RedBlackTreeMapSync as Map;

use crate::append::RequestKey;
use crate::error::StoreError;
use crate::rows::{
    DueKey, HeadRow, IdentityKey, IdentityRow, LogCursor, OwnerRow, RegisterRow, RequestRow,
};

/// All projections after one event of the log. Cloning is cheap: the maps share their nodes.
#[derive(Clone, Debug)]
pub struct View {
    /// The last event that is in it.
    pub cursor: LogCursor,
    /// The highest time of any event, in UTC milliseconds; the writer's clock never falls below it.
    pub last_ms: u64,
    /// The number of this opening of the store; owners' markers quote it.
    pub boot: u64,
    /// Why the store cannot be written, if it cannot.
    pub read_only: Option<StoreError>,
    /// The tree over the events up to the cursor.
    pub(crate) tree: CompactRange,
    pub(crate) heads: Map<StreamId, HeadRow>,
    pub(crate) owners: Map<StreamId, OwnerRow>,
    pub(crate) registers: Map<RegisterKey, RegisterRow>,
    pub(crate) gates: Map<Subject, Vec<Gate>>,
    pub(crate) accounts: Map<AccountKey, AccountRow>,
    pub(crate) due: Map<DueKey, ()>,
    pub(crate) due_at: Map<(StreamId, DueKind), u64>,
    pub(crate) cursors: Map<ConsumerId, u64>,
    // The rows that are not in the index yet; the rest is looked up there.
    pub(crate) requests: Map<RequestKey, RequestRow>,
    pub(crate) identities: Map<IdentityKey, IdentityRow>,
}

/// The keys of rows that changed since the index was last written.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    pub heads: BTreeSet<StreamId>,
    pub owners: BTreeSet<StreamId>,
    pub registers: BTreeSet<RegisterKey>,
    pub gates: BTreeSet<Subject>,
    pub accounts: BTreeSet<AccountKey>,
    pub due: BTreeSet<DueKey>,
    pub cursors: BTreeSet<ConsumerId>,
}

impl Default for View {
    fn default() -> Self {
        Self {
            cursor: LogCursor::START,
            last_ms: 0,
            boot: 0,
            read_only: None,
            tree: CompactRange::default(),
            heads: Map::new_sync(),
            owners: Map::new_sync(),
            registers: Map::new_sync(),
            gates: Map::new_sync(),
            accounts: Map::new_sync(),
            due: Map::new_sync(),
            due_at: Map::new_sync(),
            cursors: Map::new_sync(),
            requests: Map::new_sync(),
            identities: Map::new_sync(),
        }
    }
}

impl View {
    /// Why the view ends before the log does, or cannot vouch for it; none for a view that is whole, also where the
    /// store is merely open for reading. What is read from such a view is cut, so only verification goes on with it.
    pub fn damage(&self) -> Option<&StoreError> {
        self.read_only
            .as_ref()
            .filter(|why| !matches!(why, StoreError::ReadOnly { .. }))
    }

    /// Where a stream stands; none if it is not open. A stream that is open without events has revision 0.
    pub fn head(&self, stream: &StreamId) -> Option<&HeadRow> {
        self.heads.get(stream)
    }

    /// All streams with where they stand, in the order of their ids.
    pub fn heads(&self) -> impl Iterator<Item = (&StreamId, &HeadRow)> {
        self.heads.iter()
    }

    /// Who owns a run.
    pub fn owner(&self, stream: &StreamId) -> Option<&OwnerRow> {
        self.owners.get(stream)
    }

    /// All runs with their owners.
    pub fn owners(&self) -> impl Iterator<Item = (&StreamId, &OwnerRow)> {
        self.owners.iter()
    }

    /// A register's value and revision; none if it was never written (its revision is then 0).
    pub fn register(&self, key: &RegisterKey) -> Option<&RegisterRow> {
        self.registers.get(key)
    }

    /// All registers, in the order of mission, kind and key.
    pub fn registers(&self) -> impl Iterator<Item = (&RegisterKey, &RegisterRow)> {
        self.registers.iter()
    }

    /// The closed gates of a scope.
    pub fn gates(&self, scope: &Subject) -> &[Gate] {
        self.gates.get(scope).map_or(&[], Vec::as_slice)
    }

    /// An account's row; none if it was never opened.
    pub fn account(&self, key: &AccountKey) -> Option<&AccountRow> {
        self.accounts.get(key)
    }

    /// All due times, earliest first: the timer and the start-up work list.
    pub fn due(&self) -> impl Iterator<Item = &DueKey> {
        self.due.keys()
    }

    /// The sequence that a consumer of the outbox has acknowledged; 0 for none.
    pub fn acknowledged(&self, consumer: &ConsumerId) -> u64 {
        self.cursors.get(consumer).copied().unwrap_or(0)
    }

    /// All cursors of the outbox.
    pub fn cursors(&self) -> impl Iterator<Item = (&ConsumerId, &u64)> {
        self.cursors.iter()
    }

    /// The sequence of the log's last event; 0 for an empty log.
    pub fn sequence(&self) -> u64 {
        self.cursor.sequence
    }

    /// Folds the log's next event. `boot` is the marker in its frame.
    ///
    /// # Errors
    /// What cannot be folded, in a sentence; the view is then partly changed and must be thrown away.
    pub(crate) fn apply(
        &mut self,
        sealed: &Sealed,
        boot: u64,
        dirty: &mut Dirty,
    ) -> Result<(), String> {
        let event = &sealed.event;
        let sequence = self.cursor.sequence + 1;
        self.link(sealed, sequence, dirty)?;
        self.own(event, boot, dirty);
        for write in &event.outcome.registers {
            let revision = self
                .registers
                .get(&write.register)
                .map_or(0, |row| row.revision)
                + 1;
            self.registers.insert_mut(
                write.register.clone(),
                RegisterRow {
                    revision,
                    value: write.value.clone(),
                },
            );
            dirty.registers.insert(write.register.clone());
        }
        for posting in &event.outcome.accounts {
            let row = post(self.accounts.get(posting.account()), posting)?;
            self.accounts.insert_mut(posting.account().clone(), row);
            dirty.accounts.insert(posting.account().clone());
        }
        for change in &event.outcome.gates {
            self.gate(&change.scope, &change.gate, change.closed);
            dirty.gates.insert(change.scope.clone());
        }
        for change in &event.outcome.due {
            self.set_due(
                &change.stream,
                change.kind,
                change.at_ms.map(|at_ms| at_ms.0),
                dirty,
            );
        }
        self.take_keys(sealed, sequence);
        self.last_ms = self.last_ms.max(event.at_ms.0);
        self.tree.push(sealed.hash.as_bytes());
        self.cursor = LogCursor {
            sequence,
            hash: sealed.hash,
        };
        Ok(())
    }

    fn link(&mut self, sealed: &Sealed, sequence: u64, dirty: &mut Dirty) -> Result<(), String> {
        let event = &sealed.event;
        if !links(self.head_before(event), event) && !plant::is(Plant::HeadUnchecked) {
            return Err("it does not link to the head of its stream".to_owned());
        }
        for opened in &event.outcome.opens {
            if *opened == event.stream || self.heads.contains_key(opened) {
                return Err(format!("it opens stream {opened}, which is already there"));
            }
            let head = Head {
                revision: U64(0),
                hash: sealed.hash,
            };
            self.heads
                .insert_mut(opened.clone(), HeadRow { head, sequence: 0 });
            dirty.heads.insert(opened.clone());
        }
        self.heads.insert_mut(
            event.stream.clone(),
            HeadRow {
                head: sealed.head(),
                sequence,
            },
        );
        dirty.heads.insert(event.stream.clone());
        Ok(())
    }

    /// Where the event's stream stands before it: a mission's stream is open from the start, a run's is opened.
    pub(crate) fn head_before(&self, event: &Event) -> Option<Head> {
        let own = Subject::mission(event.subject.mission_id.clone()).stream();
        let fresh = (event.stream == own).then_some(Head {
            revision: U64(0),
            hash: Digest::ZERO,
        });
        self.heads.get(&event.stream).map(|row| row.head).or(fresh)
    }

    fn own(&mut self, event: &Event, boot: u64, dirty: &mut Dirty) {
        if let Some(owner) = &event.outcome.owner {
            let marker = self.owners.get(&owner.stream).map_or(0, |row| row.boot);
            self.owners.insert_mut(
                owner.stream.clone(),
                OwnerRow {
                    epoch: owner.epoch.0,
                    boot: marker,
                },
            );
            dirty.owners.insert(owner.stream.clone());
        }
        if boot != 0 {
            let stream = event.subject.stream();
            let epoch = self.owners.get(&stream).map_or(0, |row| row.epoch);
            self.owners
                .insert_mut(stream.clone(), OwnerRow { epoch, boot });
            dirty.owners.insert(stream);
        }
    }

    /// Lets a run's marker go; true if there was one.
    pub(crate) fn release(&mut self, stream: &StreamId, dirty: &mut Dirty) -> bool {
        let Some(row) = self.owners.get(stream).copied().filter(|row| row.boot != 0) else {
            return false;
        };
        self.owners.insert_mut(
            stream.clone(),
            OwnerRow {
                epoch: row.epoch,
                boot: 0,
            },
        );
        dirty.owners.insert(stream.clone());
        true
    }

    fn gate(&mut self, scope: &Subject, gate: &Gate, closed: bool) {
        let mut gates = self.gates.get(scope).cloned().unwrap_or_default();
        match (gates.binary_search(gate), closed) {
            (Err(at), true) => gates.insert(at, gate.clone()),
            (Ok(at), false) => {
                gates.remove(at);
            }
            _ => {}
        }
        if gates.is_empty() {
            self.gates.remove_mut(scope);
        } else {
            self.gates.insert_mut(scope.clone(), gates);
        }
    }

    fn set_due(&mut self, stream: &StreamId, kind: DueKind, at_ms: Option<u64>, dirty: &mut Dirty) {
        let place = (stream.clone(), kind);
        if let Some(old) = self.due_at.get(&place).copied() {
            let key = DueKey {
                at_ms: old,
                stream: stream.clone(),
                kind,
            };
            self.due.remove_mut(&key);
            self.due_at.remove_mut(&place);
            dirty.due.insert(key);
        }
        if let Some(at_ms) = at_ms {
            let key = DueKey {
                at_ms,
                stream: stream.clone(),
                kind,
            };
            self.due.insert_mut(key.clone(), ());
            self.due_at.insert_mut(place, at_ms);
            dirty.due.insert(key);
        }
    }

    /// The planted defect: what a refused append posts is kept.
    pub(crate) fn leave(&mut self, append: &crate::append::Append) {
        let postings = append
            .sealed
            .iter()
            .flat_map(|it| &it.event.outcome.accounts);
        for posting in postings {
            if let Ok(row) = post(self.accounts.get(posting.account()), posting) {
                self.accounts.insert_mut(posting.account().clone(), row);
            }
        }
    }

    fn take_keys(&mut self, sealed: &Sealed, sequence: u64) {
        let event = &sealed.event;
        if let Some(key) = RequestKey::of(event).filter(|_| event.part.k.0 == 1) {
            self.requests.insert_mut(
                key,
                RequestRow {
                    digest: event.request_digest,
                    sequence,
                },
            );
        }
        for (key, row) in identities(event, sequence) {
            self.identities.insert_mut(key, row);
        }
    }

    /// Drops all request and identity rows.
    pub(crate) fn settle_all_keys(&mut self) {
        self.requests = Map::new_sync();
        self.identities = Map::new_sync();
    }

    /// Drops the request and identity rows up to a sequence, once the index holds them.
    pub(crate) fn settle_keys(&mut self, sequence: u64, flushed: &View) {
        for (key, row) in flushed
            .requests
            .iter()
            .filter(|(_, row)| row.sequence <= sequence)
        {
            if self.requests.get(key) == Some(row) && !plant::is(Plant::DedupeInMemory) {
                self.requests.remove_mut(key);
            }
        }
        for (key, row) in flushed
            .identities
            .iter()
            .filter(|(_, row)| row.sequence <= sequence)
        {
            if self.identities.get(key) == Some(row) {
                self.identities.remove_mut(key);
            }
        }
    }
}

impl Dirty {
    /// Puts back what a failed write of the index had taken.
    pub(crate) fn merge(&mut self, other: Dirty) {
        self.heads.extend(other.heads);
        self.owners.extend(other.owners);
        self.registers.extend(other.registers);
        self.gates.extend(other.gates);
        self.accounts.extend(other.accounts);
        self.due.extend(other.due);
        self.cursors.extend(other.cursors);
    }

    /// Whether nothing changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.heads.is_empty()
            && self.owners.is_empty()
            && self.registers.is_empty()
            && self.gates.is_empty()
            && self.accounts.is_empty()
            && self.due.is_empty()
            && self.cursors.is_empty()
    }
}

/// Whether an event continues its stream at `head`.
pub(crate) fn links(head: Option<Head>, event: &Event) -> bool {
    head.is_some_and(|head| event.revision.0 == head.revision.0 + 1 && event.prev_hash == head.hash)
}

/// The identities that an event takes.
pub(crate) fn identities(
    event: &Event,
    sequence: u64,
) -> impl Iterator<Item = (IdentityKey, IdentityRow)> + '_ {
    event.outcome.identities.iter().map(move |identity| {
        let mission_id = event.subject.mission_id.clone();
        let key = IdentityKey {
            mission_id,
            kind: identity.kind,
            key: identity.key.clone(),
        };
        (
            key,
            IdentityRow {
                digest: identity.digest,
                sequence,
                stream: event.stream.clone(),
            },
        )
    })
}

/// An account's row after a posting. A reservation's bound is the business of the conditions; here it is recorded.
pub fn post(row: Option<&AccountRow>, posting: &Posting) -> Result<AccountRow, String> {
    let Posting::Open { bound, .. } = posting else {
        let row = row.ok_or_else(|| {
            format!(
                "it posts to account {:?}, which was never opened",
                posting.account()
            )
        })?;
        return move_amounts(row.clone(), posting).ok_or_else(|| {
            format!(
                "its posting to account {:?} leaves the range of amounts",
                posting.account()
            )
        });
    };
    match row {
        Some(_) => Err(format!("it opens account {:?} again", posting.account())),
        None => Ok(AccountRow {
            bound: *bound,
            spent: Dec::ZERO,
            reserved: Dec::ZERO,
            overrun: Dec::ZERO,
            revision: U64(1),
        }),
    }
}

fn move_amounts(mut row: AccountRow, posting: &Posting) -> Option<AccountRow> {
    let before = past(&row)?;
    match posting {
        Posting::Open { .. } => {}
        Posting::Reserve { amount, .. } => row.reserved = row.reserved.checked_add(*amount)?,
        Posting::Release { reserved, .. } => row.reserved = less(row.reserved, *reserved)?,
        Posting::Settle {
            reserved, actual, ..
        } => {
            row.reserved = less(row.reserved, *reserved)?;
            row.spent = row.spent.checked_add(*actual)?;
            // Only what this settlement pushed past the bound is its overrun.
            if let Some(more) = past(&row)?.checked_sub(before)
                && !plant::is(Plant::OverrunNotRecorded)
            {
                row.overrun = row.overrun.checked_add(more)?;
            }
        }
    }
    row.revision = U64(row.revision.0.checked_add(1)?);
    Some(row)
}

/// What is left of a reservation; none below zero.
fn less(reserved: Dec, ended: Dec) -> Option<Dec> {
    let left = reserved.checked_sub(ended);
    left.or(plant::is(Plant::AmountSaturates).then_some(Dec::ZERO))
}

/// How far spent and reserved together are past the bound.
fn past(row: &AccountRow) -> Option<Dec> {
    let total = row.spent.checked_add(row.reserved)?;
    Some(total.checked_sub(row.bound).unwrap_or(Dec::ZERO))
}
