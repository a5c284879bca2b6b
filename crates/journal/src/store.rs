//! The file that makes a directory a store: `praxis-store.json`.
//!
//! Invariant: it is written last when a store is made, so a directory that has it has a whole, empty log too.
//! Called by the ledger when it creates and opens.

use std::io;

use aiws::canonical;
use aiws::id::StoreId;
use praxis_journal_format::FORMAT_VERSION;
use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::error::StoreError;
use crate::index::INDEX;
use crate::limits::SMALL_FILE_BYTES;
use crate::lock::LOCK;
use crate::log::ends;
use crate::segment::{self, Segment, UNFINISHED, finish};

/// The name of the file.
pub(crate) const STORE: &str = "praxis-store.json";

const FORMAT: &str = "praxis-store";

/// What to say of a store that lost its file.
const LOST: &str = "it holds events or their index and no praxis-store.json; where a copy was cut off, make it again, else put that \
                    file back from a backup of this store";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoreFile {
    format: String,
    version: u64,
    store_id: StoreId,
}

/// Reads which store this is.
pub(crate) fn read(disk: &dyn Disk) -> Result<StoreId, StoreError> {
    let bytes = match small(disk, STORE) {
        Ok(bytes) => bytes,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            return Err(not_a_store(missing(disk)));
        }
        Err(cause) => return Err(StoreError::io(&format!("read {STORE}"), &cause)),
    };
    let value =
        aiws::strict::parse(&bytes).map_err(|cause| not_a_store(&format!("{STORE}: {cause}")))?;
    // The version is looked at before the shape: a newer shape must not read as a foreign file.
    let format = value.get("format").and_then(|format| format.as_str());
    let version = value.get("version").and_then(|version| version.as_int());
    let known = u64::from(FORMAT_VERSION);
    match (
        format,
        version.and_then(|version| u64::try_from(version).ok()),
    ) {
        (Some(FORMAT), Some(found)) if found > known => {
            return Err(StoreError::TooNew { found, known });
        }
        (Some(FORMAT), Some(_)) => {}
        _ => return Err(not_a_store(&format!("{STORE} is not one of Praxis"))),
    }
    let file: StoreFile =
        canonical::from_value(&value).map_err(|cause| not_a_store(&format!("{STORE}: {cause}")))?;
    Ok(file.store_id)
}

/// Writes which store this is, durably.
pub(crate) fn write(disk: &dyn Disk, store_id: StoreId) -> Result<(), StoreError> {
    let doing = format!("write {STORE}");
    let file = StoreFile {
        format: FORMAT.to_owned(),
        version: u64::from(FORMAT_VERSION),
        store_id,
    };
    let mut bytes = canonical::bytes_of(&file).map_err(|cause| StoreError::Internal {
        what: cause.to_string(),
    })?;
    bytes.push(b'\n');
    let unfinished = format!("{STORE}{UNFINISHED}");
    let written = || -> io::Result<()> {
        let file = disk.create(&unfinished)?;
        file.set_len(bytes.len() as u64)?;
        file.write(0, &bytes)?;
        finish(disk, &unfinished, STORE)
    };
    written().map_err(|cause| {
        drop(disk.remove(&unfinished));
        StoreError::io(&doing, &cause)
    })
}

/// What to say of a directory without the store's file: a killed creation leaves nothing but its own beginnings.
fn missing(disk: &dyn Disk) -> &'static str {
    let names = disk.list().unwrap_or_default();
    let begun = !names.is_empty() && names.iter().all(|name| ours(name) || *name == LOCK);
    if names.iter().any(|name| name == INDEX) || holds_events(disk, &names) {
        LOST
    } else if begun {
        "a store was begun here and never finished; creating it again (praxis code does) finishes it"
    } else {
        "it has no praxis-store.json"
    }
}

/// Whether there is a log that no killed creation left: one with events, or one that cannot be read.
fn holds_events(disk: &dyn Disk, names: &[String]) -> bool {
    let log = names.contains(&segment::name(1));
    let empty = || Segment::open_read(disk, 1, false).and_then(|log| ends(&log));
    log && !matches!(empty(), Ok(None))
}

/// A file that a creation makes before the store's own. An index comes after it.
fn ours(name: &str) -> bool {
    name.ends_with(UNFINISHED) || name == segment::name(1)
}

/// Clears what an interrupted creation left; refuses a directory that holds anything else. A copy that was cut off has
/// events already, in any number of segments, and no index.
pub(crate) fn make_room(disk: &dyn Disk, copy: bool) -> Result<(), StoreError> {
    let names = disk
        .list()
        .map_err(|cause| StoreError::io("list the directory", &cause))?;
    if names.iter().any(|name| name == STORE) {
        return Err(not_a_store("it already holds a store; open that one"));
    }
    if names.iter().any(|name| name == INDEX) || !copy && holds_events(disk, &names) {
        return Err(not_a_store(LOST));
    }
    let ours = |name: &str| ours(name) || copy && segment::number(name).is_some();
    if let Some(foreign) = names.iter().find(|name| !ours(name) && *name != LOCK) {
        return Err(not_a_store(&format!(
            "it is not empty, it holds {foreign:?}"
        )));
    }
    for name in names.iter().filter(|name| ours(name)) {
        disk.remove(name)
            .map_err(|cause| StoreError::io(&format!("remove {name}"), &cause))?;
    }
    Ok(())
}

fn small(disk: &dyn Disk, name: &str) -> io::Result<Vec<u8>> {
    let file = disk.open(name, false)?;
    let len = file.len()?;
    if len > SMALL_FILE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{len} bytes are more than it can have"),
        ));
    }
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    file.read(0, &mut bytes)?;
    Ok(bytes)
}

fn not_a_store(what: &str) -> StoreError {
    StoreError::NotAStore {
        path: "the directory".to_owned(),
        what: what.to_owned(),
    }
}
