//! Golden files of the journal's format stay as they are while the format's version stays.
//! Invariant: `journal-format/FROZEN` has the version and the SHA-256 of every file below `journal-format/golden`.
//! Its test compares it with the files, and with FROZEN of the commit before (T-85).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::repo;

/// `journal-format/FROZEN`: a line `version N`, while N is 0 a line `draft N`, then lines `sha256  golden/NAME` as `sha256sum` writes them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Frozen {
    /// The version byte of the format; `None` when the line is missing.
    pub version: Option<u8>,
    /// Which draft of version 0 it is; drafts end with version 1.
    pub draft: Option<u32>,
    /// Path below `journal-format` to lower-case hex digest.
    pub digests: BTreeMap<String, String>,
}

impl Frozen {
    /// Reads the text of FROZEN; lines that begin with `#` are comments.
    pub fn parse(text: &str) -> Frozen {
        let mut frozen = Frozen::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.split_once(char::is_whitespace) {
                Some(("version", number)) => frozen.version = number.trim().parse().ok(),
                Some(("draft", number)) => frozen.draft = number.trim().parse().ok(),
                Some((digest, path)) => {
                    frozen
                        .digests
                        .insert(path.trim().to_owned(), digest.to_owned());
                }
                None => {}
            }
        }
        frozen
    }
}

/// Files that FROZEN does not have, has with another digest, or has and that are gone.
pub fn differing(frozen: &Frozen, files: &BTreeMap<String, String>) -> Vec<String> {
    let mut problems = Vec::new();
    if frozen.version.is_none() {
        problems.push("journal-format/FROZEN has no line `version N`".to_owned());
    }
    for (path, digest) in files {
        match frozen.digests.get(path) {
            None => problems.push(format!(
                "{path} is not in journal-format/FROZEN; its line is `{digest}  {path}`"
            )),
            Some(known) if known != digest => {
                problems.push(format!("{path} changed: {known} became {digest}"))
            }
            Some(_) => {}
        }
    }
    let gone = frozen
        .digests
        .keys()
        .filter(|path| !files.contains_key(*path));
    problems.extend(gone.map(|path| format!("{path} is in journal-format/FROZEN and gone")));
    problems
}

/// Golden files that another FROZEN of the same version, and while that is 0 of the same draft, had differently.
pub fn rewritten(before: &Frozen, now: &Frozen) -> Vec<String> {
    let redrafted = now.version == Some(0) && now.draft > before.draft;
    if before.version != now.version || redrafted {
        return vec![];
    }
    let changed = before
        .digests
        .iter()
        .filter(|(path, digest)| now.digests.get(*path) != Some(*digest));
    changed
        .map(|(path, _)| format!("{path} changed and the version byte did not (T-85)"))
        .collect()
}

/// A draft of version 0 that the changelog does not name, and a draft of a version that has none.
pub fn unnoted(frozen: &Frozen, changelog: &str) -> Vec<String> {
    match (frozen.version, frozen.draft) {
        (Some(0), Some(draft)) => {
            let noted = changelog.contains(&format!("draft {draft}"));
            let problem =
                || format!("CHANGELOG.md does not say what draft {draft} of the format changed");
            (!noted).then(problem).into_iter().collect()
        }
        (_, Some(draft)) => vec![format!(
            "draft {draft} of a version that is no draft any more"
        )],
        _ => vec![],
    }
}

/// Digest of every file below `journal-format/golden`, by its path below `journal-format`.
pub fn golden_files() -> BTreeMap<String, String> {
    let base = repo::root().join("journal-format");
    let mut files = BTreeMap::new();
    collect(&base, &base.join("golden"), &mut files);
    files
}

fn collect(base: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(base, &path, files);
            continue;
        }
        let name = path
            .strip_prefix(base)
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        match fs::read(&path) {
            Ok(bytes) => files.insert(name, hex(&Sha256::digest(bytes))),
            Err(error) => panic!("{}: {error}", path.display()),
        };
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// FROZEN as a commit has it; `None` where there is no git, no such commit, or no such file in it.
pub fn frozen_at(commit: &str) -> Option<Frozen> {
    let object = format!("{commit}:journal-format/FROZEN");
    let output = Command::new("git")
        .args(["show", &object])
        .current_dir(repo::root())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| Frozen::parse(&String::from_utf8_lossy(&output.stdout)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::require;

    #[test]
    fn golden_files_are_frozen() {
        let files = golden_files();
        let path = repo::root().join("journal-format/FROZEN");
        let golden = repo::root().join("journal-format/golden").exists();
        assert_eq!(
            golden,
            path.exists(),
            "journal-format/golden and journal-format/FROZEN need each other"
        );
        if !golden {
            return;
        }
        assert!(!files.is_empty(), "journal-format/golden is empty");
        let now = Frozen::parse(&repo::read(&path));
        require("golden files", &differing(&now, &files));
        let changelog = repo::read(&repo::root().join("CHANGELOG.md"));
        require("drafts of the format", &unnoted(&now, &changelog));
        let head = frozen_at("HEAD");
        let before = if head.as_ref() == Some(&now) {
            frozen_at("HEAD^")
        } else {
            head
        };
        if let Some(before) = before {
            require("golden files and version", &rewritten(&before, &now));
        }
    }

    #[test]
    fn golden_rules_can_fail() {
        let frozen = Frozen::parse("# why\nversion 0\naa  golden/a\nbb  golden/b\n");
        assert_eq!(frozen.version, Some(0));
        let files = |list: &[(&str, &str)]| {
            list.iter()
                .map(|(p, d)| ((*p).to_owned(), (*d).to_owned()))
                .collect()
        };
        let cases = [
            (files(&[("golden/a", "aa"), ("golden/b", "bb")]), 0),
            (files(&[("golden/a", "aa"), ("golden/b", "cc")]), 1),
            (files(&[("golden/a", "aa")]), 1),
            (
                files(&[("golden/a", "aa"), ("golden/b", "bb"), ("golden/c", "cc")]),
                1,
            ),
        ];
        for (files, wanted) in cases {
            assert_eq!(differing(&frozen, &files).len(), wanted, "{files:?}");
        }
        assert_eq!(differing(&Frozen::default(), &BTreeMap::new()).len(), 1);
        let redrafted = [
            ("version 0\ndraft 2\naa  golden/a\ncc  golden/b\n", 0),
            ("version 0\ndraft 1\naa  golden/a\ncc  golden/b\n", 1),
            ("version 0\naa  golden/a\ncc  golden/b\n", 1),
        ];
        let drafted = Frozen::parse("version 0\ndraft 1\naa  golden/a\nbb  golden/b\n");
        for (text, wanted) in redrafted {
            let now = Frozen::parse(text);
            assert_eq!(rewritten(&drafted, &now).len(), wanted, "{text}");
        }
        // A version that was released has no drafts: its golden files stay whatever the line says.
        let released = Frozen::parse("version 1\ndraft 1\naa  golden/a\n");
        let changed = Frozen::parse("version 1\ndraft 2\ncc  golden/a\n");
        assert_eq!(rewritten(&released, &changed).len(), 1);
        assert_eq!(unnoted(&drafted, "draft 1: what changed").len(), 0);
        assert_eq!(unnoted(&drafted, "nothing").len(), 1);
        assert_eq!(unnoted(&changed, "draft 2").len(), 1);
        assert_eq!(
            rewritten(
                &frozen,
                &Frozen::parse("version 0\naa  golden/a\ncc  golden/b\n")
            )
            .len(),
            1
        );
        assert_eq!(
            rewritten(
                &frozen,
                &Frozen::parse("version 1\naa  golden/a\ncc  golden/b\n")
            )
            .len(),
            0
        );
    }
}
