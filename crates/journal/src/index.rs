//! The index: every projection in one redb file, written apart from the log.
//!
//! Invariant: it never runs ahead of the durable log, and losing it costs replay time, nothing else. Written by the
//! flusher from a view, read at opening, for requests and identities, and by verify.

use std::sync::Arc;

use aiws::digest::Digest;
use aiws::id::{ConsumerId, StoreId, StreamId};
use praxis_journal_format::FORMAT_VERSION;
use praxis_journal_format::tree::CompactRange;
use praxis_plant::{self as plant, Plant};
use redb::ReadableTableMetadata;
use redb::{
    Builder, Database, ReadOnlyTable, ReadTransaction, ReadableTable, TableError, WriteTransaction,
};
use rpds::RedBlackTreeMapSync as Map;

use crate::append::RequestKey;
use crate::backend::Watched;
use crate::conditions::Lookup;
use crate::database::Db;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::limits::CACHE_BYTES;
use crate::rows::{HeadRow, IdentityKey, IdentityRow, LogCursor, RequestRow};
use crate::segment::{UNFINISHED, existing, finish, guarded, sound};
use crate::tables::{Bytes, Table};
use crate::view::{Dirty, View};

/// The name of the file.
pub(crate) const INDEX: &str = "index.redb";

const DOING: &str = "index.redb";

/// The row of the tree's root, beyond any level.
const WHOLE: u64 = 64;

pub(crate) struct Index {
    db: Db,
    watched: Watched,
}

/// What one write of the index covers.
#[derive(Debug)]
pub(crate) struct Flush {
    pub view: Arc<View>,
    pub dirty: Dirty,
}

/// One consistent look at the index.
pub(crate) struct Snapshot {
    transaction: ReadTransaction,
    requests: ReadOnlyTable<&'static [u8], &'static [u8]>,
    identities: ReadOnlyTable<&'static [u8], &'static [u8]>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Index")
    }
}

impl Index {
    /// Opens the index that is there, if it is one of this store and format; with `check` only if each of its pages is what
    /// was written to it.
    pub fn open(
        disk: &dyn Disk,
        store: &StoreId,
        write: bool,
        check: bool,
    ) -> Result<(Self, View), StoreError> {
        if check {
            sound(disk, INDEX)?;
        }
        let watched =
            existing(disk, INDEX, write).map_err(|cause| StoreError::io(DOING, &cause))?;
        let db = guarded(DOING, || match write {
            true => database(watched.clone()).map(Db::write),
            false => {
                let db = Builder::new().open_read_only_with_backend(watched.clone());
                db.map(Db::read)
                    .map_err(|cause| StoreError::redb(DOING, cause))
            }
        })?;
        let index = Self { db, watched };
        let view = guarded(DOING, || index.snapshot()?.load(store))?;
        Ok((index, view))
    }

    /// Begins a new, empty index under a temporary name, for a store whose index is lost.
    pub fn create(disk: &dyn Disk, store: &StoreId) -> Result<Self, StoreError> {
        let file = disk
            .create(&unfinished())
            .map_err(|cause| StoreError::io(DOING, &cause))?;
        guarded(DOING, || {
            let watched = Watched::new(file);
            let db = Db::write(database(watched.clone())?);
            let index = Self { db, watched };
            let fail = |cause: redb::Error| StoreError::redb(DOING, cause);
            index
                .begin(|transaction| {
                    for table in Table::ALL {
                        drop(
                            transaction
                                .open_table(table.definition())
                                .map_err(redb::Error::from)?,
                        );
                    }
                    put(transaction, Table::Meta, b"format", &[FORMAT_VERSION])?;
                    put(
                        transaction,
                        Table::Meta,
                        b"store",
                        store.as_str().as_bytes(),
                    )?;
                    put_meta(transaction, &View::default())
                })
                .map_err(fail)?;
            Ok(index)
        })
    }

    /// Whether the disk failed under it: the storage engine refuses every later use then.
    pub fn has_failed(&self) -> bool {
        self.watched.fault().is_some()
    }

    /// Gives a new index its name once it has caught up with the log.
    pub fn publish(disk: &dyn Disk) -> Result<(), StoreError> {
        finish(disk, &unfinished(), INDEX).map_err(|cause| StoreError::io("index.redb", &cause))
    }

    /// Writes what changed, together with the cursor, in one durable transaction.
    pub fn write(&self, flush: &Flush) -> Result<(), StoreError> {
        let (view, dirty) = (&flush.view, &flush.dirty);
        guarded(DOING, || {
            let written = self.begin(|transaction| {
                if !plant::is(Plant::HeadsNotFlushed) {
                    rows(transaction, Table::Heads, &dirty.heads, |key| {
                        view.heads.get(key)
                    })?;
                }
                rows(transaction, Table::Owners, &dirty.owners, |key| {
                    view.owners.get(key)
                })?;
                rows(transaction, Table::Registers, &dirty.registers, |key| {
                    view.registers.get(key)
                })?;
                if !plant::is(Plant::GatesNotFlushed) {
                    rows(transaction, Table::Gates, &dirty.gates, |key| {
                        view.gates.get(key)
                    })?;
                }
                rows(transaction, Table::Accounts, &dirty.accounts, |key| {
                    view.accounts.get(key)
                })?;
                rows(transaction, Table::Due, &dirty.due, |key| view.due.get(key))?;
                rows(transaction, Table::Cursors, &dirty.cursors, |key| {
                    view.cursors.get(key)
                })?;
                rows(transaction, Table::Requests, view.requests.keys(), |key| {
                    view.requests.get(key)
                })?;
                rows(
                    transaction,
                    Table::Identities,
                    view.identities.keys(),
                    |key| view.identities.get(key),
                )?;
                // Which of the levels have a row changes with almost every event.
                let levels: Vec<u64> = (0..WHOLE).collect();
                rows(transaction, Table::Tree, &levels, |level| {
                    view.tree.node(*level)
                })?;
                let root = view.tree.root();
                rows(transaction, Table::Tree, &[WHOLE], |_| Some(&root))?;
                put_meta(transaction, view)
            });
            written.map_err(|cause| StoreError::redb("write index.redb", cause))
        })
    }

    /// One consistent look.
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        guarded(DOING, || {
            let open = || -> Result<Snapshot, redb::Error> {
                let transaction = self.db.begin_read()?;
                let requests = transaction.open_table(Table::Requests.definition())?;
                let identities = transaction.open_table(Table::Identities.definition())?;
                Ok(Snapshot {
                    transaction,
                    requests,
                    identities,
                })
            };
            open().map_err(|cause| StoreError::redb(DOING, cause))
        })
    }

    fn begin(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), redb::Error> {
        let transaction = self.db.begin_write()?;
        work(&transaction)?;
        transaction.commit()?;
        Ok(())
    }
}

impl Snapshot {
    /// The view at the index's cursor. Requests and identities stay in the index.
    pub fn load(&self, store: &StoreId) -> Result<View, StoreError> {
        if self.meta("format")?.as_deref() != Some(&[FORMAT_VERSION]) {
            return Err(damage("expected another format version"));
        }
        if self.meta("store")?.as_deref() != Some(store.as_str().as_bytes()) {
            return Err(damage("it belongs to another store"));
        }
        let mut view = View {
            cursor: self.cursor()?,
            last_ms: self.number("last_ms")?,
            boot: self.number("boot")?,
            heads: self.table::<StreamId, HeadRow>(Table::Heads)?,
            owners: self.table(Table::Owners)?,
            registers: self.table(Table::Registers)?,
            gates: self.table(Table::Gates)?,
            accounts: self.table(Table::Accounts)?,
            due: self.table(Table::Due)?,
            cursors: self.table::<ConsumerId, u64>(Table::Cursors)?,
            ..View::default()
        };
        // Another tree than that of the cursor is none: it is then made from the log.
        view.tree = self.tree()?.unwrap_or_default();
        for key in view.due.keys() {
            view.due_at
                .insert_mut((key.stream.clone(), key.kind), key.at_ms);
        }
        Ok(view)
    }

    /// The last event that the index covers.
    pub fn cursor(&self) -> Result<LogCursor, StoreError> {
        let row: Option<HeadRow> = self.meta("cursor")?.as_deref().and_then(HeadRow::read);
        let row = row.ok_or_else(|| damage("it has no cursor"))?;
        Ok(LogCursor {
            sequence: row.sequence,
            hash: row.head.hash,
        })
    }

    /// The tree at the index's cursor; an empty one where the rows are not those of any tree of that size, and none in an
    /// index that never had any.
    pub fn tree(&self) -> Result<Option<CompactRange>, StoreError> {
        match self.transaction.open_table(Table::Tree.definition()) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            other => other
                .map(drop)
                .map_err(|cause| StoreError::redb(DOING, cause))?,
        }
        let nodes: Map<u64, Digest> = self.table(Table::Tree)?;
        let root = nodes.get(&WHOLE).copied();
        let nodes = nodes.iter().filter(|(level, _)| **level != WHOLE);
        let nodes = nodes.map(|(level, node)| (*level, *node));
        let range = CompactRange::from_nodes(self.cursor()?.sequence, nodes);
        let range = range.filter(|range| Some(range.root()) == root);
        Ok(Some(range.unwrap_or_default()))
    }

    /// A small table as a map.
    pub fn table<K: Bytes + Ord + Clone, V: Bytes>(
        &self,
        table: Table,
    ) -> Result<Map<K, V>, StoreError> {
        let fail = |cause: redb::Error| StoreError::redb(DOING, cause);
        let rows = self
            .transaction
            .open_table(table.definition())
            .map_err(|cause| fail(cause.into()))?;
        let mut map = Map::new_sync();
        for row in rows.iter().map_err(|cause| fail(cause.into()))? {
            let (key, value) = row.map_err(|cause| fail(cause.into()))?;
            let read = K::read(key.value()).zip(V::read(value.value()));
            let (key, value) =
                read.ok_or_else(|| damage(&format!("a row of {} cannot be read", table.name())))?;
            map.insert_mut(key, value);
        }
        Ok(map)
    }

    /// How many rows a table has.
    pub fn count(&self, table: Table) -> Result<u64, StoreError> {
        guarded(DOING, || {
            let rows = match table {
                Table::Requests => self.requests.len(),
                _ => self.identities.len(),
            };
            rows.map_err(|cause| StoreError::redb(DOING, cause))
        })
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let read = || -> Result<Option<Vec<u8>>, redb::Error> {
            let meta = self.transaction.open_table(Table::Meta.definition())?;
            Ok(meta.get(name.as_bytes())?.map(|row| row.value().to_vec()))
        };
        read().map_err(|cause| StoreError::redb(DOING, cause))
    }

    fn number(&self, name: &str) -> Result<u64, StoreError> {
        let found = self.meta(name)?.as_deref().and_then(u64::read);
        found.ok_or_else(|| damage(&format!("it has no {name}")))
    }

    fn row<K: Bytes, V: Bytes>(
        &self,
        table: &ReadOnlyTable<&'static [u8], &'static [u8]>,
        key: &K,
    ) -> Result<Option<V>, StoreError> {
        guarded(DOING, || {
            let row = table
                .get(key.write().as_slice())
                .map_err(|cause| StoreError::redb(DOING, cause))?;
            let Some(row) = row else { return Ok(None) };
            V::read(row.value())
                .map(Some)
                .ok_or_else(|| damage("a row cannot be read"))
        })
    }
}

impl Snapshot {
    /// The row of a request as it stands there.
    pub(crate) fn request_row(&self, key: &RequestKey) -> Result<Option<RequestRow>, StoreError> {
        self.row(&self.requests, key)
    }
}

impl Lookup for Snapshot {
    fn request(&self, key: &RequestKey) -> Result<Option<RequestRow>, StoreError> {
        if plant::is(Plant::DedupeForgets) || plant::is(Plant::DedupeInMemory) {
            return Ok(None);
        }
        self.request_row(key)
    }

    fn identity(&self, key: &IdentityKey) -> Result<Option<IdentityRow>, StoreError> {
        self.row(&self.identities, key)
    }
}

fn unfinished() -> String {
    format!("{INDEX}{UNFINISHED}")
}

fn damage(what: &str) -> StoreError {
    StoreError::Corrupt {
        place: DOING.to_owned(),
        what: what.to_owned(),
    }
}

fn database(watched: Watched) -> Result<Database, StoreError> {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
        .create_with_backend(watched)
        .map_err(|cause| StoreError::redb(DOING, cause))
}

fn rows<'k, K: Bytes + 'k, V: Bytes + 'k>(
    transaction: &WriteTransaction,
    table: Table,
    keys: impl IntoIterator<Item = &'k K>,
    get: impl Fn(&K) -> Option<&'k V>,
) -> Result<(), redb::Error> {
    let mut rows = transaction.open_table(table.definition())?;
    for key in keys {
        match get(key) {
            Some(value) => drop(rows.insert(key.write().as_slice(), value.write().as_slice())?),
            None => drop(rows.remove(key.write().as_slice())?),
        }
    }
    Ok(())
}

fn put(
    transaction: &WriteTransaction,
    table: Table,
    key: &[u8],
    value: &[u8],
) -> Result<(), redb::Error> {
    transaction
        .open_table(table.definition())?
        .insert(key, value)?;
    Ok(())
}

fn put_meta(transaction: &WriteTransaction, view: &View) -> Result<(), redb::Error> {
    // A cursor has the bytes of a head at revision 0.
    let head = praxis_model::event::Head {
        revision: 0.into(),
        hash: view.cursor.hash,
    };
    let cursor = HeadRow {
        head,
        sequence: view.cursor.sequence,
    };
    put(transaction, Table::Meta, b"boot", &view.boot.write())?;
    put(transaction, Table::Meta, b"last_ms", &view.last_ms.write())?;
    put(transaction, Table::Meta, b"cursor", &cursor.write())
}
