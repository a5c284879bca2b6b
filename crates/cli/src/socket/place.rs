//! Where the socket of a store is.
//! Invariant: in the store, or, where that path is too long for a socket, in a private folder that the store names.
//! Called by `server` once an engine has the store, and by `client`.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use aiws::digest::sha256;
use aiws::error::{Code, Error};

use crate::coding::workspace::private_dir;
use crate::store::write_private;

/// The socket's name in the store.
const SOCKET: &str = "engine.sock";
/// The file of the store that names a socket elsewhere.
const ELSEWHERE: &str = "engine.sock.path";
/// Most bytes of a socket's path on Linux, without the closing zero.
const PATH_BYTES: usize = 107;

/// Where a client finds the socket of a store; none where no engine ever served it.
#[must_use]
pub fn find(store: &Path) -> Option<PathBuf> {
    let own = store.join(SOCKET);
    if fits(&own) {
        return own.exists().then_some(own);
    }
    let named = std::fs::read_to_string(store.join(ELSEWHERE)).ok()?;
    let path = PathBuf::from(named.trim_end());
    (path.is_absolute() && is_private(path.parent()?)).then_some(path)
}

/// Where the engine that has the store binds its socket; what a dead engine left there is removed. Only whoever has
/// the store open for writing may call this.
///
/// # Errors
///
/// `STORE_IO` with the system's message.
pub fn claim(store: &Path) -> Result<PathBuf, Error> {
    let own = store.join(SOCKET);
    let path = if fits(&own) {
        own
    } else {
        let path = short(store)?;
        write_private(
            &store.join(ELSEWHERE),
            format!("{}\n", path.display()).as_bytes(),
            true,
        )?;
        path
    };
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(of(&path, &error)),
        _ => Ok(path),
    }
}

fn fits(path: &Path) -> bool {
    path.as_os_str().len() <= PATH_BYTES
}

/// A short path that only this user can reach, the same for the same store.
fn short(store: &Path) -> Result<PathBuf, Error> {
    let uid = rustix::process::getuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = runtime
        .filter(|dir| dir.is_absolute() && is_private(dir))
        .unwrap_or_else(|| PathBuf::from("/tmp"))
        .join(format!("praxis-{uid}"));
    private_dir(&folder)?;
    if !is_private(&folder) {
        let message = format!(
            "expected {} to be a directory of yours that nobody else can enter; remove it, or set XDG_RUNTIME_DIR",
            folder.display()
        );
        return Err(Error::new(Code::StorePermissions, message));
    }
    let canonical = std::fs::canonicalize(store).map_err(|error| of(store, &error))?;
    let name = sha256(canonical.as_os_str().as_encoded_bytes()).to_string();
    Ok(folder.join(format!("{}.sock", &name[..16])))
}

/// A real directory of this user that nobody else can enter.
fn is_private(folder: &Path) -> bool {
    let uid = rustix::process::getuid().as_raw();
    std::fs::symlink_metadata(folder).is_ok_and(|found| {
        found.is_dir() && found.uid() == uid && found.permissions().mode() & 0o077 == 0
    })
}

fn of(path: &Path, error: &io::Error) -> Error {
    Error::new(Code::StoreIo, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_store_has_its_socket_inside() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = claim(dir.path()).unwrap();
        assert_eq!(path, dir.path().join(SOCKET));
        assert_eq!(find(dir.path()), None);
        std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(find(dir.path()), Some(path));
    }

    #[test]
    fn a_long_store_names_a_private_place_that_fits() {
        let dir = tempfile::TempDir::new().unwrap();
        let store = dir.path().join("s".repeat(120));
        std::fs::create_dir(&store).unwrap();
        assert_eq!(find(&store), None);
        let path = claim(&store).unwrap();
        assert!(fits(&path), "{path:?}");
        assert_eq!(find(&store), Some(path.clone()));
        assert_eq!(
            claim(&store).unwrap(),
            path,
            "the same store, the same place"
        );
        let _listening = std::os::unix::net::UnixListener::bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}
