//! Directories that cannot be written and disks that fill up, on file systems of their own.
//! Invariant: whatever fails for want of room says so, and with room again the run goes on to its end.
//! Run by `cargo test`; needs the right to mount a file system, and says so where it has none.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::{AGENT, World, called, finished};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A directory that cannot be written: nothing is made, and reading still works.
#[test]
fn a_read_only_directory_is_refused_by_what_writes() {
    let world = finished();
    let Some(mount) = Mounted::read_only(&world.store) else {
        return;
    };
    let ran = called(&mut world.code(&["--approve-as", "tester"]));
    assert_eq!(ran.exit, Some(1), "{}", ran.err);
    assert!(ran.err.contains("STORE_READ_ONLY"), "{}", ran.err);
    assert_eq!(
        world.verb(&["show"]).exit,
        Some(0),
        "reading needs no writing"
    );
    assert_eq!(world.verb(&["verify"]).exit, Some(0));
    drop(mount);
    assert_eq!(
        world
            .git(&["for-each-ref", "refs/heads/praxis"])
            .lines()
            .count(),
        1
    );
}

/// A disk that fills up, sooner or later, stops the run with a code; with room again, the run goes on to its end.
#[test]
fn a_full_disk_stops_the_run_and_loses_nothing() {
    let mut stopped = 0;
    for room_kib in [64, 500, 700, 900, 1_000] {
        let mut world = World::new(AGENT);
        let place = world.dir.path().join("small");
        fs::create_dir(&place).unwrap();
        let Some(mount) = Mounted::tmpfs(&place, "4m") else {
            return;
        };
        world.store = place.join("store");
        let ballast = place.join("ballast");
        fs::write(&ballast, vec![0u8; (4_096 - room_kib) << 10]).unwrap();
        let ran = called(&mut world.code(&["--approve-as", "tester"]));
        if ran.exit != Some(0) {
            stopped += 1;
            // 5 where an agent had done its work and what it did could not be stored.
            assert!(
                [Some(1), Some(5)].contains(&ran.exit),
                "{room_kib} KiB: {}{}",
                ran.out,
                ran.err
            );
            // Read-only where a sync failed and there was no room for the copy that makes the log sure again.
            let said = ran.err.contains("STORE_FULL")
                || ran.err.contains("STORE_READ_ONLY")
                || ran.err.contains("No space left")
                || ran.exit == Some(5);
            assert!(said, "{room_kib} KiB: {}", ran.err);
        }
        fs::remove_file(&ballast).unwrap();
        ends_well(&world, room_kib);
        drop(mount);
    }
    assert!(
        stopped >= 3,
        "only {stopped} of the disks were full in time"
    );
}

/// With room again, the run that there is goes on; where none had begun, the command is typed again.
fn ends_well(world: &World, room_kib: usize) {
    if world.verb(&["show"]).exit == Some(0) {
        let verified = world.verb(&["verify"]);
        assert_eq!(
            verified.exit,
            Some(0),
            "{room_kib} KiB: {}{}",
            verified.out,
            verified.err
        );
        let mut resumed = world.verb(&["resume", "--approve-as", "tester"]);
        if resumed.exit == Some(5) {
            world.settle("full disk");
            resumed = world.verb(&["resume", "--approve-as", "tester"]);
        }
        assert_eq!(
            resumed.exit,
            Some(0),
            "{room_kib} KiB: {}{}",
            resumed.out,
            resumed.err
        );
    } else {
        let again = called(&mut world.code(&["--approve-as", "tester"]));
        assert_eq!(
            again.exit,
            Some(0),
            "{room_kib} KiB: {}{}",
            again.out,
            again.err
        );
    }
    assert_eq!(
        world.stages(),
        ["plan", "implement", "correct"],
        "{room_kib} KiB"
    );
}

/// A mount that ends with this value.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn tmpfs(at: &Path, size: &str) -> Option<Self> {
        Self::mount(
            &[
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size},mode=0700"),
                "tmpfs",
                at.to_str()?,
            ],
            at,
        )
    }

    fn read_only(at: &Path) -> Option<Self> {
        let path = at.to_str()?;
        let bound = Self::mount(&["--bind", path, path], at)?;
        let remounted = Command::new("mount")
            .args(["-o", "remount,ro,bind", path])
            .status();
        assert!(
            remounted.is_ok_and(|status| status.success()),
            "the mount could not be made read-only"
        );
        Some(bound)
    }

    /// None where this machine lets nobody mount; in CI that is a failure, for then nothing was shown.
    fn mount(args: &[&str], at: &Path) -> Option<Self> {
        let mounted = is_root()
            && Command::new("mount")
                .args(args)
                .status()
                .is_ok_and(|status| status.success());
        if mounted {
            return Some(Self(at.to_owned()));
        }
        assert!(
            std::env::var_os("CI").is_none(),
            "CI has to be able to mount a file system for this test"
        );
        eprintln!("left out: this test needs the right to mount a file system");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A mount that stays is seen by the removal of the folder.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
