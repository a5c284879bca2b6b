//! A log of two missions, its checkpoint, and the export of one of them.
//!
//! Invariant: the same bytes on every machine; the key signs for tests alone. Used by the tests of proofs and vectors.

use praxis_journal_format::Sealed;
use praxis_journal_format::checkpoint::{Checkpoint, origin};
use praxis_journal_format::note::Signer;
use praxis_journal_format::proofs::Writer;
use praxis_journal_format::tree::Tree;
use praxis_model::stream::Subject;

use super::{golden, subject};

/// The verifier key of [`signer`].
pub const KEY: &str = "praxis-tree-0/store-1+6725c50a+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c";

/// The key of the golden checkpoint.
pub fn signer() -> Signer {
    Signer::new(&origin(&"store-1".parse().unwrap()), &[1; 32]).unwrap()
}

/// The golden journal, and the same of another mission, event for event; appends of several parts stay whole.
pub fn log() -> Vec<Sealed> {
    let one = golden();
    let two = retold(&one);
    let appends = |events: &[Sealed]| -> Vec<Vec<Sealed>> {
        let chunks = events.chunk_by(|_, next| next.event.part.k.0 > 1);
        chunks.map(<[Sealed]>::to_vec).collect()
    };
    let both = appends(&two).into_iter().zip(appends(&one));
    both.flat_map(|(two, one)| [two, one].concat()).collect()
}

/// The same story under the name mission-2.
fn retold(events: &[Sealed]) -> Vec<Sealed> {
    let mut names = vec![("mission-1".to_owned(), "mission-2".to_owned())];
    for run in [None, Some("run-1"), Some("run-2")] {
        let one = subject(run);
        let two = Subject {
            mission_id: "mission-2".parse().unwrap(),
            ..one.clone()
        };
        names.push((one.stream().to_string(), two.stream().to_string()));
    }
    let mut told = Vec::new();
    for sealed in events {
        let mut text = String::from_utf8(sealed.bytes.clone()).unwrap();
        for (from, to) in &names {
            text = text.replace(from, to);
        }
        let retold = Sealed::from_bytes(text.as_bytes()).unwrap();
        names.push((sealed.hash.to_string(), retold.hash.to_string()));
        told.push(retold);
    }
    told
}

/// The tree over a log.
pub fn tree(log: &[Sealed]) -> Tree {
    let mut tree = Tree::default();
    for sealed in log {
        tree.push(sealed.hash.as_bytes());
    }
    tree
}

/// The checkpoint of a log.
pub fn checkpoint(log: &[Sealed]) -> Checkpoint {
    let tree = tree(log);
    let (size, store) = (tree.size(), "store-1".parse().unwrap());
    let root = tree.root(size).unwrap();
    Checkpoint::of(&store, praxis_journal_format::tree::TreeHead { size, root })
}

/// The mission of an event.
pub fn mission_of(sealed: &Sealed) -> &str {
    sealed.event.subject.mission_id.as_str()
}

/// The export of a mission under the checkpoint of the whole log.
pub fn proven(log: &[Sealed], mission: &str) -> Vec<u8> {
    let (tree, mut out) = (tree(log), Vec::new());
    let note = checkpoint(log).signed(&signer()).unwrap();
    let (store, id) = ("store-1".parse().unwrap(), mission.parse().unwrap());
    let mut writer = Writer::begin(store, id, &note, &tree, &mut out).unwrap();
    for (sequence, sealed) in (1..).zip(log) {
        if mission_of(sealed) == mission {
            writer.event(sequence, sealed, &mut out).unwrap();
        }
    }
    writer.finish(&mut out).unwrap();
    out
}
