//! The tree of a store: what it is over after commits, openings, segments and lost or older indexes; heads kept outside.
//!
//! Invariant: the head in memory is always the root over the stored events, recomputed here by the recursion of RFC 6962.
//! Run in temporary directories.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;

use aiws::digest::{Digest, sha256};
use aiws::error::Code;
use praxis_journal::verify::{Depth, Standing};
use praxis_journal::{Disk, FileDisk, Journal, Ledger, Options};
use praxis_journal_format::checkpoint::Checkpoint;
use praxis_journal_format::note::Signer;
use praxis_journal_format::proofs;
use praxis_journal_format::tree::TreeHead;
use tempfile::TempDir;

#[path = "../../../simulations/src/script.rs"]
#[allow(dead_code)]
mod script;

use script::Script;

/// A segment for each commit, so that the tree crosses many of them.
fn options() -> Options {
    Options {
        segment_bytes: 1,
        ..Options::default()
    }
}

fn opened(path: &Path) -> Ledger {
    let disk: Arc<dyn Disk> = Arc::new(FileDisk::new(path));
    Ledger::open(disk, &options()).unwrap()
}

/// A store, and a mission whose events go into it one by one.
fn begun(path: &Path, store: &str) -> (Ledger, Script) {
    let disk: Arc<dyn Disk> = Arc::new(FileDisk::new(path));
    let mut ledger = Ledger::create(disk, store.parse().unwrap(), &options()).unwrap();
    let mut script = Script::new("mission").unwrap();
    let first = script.start_run("run").unwrap();
    assert!(ledger.commit(&[first], 2_000)[0].is_ok());
    (ledger, script)
}

fn noted(ledger: &mut Ledger, script: &mut Script, count: usize) {
    for _ in 0..count {
        let append = script.note("run").unwrap();
        assert!(ledger.commit(&[append], 2_000)[0].is_ok());
    }
}

/// The root over the stored events up to a size, by the definition.
fn defined(ledger: &Ledger, size: u64) -> TreeHead {
    fn root(leaves: &[Digest]) -> Digest {
        match leaves {
            [] => sha256(b""),
            [hash] => sha256(&[&[0], &hash.0[..]].concat()),
            leaves => {
                let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
                sha256(&[&[1], &root(left).0[..], &root(right).0[..]].concat())
            }
        }
    }
    let hashes: Vec<Digest> = (1..=size)
        .map(|sequence| ledger.read(sequence).unwrap().unwrap().hash)
        .collect();
    TreeHead {
        size,
        root: root(&hashes),
    }
}

fn is_defined(ledger: &Ledger) -> TreeHead {
    let view = ledger.view();
    let head = view.tree_head();
    assert_eq!(head, defined(ledger, view.sequence()));
    assert!(ledger.verify(&mut |_, _| ()).unwrap().is_sound());
    head
}

/// Proves T-01, T-11: the head is the root over the whole log, after each commit, in the next opening, without an index, with
/// one that is behind, and when opened for reading.
#[test]
fn t_01_the_head_is_the_root_over_the_log() {
    let folder = TempDir::new().unwrap();
    let (mut ledger, mut script) = begun(folder.path(), "store");
    for _ in 0..20 {
        noted(&mut ledger, &mut script, 1);
        is_defined(&ledger);
    }
    ledger.flush_index().unwrap();
    noted(&mut ledger, &mut script, 5);
    let head = is_defined(&ledger);
    // As after a kill: the index is behind.
    drop(ledger);
    assert_eq!(is_defined(&opened(folder.path())), head);
    let ledger = opened(folder.path());
    ledger.close().unwrap();
    assert_eq!(is_defined(&opened(folder.path())), head);
    std::fs::remove_file(folder.path().join("index.redb")).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(FileDisk::new(folder.path()));
    let reading = Options {
        read_only: true,
        ..options()
    };
    let reader = Ledger::open(disk, &reading).unwrap();
    assert_eq!(is_defined(&reader), head);
    drop(reader);
    assert_eq!(is_defined(&opened(folder.path())), head);
}

/// Changes the index's table of the tree, below the store.
fn change(folder: &Path, change: impl FnOnce(&redb::WriteTransaction)) {
    let index = redb::Database::open(folder.join("index.redb")).unwrap();
    let transaction = index.begin_write().unwrap();
    change(&transaction);
    transaction.commit().unwrap();
}

const TREE: redb::TableDefinition<'static, &'static [u8], &'static [u8]> =
    redb::TableDefinition::new("tree");

/// Proves T-11: the tree of the index is a cache: one of an older build that has none, and one whose rows were changed, is
/// made from the log and written again; a changed one is told by `verify` until then.
#[test]
fn t_11_the_tree_of_the_index_is_made_anew() {
    let folder = TempDir::new().unwrap();
    let (mut ledger, mut script) = begun(folder.path(), "store");
    noted(&mut ledger, &mut script, 12);
    let head = is_defined(&ledger);
    ledger.close().unwrap();
    let rows = || {
        use redb::{ReadableDatabase, ReadableTableMetadata};
        let index = redb::Database::open(folder.path().join("index.redb")).unwrap();
        let table = index.begin_read().unwrap().open_table(TREE);
        table.map_or(0, |table| table.len().unwrap())
    };
    // Thirteen is three full subtrees; and the root.
    assert_eq!(rows(), 4);
    change(folder.path(), |transaction| {
        transaction.delete_table(TREE).unwrap();
    });
    let ledger = opened(folder.path());
    assert_eq!(is_defined(&ledger), head);
    ledger.close().unwrap();
    assert_eq!(rows(), 4);
    for level in [0_u64, 1, 50, 64] {
        change(folder.path(), |transaction| {
            let mut table = transaction.open_table(TREE).unwrap();
            let key = level.to_be_bytes();
            table.insert(&key[..], &[7_u8; 32][..]).unwrap();
        });
        let ledger = opened(folder.path());
        assert_eq!(ledger.view().tree_head(), head, "{level}");
        let report = ledger.verify(&mut |_, _| ()).unwrap();
        assert_eq!(report.findings.len(), 1, "{report:?}");
        assert!(report.findings[0].what.contains("table tree"));
        ledger.close().unwrap();
        assert_eq!(rows(), 4);
        assert_eq!(is_defined(&opened(folder.path())), head);
    }
}

fn standings(ledger: &Ledger, heads: &[TreeHead]) -> (Vec<Standing>, Vec<Code>) {
    let report = ledger
        .verify_against(heads, Depth::Projections, &mut |_, _| ())
        .unwrap();
    let standings = report.compared.iter().map(|it| it.standing).collect();
    let codes = report.findings.iter().map(|it| it.code).collect();
    (standings, codes)
}

/// Proves STO-4, T-11: against heads that were kept outside, a log that went on extends each of them; one that lost its end
/// together with its index, one that was rolled back and went on, and one that was rewritten with right hashes are told.
#[test]
fn sto_4_heads_that_were_kept_outside_are_compared() {
    let folder = TempDir::new().unwrap();
    let (mut ledger, mut script) = begun(folder.path(), "store");
    noted(&mut ledger, &mut script, 6);
    ledger.flush_index().unwrap();
    let rolled = TempDir::new().unwrap();
    let at_seven = script.clone();
    ledger.close().unwrap();
    copy(folder.path(), rolled.path());
    let mut ledger = opened(folder.path());
    noted(&mut ledger, &mut script, 6);
    let heads: Vec<TreeHead> = (0..=13).map(|size| defined(&ledger, size)).collect();
    assert_eq!(
        standings(&ledger, &heads),
        (vec![Standing::Extends; 14], vec![])
    );
    noted(&mut ledger, &mut script, 3);
    assert_eq!(standings(&ledger, &heads).1, []);

    // Log and index together as they were: every chain is whole, only the outside knows.
    let mut old = opened(rolled.path());
    let (found, codes) = standings(&old, &heads);
    assert_eq!(found[..8], [Standing::Extends; 8]);
    assert_eq!(found[8..], [Standing::Ahead; 6]);
    assert_eq!(codes, [Code::CheckpointAhead; 6]);
    // It goes on otherwise, past the checkpoint.
    let mut other = at_seven;
    other.filling = 7;
    noted(&mut old, &mut other, 9);
    let (found, codes) = standings(&old, &heads);
    assert_eq!(found[..8], [Standing::Extends; 8]);
    assert_eq!(found[8..], [Standing::Forked; 6]);
    assert_eq!(codes, [Code::CheckpointForked; 6]);
    let sound = old.verify(&mut |_, _| ()).unwrap();
    assert!(sound.is_sound(), "only the checkpoint shows it");

    // Rewritten from the first event on.
    let anew = TempDir::new().unwrap();
    let (mut ledger, mut script) = begun(anew.path(), "store");
    script.filling = 9;
    noted(&mut ledger, &mut script, 14);
    let (found, _) = standings(&ledger, &heads);
    assert_eq!(found[2..], [Standing::Forked; 12]);
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Proves STO-4: the journal proves one mission's events under a checkpoint that was made earlier, and refuses one that the
/// log does not extend; its checked head is the one in memory.
#[test]
fn sto_4_a_mission_is_proven_under_an_earlier_checkpoint() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("store");
    let journal = Journal::create(&store, &options()).unwrap();
    let mut scripts = ["one", "two"].map(|name| Script::new(name).unwrap());
    for script in &mut scripts {
        let append = script.start_run("run").unwrap();
        journal.append_blocking(append).unwrap();
    }
    let mut go_on = |count: usize| {
        for _ in 0..count {
            for script in &mut scripts {
                let append = script.note("run").unwrap();
                journal.append_blocking(append).unwrap();
            }
        }
    };
    go_on(3);
    let head = journal.checked_head().unwrap();
    assert_eq!(head, journal.view().tree_head());
    let signer = Signer::new("key", &[3; 32]).unwrap();
    let kept = Checkpoint::of(journal.store_id(), head);
    let note = kept.signed(&signer).unwrap();
    go_on(2);
    let mission = "two".parse().unwrap();
    let mut bytes = Vec::new();
    let trailer = journal.export_mission(&mission, &note, &mut bytes).unwrap();
    let read = proofs::read(&bytes, &signer.verifier()).unwrap();
    assert_eq!((read.head, read.trailer.clone()), (head, trailer));
    let sequences: Vec<u64> = read.events.iter().map(|(sequence, _)| *sequence).collect();
    assert!(sequences.iter().all(|sequence| *sequence <= head.size));
    assert_eq!(sequences.len() as u64, head.size / 2);
    let refused = |kept: &Checkpoint| {
        let note = kept.signed(&signer).unwrap();
        let mut out = Vec::new();
        let error = journal
            .export_mission(&mission, &note, &mut out)
            .unwrap_err();
        assert!(out.is_empty(), "something was written");
        error.code()
    };
    let mut ahead = kept.clone();
    ahead.head.size += 100;
    assert_eq!(refused(&ahead), Code::CheckpointAhead);
    let mut forked = kept.clone();
    forked.head.root = sha256(b"other");
    assert_eq!(refused(&forked), Code::CheckpointForked);
    let foreign = Checkpoint::of(&"other".parse().unwrap(), head);
    assert_eq!(refused(&foreign), Code::CheckpointUntrusted);
    journal.close().unwrap();
}
