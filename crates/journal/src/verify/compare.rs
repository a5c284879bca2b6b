//! Comparing projections: what the log folds to against what the index, or the view, holds.
//!
//! Invariant: the first row that differs is named, per table. Called by verify.

use std::fmt::Debug;

use aiws::id::StreamId;
use rpds::RedBlackTreeMapSync as Map;

use crate::error::StoreError;
use crate::index::Snapshot;
use crate::rows::OwnerRow;
use crate::tables::Table;
use crate::view::View;

/// What differs between the fold and the index at its cursor.
pub(super) fn index(fold: &View, index: &Snapshot) -> Result<Vec<String>, StoreError> {
    let pairs = [
        differs(
            "index table heads",
            &fold.heads,
            &index.table(Table::Heads)?,
        ),
        differs(
            "index table owners",
            &epochs(&fold.owners),
            &epochs(&index.table(Table::Owners)?),
        ),
        differs(
            "index table registers",
            &fold.registers,
            &index.table(Table::Registers)?,
        ),
        differs(
            "index table gates",
            &fold.gates,
            &index.table(Table::Gates)?,
        ),
        differs(
            "index table accounts",
            &fold.accounts,
            &index.table(Table::Accounts)?,
        ),
        differs("index table due", &fold.due, &index.table(Table::Due)?),
    ];
    let mut wrong: Vec<String> = pairs.into_iter().flatten().collect();
    let cursor = index.cursor()?;
    if index.tree()?.is_some_and(|tree| tree != fold.tree) {
        wrong.push("index table tree: it is not the tree of the log".to_owned());
    }
    if cursor != fold.cursor {
        wrong.push(format!(
            "the index's cursor names {}, the log has {}",
            cursor.hash, fold.cursor.hash
        ));
    }
    Ok(wrong)
}

/// What differs between the fold and the view in memory at the end of the log.
pub(super) fn views(fold: &View, view: &View) -> Vec<String> {
    let pairs = [
        differs("view heads", &fold.heads, &view.heads),
        differs("view owners", &epochs(&fold.owners), &epochs(&view.owners)),
        differs("view registers", &fold.registers, &view.registers),
        differs("view gates", &fold.gates, &view.gates),
        differs("view accounts", &fold.accounts, &view.accounts),
        differs("view due", &fold.due, &view.due),
        (fold.last_ms != view.last_ms).then(|| "view time".to_owned()),
        (fold.cursor != view.cursor).then(|| "view cursor".to_owned()),
        (fold.tree != view.tree).then(|| "view tree".to_owned()),
    ];
    pairs.into_iter().flatten().collect()
}

fn epochs(owners: &Map<StreamId, OwnerRow>) -> Map<StreamId, u64> {
    owners
        .iter()
        .map(|(stream, row)| (stream.clone(), row.epoch))
        .collect()
}

fn differs<K, V>(name: &str, expected: &Map<K, V>, found: &Map<K, V>) -> Option<String>
where
    K: Ord + Debug,
    V: PartialEq + Debug,
{
    let wrong = |key: &K| {
        format!(
            "{name}: expected {:?} at {key:?}, found {:?}",
            expected.get(key),
            found.get(key)
        )
    };
    let here = expected
        .iter()
        .find(|(key, value)| found.get(key) != Some(value))
        .map(|(key, _)| wrong(key));
    here.or_else(|| {
        found
            .keys()
            .find(|key| !expected.contains_key(key))
            .map(wrong)
    })
}
