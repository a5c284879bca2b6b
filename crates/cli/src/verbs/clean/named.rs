//! Which stored bytes are named by anything that is kept.
//! Invariant: too many count as named rather than too few: whatever looks like a digest, in an event, in bytes that an
//! event names, or in the files of a tree that stays. Called by `clean`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use aiws::digest::Digest;
use aiws::error::{Code, Error};
use praxis_artifacts::{ArtifactProvider, FileArtifacts};
use praxis_journal::Journal;

use crate::files::read_left;

/// Most bytes of stored material that is looked into for digests: records are far smaller, patches are none.
const RECORD_BYTES: u64 = 4 << 20;

/// Hex digits of a digest.
const DIGITS: usize = 64;

/// Every digest that an event names, or that is named in what an event names, and so on.
///
/// # Errors
///
/// A store code when the log cannot be read to its end.
pub fn by_events(journal: &Journal, artifacts: &FileArtifacts) -> Result<BTreeSet<Digest>, Error> {
    let (mut named, mut fresh) = (BTreeSet::new(), Vec::new());
    let scanned = journal.scan(1, |_, sealed| {
        take(&sealed.bytes, &mut named, &mut fresh);
        true
    });
    scanned.map_err(|error| Error::new(error.code(), error.to_string()))?;
    follow(artifacts, &mut named, fresh);
    Ok(named)
}

/// Adds what the records beside the trees that stay name: an outcome that was not settled yet is in no event.
pub fn add_by_trees(trees: &[&Path], artifacts: &FileArtifacts, named: &mut BTreeSet<Digest>) {
    let mut fresh = Vec::new();
    for tree in trees {
        let attempts = fs::read_dir(tree.join("attempts")).into_iter().flatten();
        for attempt in attempts.filter_map(Result::ok) {
            let files = fs::read_dir(attempt.path()).into_iter().flatten();
            for file in files.filter_map(Result::ok) {
                let path = file.path();
                if path.extension().is_none_or(|ending| ending != "json") {
                    continue;
                }
                // A file that is not a record names nothing.
                if let Ok(bytes) = read_left(tree, &path, RECORD_BYTES, Code::StoreIo) {
                    take(&bytes, named, &mut fresh);
                }
            }
        }
    }
    follow(artifacts, named, fresh);
}

/// Looks into stored records for further digests until there are no new ones.
fn follow(artifacts: &FileArtifacts, named: &mut BTreeSet<Digest>, mut fresh: Vec<Digest>) {
    while let Some(digest) = fresh.pop() {
        // What is missing or too large for a record names nothing.
        if let Ok(bytes) = artifacts.read_digest(&digest, RECORD_BYTES)
            && bytes.first() == Some(&b'{')
        {
            take(&bytes, named, &mut fresh);
        }
    }
}

/// Takes everything that looks like a digest.
fn take(bytes: &[u8], named: &mut BTreeSet<Digest>, fresh: &mut Vec<Digest>) {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    for run in bytes.split(|byte| !is_digit(byte)) {
        for window in run.windows(DIGITS) {
            let digest = std::str::from_utf8(window)
                .ok()
                .and_then(|text| text.parse::<Digest>().ok());
            if let Some(digest) = digest.filter(|digest| named.insert(*digest)) {
                fresh.push(digest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_looks_like_a_digest_is_taken() {
        let (one, two) = ("a".repeat(64), format!("{}1", "b".repeat(63)));
        let count = |text: &str| {
            let (mut named, mut fresh) = (BTreeSet::new(), Vec::new());
            take(text.as_bytes(), &mut named, &mut fresh);
            assert_eq!(named.len(), fresh.len());
            named.len()
        };
        assert_eq!(
            count(&format!("{{\"x\":\"sha256:{one}\",\"y\":\"{two}\"}}")),
            2
        );
        assert_eq!(count(&format!("{one} {one}")), 1);
        assert_eq!(count(&format!("c{two}")), 2, "every window of a longer run");
        assert_eq!(count(&"a".repeat(63)), 0);
        assert_eq!(count(&"A".repeat(64)), 0);
    }
}
