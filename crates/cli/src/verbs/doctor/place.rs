//! What `doctor` looks at in the store's directory: modes, room, lock, socket, leftovers of kills.
//! Invariant: reads names and facts of files; makes, changes and removes none. Called by `doctor`.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use aiws::error::{Code, Error};
use rustix::process::{Pid, test_kill_process};

use super::Finding;
use crate::render::{escape, quoted};
use crate::verbs::clean::amount;

/// With less room than this a run can meet a full disk: a clone, a patch and a transcript of ordinary size.
const ROOM_BYTES: u64 = 256 << 20;
/// How many names a finding lists.
const LISTED: usize = 3;

/// Looks at the directory, which is there.
pub fn look(store: &Path) -> Vec<Finding> {
    vec![
        modes(store),
        stored_modes(&store.join("artifacts")),
        room(store),
        leftovers(store),
    ]
}

fn modes(store: &Path) -> Finding {
    let name = "modes";
    let user = rustix::process::geteuid().as_raw();
    match fs::metadata(store) {
        Ok(facts) if facts.uid() != user => {
            return Finding::bad(
                name,
                &format!(
                    "the directory belongs to user {}, this is user {user}",
                    facts.uid()
                ),
                &format!("chown -R {user} {}", shown(store)),
            );
        }
        Ok(facts) if facts.mode() & 0o077 != 0 => {
            return Finding::bad(
                name,
                &format!("expected mode 0700, found {:04o}", facts.mode() & 0o777),
                &format!("chmod 700 {}", shown(store)),
            );
        }
        Ok(_) => {}
        Err(error) => return Finding::bad(name, &error.to_string(), "look at the path"),
    }
    let open = open_to_others(store);
    match open.is_empty() {
        true => Finding::ok(name, "the directory and its files are this user's alone"),
        false => Finding::warn(
            name,
            &format!("open to others: {}", listed(&open)),
            &format!("chmod -R go-rwx {}", shown(store)),
        ),
    }
}

fn stored_modes(artifacts: &Path) -> Finding {
    let name = "artifacts";
    let facts = match fs::symlink_metadata(artifacts) {
        Ok(facts) => facts,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Finding::warn(
                name,
                "there is no directory artifacts",
                "copy it from a backup, if there ever was a run",
            );
        }
        Err(error) => return Finding::bad(name, &error.to_string(), "look at the path"),
    };
    if !facts.is_dir() || facts.mode() & 0o077 != 0 {
        return Finding::bad(
            name,
            "expected a directory of mode 0700",
            &format!("chmod 700 {}", shown(artifacts)),
        );
    }
    let open = open_to_others(artifacts);
    match open.is_empty() {
        true => Finding::ok(name, "stored bytes are this user's alone"),
        false => Finding::warn(
            name,
            &format!("open to others: {}", listed(&open)),
            &format!("chmod -R go-rwx {}", shown(artifacts)),
        ),
    }
}

/// Names of files in a directory that others can read or write, or that belong to somebody else.
fn open_to_others(directory: &Path) -> Vec<String> {
    let user = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut open: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| {
            let facts = fs::symlink_metadata(entry.path());
            // A socket's mode says who may connect; it is 0600 as files are.
            facts.is_ok_and(|facts| facts.mode() & 0o077 != 0 || facts.uid() != user)
        })
        .map(|entry| escape::line(&entry.file_name().to_string_lossy()))
        .collect();
    open.sort();
    open
}

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(LISTED);
    let shown: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn room(store: &Path) -> Finding {
    let name = "room";
    let Ok(facts) = rustix::fs::statvfs(store) else {
        return Finding::warn(name, "the file system does not say", "look with df");
    };
    let left = facts.f_bavail.saturating_mul(facts.f_frsize);
    let found = format!("{} are left", amount(left));
    match left {
        0 => Finding::bad(
            name,
            &found,
            "free space; praxis clean --dry-run says what would help",
        ),
        left if left < ROOM_BYTES => Finding::warn(
            name,
            &found,
            "free space; praxis clean --dry-run says what would help",
        ),
        _ => Finding::ok(name, &found),
    }
}

fn leftovers(store: &Path) -> Finding {
    let name = "leftovers";
    let count = |directory: &Path, is_left: &dyn Fn(&str) -> bool| {
        let entries = fs::read_dir(directory).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| is_left(name)).count()
    };
    let files = count(store, &|name| name.ends_with(".unfinished"))
        + count(&store.join("artifacts"), &|name| {
            name.starts_with("temporary-")
        });
    match files {
        0 => Finding::ok(name, "no file of an interrupted write"),
        files => Finding::ok(
            name,
            &format!("{files} files of interrupted writes; the next opening removes them"),
        ),
    }
}

/// Who has the store, from the refusal that another opener met.
pub fn holder(error: &Error) -> Finding {
    let name = "lock";
    let said = error.message.clone();
    let process = said
        .split("process ")
        .nth(1)
        .and_then(|rest| rest.split(',').next())
        .and_then(|number| number.parse().ok())
        .and_then(Pid::from_raw);
    let alive = process.map(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH));
    match alive {
        Some(true) => Finding::ok(name, &format!("{said}; it is alive")),
        Some(false) => Finding::warn(
            name,
            &format!("{said}; that process is gone, so one that it started has the lock"),
            "find it with: fuser -v STORE/engine.lock, and end it",
        ),
        None => Finding::ok(name, &said),
    }
}

/// Whether the store's socket, if there is one, has an engine behind it.
pub fn socket(store: &Path, locked: bool) -> Finding {
    let name = "socket";
    let path = store.join("engine.sock");
    match fs::symlink_metadata(&path) {
        Err(_) if locked => {
            return Finding::ok(
                name,
                "none in the store; it may be elsewhere, or whoever has the store serves none",
            );
        }
        Err(_) => return Finding::ok(name, "none, and no engine has the store"),
        Ok(facts) if !facts.file_type().is_socket() => {
            return Finding::bad(
                name,
                "engine.sock is not a socket",
                &format!("find out who put it there, and: rm {}", shown(&path)),
            );
        }
        Ok(_) => {}
    }
    match (UnixStream::connect(&path), locked) {
        (Ok(_), _) => Finding::ok(name, "an engine answers on it"),
        (Err(_), false) => Finding::ok(
            name,
            "left by an engine that was killed; the next one takes its place",
        ),
        (Err(error), true) => Finding::warn(
            name,
            &format!("the store is in use and nobody answers on its socket: {error}"),
            "wait a moment and look again; an engine that hangs can be stopped",
        ),
    }
}

/// What an opening for reading found, where it found something wrong.
pub fn unopened(error: &Error) -> Finding {
    let todo = match error.code() {
        Code::StoreCorrupt | Code::TailLost | Code::ChainBroken => {
            "keep the store as it is; praxis verify names the place; use a backup"
        }
        code => code.remedy(),
    };
    Finding::bad(
        "store",
        &format!("{}: {}", error.code(), error.message),
        todo,
    )
}

fn shown(path: &Path) -> String {
    quoted(&path.display().to_string())
}
