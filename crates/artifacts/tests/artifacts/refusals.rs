//! What is refused: files that are not plain, directories that are not private, directories that were exchanged.
//! Invariant: a refusal leaves what was found as it was.
//! `cargo test -p praxis-artifacts` runs it.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use aiws::record::Artifact;
use praxis_artifacts::fs::Step;
use praxis_artifacts::{ArtifactError, ArtifactProvider, FileArtifacts, read_verified, verify};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Faults, NOW_MS, Place, RETAIN_UNTIL_MS, code, owner, put};

/// Puts something that is not a plain file in place of a file.
type Plant = fn(&Path, &Path);

/// The kinds that are refused, each made at `file`; `elsewhere` has the very bytes that belong there.
const KINDS: [(&str, Plant); 7] = [
    ("a symlink", |file, elsewhere| {
        symlink(elsewhere, file).unwrap()
    }),
    ("a symlink", |file, _| symlink("nowhere", file).unwrap()),
    ("a FIFO", |file, _| {
        mknodat(CWD, file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }),
    ("several names", |file, elsewhere| {
        std::fs::hard_link(elsewhere, file).unwrap()
    }),
    ("a directory", |file, _| std::fs::create_dir(file).unwrap()),
    ("a socket", |file, _| {
        drop(UnixListener::bind(file).unwrap())
    }),
    ("a symlink", |file, _| symlink(file, file).unwrap()),
];

/// A symlink, FIFO, hard link, directory or socket under a digest is never read, waited
/// for, replaced or listed.
#[test]
fn only_plain_files_are_artifacts() {
    for (found, plant) in KINDS {
        // A short path: a socket's has little room.
        let place = Place::new();
        let store = place.open();
        let artifact = put(&store, b"plain").unwrap();
        let file = place.file_of(b"plain");
        let elsewhere = place.root.path().join("elsewhere");
        std::fs::rename(&file, &elsewhere).unwrap();
        plant(&file, &elsewhere);
        let before = std::fs::symlink_metadata(&file).unwrap();

        let refused = store.read(&artifact, NOW_MS).unwrap_err();
        assert!(refused.to_string().contains(found), "{found}: {refused}");
        assert_eq!(refused.code().name(), "ARTIFACT_UNAVAILABLE", "{found}");
        assert_eq!(
            code(put(&store, b"plain")),
            "ARTIFACT_UNAVAILABLE",
            "{found}"
        );
        assert_eq!(
            code(store.contains(&artifact.digest)),
            "ARTIFACT_UNAVAILABLE",
            "{found}"
        );
        assert!(
            store.orphans(&BTreeSet::new()).unwrap().is_empty(),
            "{found}"
        );

        let after = std::fs::symlink_metadata(&file).unwrap();
        assert_eq!(after.file_type(), before.file_type(), "{found}");
        assert_eq!(std::fs::read(&elsewhere).unwrap(), b"plain", "{found}");
        assert_eq!(place.names().len(), 1, "{found}: no temporary file is left");
    }
}

/// Proves ART-2: a publish never replaces what appears under the digest after the put looked, whatever it is.
#[test]
fn art_2_publish_is_exclusive_against_every_kind() {
    for (found, plant) in KINDS {
        let place = Place::new();
        let faults = Faults::none();
        let store = place.open_faulty(&faults).unwrap();
        let elsewhere = place.root.path().join("elsewhere");
        std::fs::write(&elsewhere, b"plain").unwrap();
        let file = place.file_of(b"plain");
        faults.before(Step::Publish, move || plant(&file, &elsewhere));
        assert_eq!(
            code(put(&store, b"plain")),
            "ARTIFACT_UNAVAILABLE",
            "{found}"
        );
        assert_eq!(place.names().len(), 1, "{found}: no temporary file is left");
    }
}

#[test]
fn a_source_that_is_no_plain_file_is_refused() {
    for (found, plant) in KINDS {
        let place = Place::new();
        let store = place.open();
        let elsewhere = place.root.path().join("elsewhere");
        std::fs::write(&elsewhere, b"plain").unwrap();
        let source = place.root.path().join("source");
        plant(&source, &elsewhere);
        let put = store.put_file(&source, "key", "text/plain", &owner(), RETAIN_UNTIL_MS);
        if found == "several names" {
            // A source may have several names: its bytes are copied, and the copy has one.
            put.unwrap();
        } else {
            assert!(
                matches!(put, Err(ArtifactError::SourceNotPlain { .. })),
                "{found}"
            );
            assert!(place.names().is_empty(), "{found}");
        }
    }
}

/// Proves ART-8: a directory that others may enter is refused with the command that mends it.
#[test]
fn art_8_a_directory_open_to_others_is_refused() {
    for mode in [0o755, 0o710, 0o701, 0o770, 0o777] {
        let place = Place::new();
        drop(place.open());
        std::fs::set_permissions(&place.path, Permissions::from_mode(mode)).unwrap();
        let refused = FileArtifacts::open(&place.path).unwrap_err();
        assert_eq!(refused.code().name(), "STORE_PERMISSIONS", "{mode:o}");
        let remedy = format!("chmod 700 '{}'", place.path.display());
        assert!(refused.to_string().contains(&remedy), "{refused}");
        std::fs::set_permissions(&place.path, Permissions::from_mode(0o700)).unwrap();
        drop(place.open());
    }
}

#[test]
fn a_path_that_is_no_directory_of_its_own_is_refused() {
    let place = Place::new();
    drop(place.open());
    let link = place.root.path().join("link");
    symlink(&place.path, &link).unwrap();
    let file = place.root.path().join("file");
    std::fs::write(&file, b"").unwrap();
    for path in [
        link.as_path(),
        file.as_path(),
        Path::new("/"),
        Path::new(".."),
    ] {
        let refused = FileArtifacts::open(path).unwrap_err();
        assert_eq!(
            refused.code().name(),
            "STORE_PERMISSIONS",
            "{}",
            path.display()
        );
    }
    let orphaned = FileArtifacts::open(&place.root.path().join("missing/artifacts")).unwrap_err();
    assert_eq!(orphaned.code().name(), "STORE_IO");
}

/// What else may stand where the directory stood: nothing, a copy, or a symlink to the directory itself.
#[test]
fn an_exchanged_directory_is_refused_until_it_is_back() {
    type Exchange = fn(&Path, &Path);
    let ways: [Exchange; 3] = [
        |_, _| {},
        |path, moved| {
            std::fs::create_dir(path).unwrap();
            for entry in std::fs::read_dir(moved).unwrap() {
                let entry = entry.unwrap();
                std::fs::copy(entry.path(), path.join(entry.file_name())).unwrap();
            }
        },
        |path, moved| symlink(moved, path).unwrap(),
    ];
    for exchange in ways {
        let place = Place::new();
        let store = place.open();
        let artifact = put(&store, b"here").unwrap();
        let moved = place.root.path().join("moved");
        std::fs::rename(&place.path, &moved).unwrap();
        exchange(&place.path, &moved);

        assert_eq!(code(put(&store, b"new")), "STORE_PERMISSIONS");
        assert_eq!(code(put(&store, b"here")), "STORE_PERMISSIONS");
        assert_eq!(code(store.read(&artifact, NOW_MS)), "STORE_PERMISSIONS");
        assert_eq!(code(store.contains(&artifact.digest)), "STORE_PERMISSIONS");
        assert_eq!(code(store.orphans(&BTreeSet::new())), "STORE_PERMISSIONS");

        let exchanged = place.root.path().join("exchanged");
        if std::fs::symlink_metadata(&place.path).is_ok() {
            std::fs::rename(&place.path, exchanged).unwrap();
        }
        std::fs::rename(&moved, &place.path).unwrap();
        assert_eq!(store.read(&artifact, NOW_MS).unwrap(), b"here");
        assert_eq!(place.names().len(), 1, "a refused put stored nothing");
    }
}

/// A put may lose its directory half way; it must not report what the next open would not find.
#[test]
fn a_directory_exchanged_during_a_put_fails_it() {
    for step in [Step::Write, Step::Publish, Step::SyncDirectory] {
        let place = Place::new();
        let faults = Faults::none();
        let store = place.open_faulty(&faults).unwrap();
        let (path, moved) = (place.path.clone(), place.root.path().join("moved"));
        faults.before(step, move || {
            std::fs::rename(&path, moved).unwrap();
            std::fs::create_dir(&path).unwrap();
        });
        assert_eq!(
            code(put(&store, b"homeless")),
            "STORE_PERMISSIONS",
            "{step}"
        );
        assert!(place.names().is_empty(), "{step}");
    }
}

/// A provider that says what the test tells it to.
struct Lying(Vec<u8>);

impl ArtifactProvider for Lying {
    fn put(
        &self,
        _: &[u8],
        _: &str,
        _: &str,
        _: &aiws::id::ActorId,
        _: u64,
    ) -> Result<Artifact, ArtifactError> {
        Err(ArtifactError::Suspended)
    }

    fn read(&self, _: &Artifact, _: u64) -> Result<Vec<u8>, ArtifactError> {
        Ok(self.0.clone())
    }

    fn read_digest(&self, _: &aiws::digest::Digest, _: u64) -> Result<Vec<u8>, ArtifactError> {
        Ok(self.0.clone())
    }

    fn contains(&self, _: &aiws::digest::Digest) -> Result<bool, ArtifactError> {
        Ok(true)
    }

    fn orphans(
        &self,
        _: &BTreeSet<aiws::digest::Digest>,
    ) -> Result<Vec<praxis_artifacts::Orphan>, ArtifactError> {
        Ok(Vec::new())
    }
}

/// Proves ART-6: what a provider hands out is checked again, for bytes, size and retention.
#[test]
fn art_6_a_lying_provider_is_found_out() {
    let place = Place::new();
    let artifact = put(&place.open(), b"truth").unwrap();
    for lie in [b"trutH".as_slice(), b"", b"truth and more"] {
        let lying = Lying(lie.to_vec());
        assert_eq!(
            code(read_verified(&lying, &artifact, NOW_MS)),
            "ARTIFACT_MISMATCH"
        );
        assert_eq!(code(verify(&artifact, lie)), "ARTIFACT_MISMATCH");
    }
    let honest = Lying(b"truth".to_vec());
    assert_eq!(read_verified(&honest, &artifact, NOW_MS).unwrap(), b"truth");
    let late = read_verified(&honest, &artifact, RETAIN_UNTIL_MS);
    assert_eq!(code(late), "ARTIFACT_UNAVAILABLE");
}

/// A read by digest alone gives those bytes or a coded refusal, and never more than was asked for.
#[test]
fn a_read_by_digest_is_verified_and_bounded() {
    let place = Place::new();
    let store = place.open();
    let digest = put(&store, b"truth").unwrap().digest;
    assert_eq!(store.read_digest(&digest, 5).unwrap(), b"truth");
    assert_eq!(code(store.read_digest(&digest, 4)), "SCHEMA_INVALID");
    let absent = aiws::digest::sha256(b"absent");
    assert_eq!(code(store.read_digest(&absent, 5)), "ARTIFACT_UNAVAILABLE");
    std::fs::write(place.file_of(b"truth"), b"trutH").unwrap();
    assert_eq!(code(store.read_digest(&digest, 5)), "ARTIFACT_MISMATCH");
}
