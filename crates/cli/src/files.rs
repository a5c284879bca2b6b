//! Reading files that others wrote: bounded, regular, and never waited for.
//! Invariant: opening never blocks, whatever stands at the path; what an agent left is read without following a link.
//! Called by the verbs and by `coding::attempt`.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path};

use aiws::error::{Code, Error};
use rustix::fs::{Mode, OFlags, open, openat};

/// What every opening has: a named pipe would block until somebody writes into it.
const READING: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

/// Reads a regular file of at most `bound` bytes that a person named; links are followed, as for any program.
///
/// # Errors
///
/// The given code, naming the path and what is wrong.
pub fn read_bounded(path: &Path, bound: u64, code: Code) -> Result<Vec<u8>, Error> {
    let opened = open(path, READING, Mode::empty()).map_err(io::Error::from);
    read(opened.map(File::from), path, bound, code)
}

/// Reads a regular file of at most `bound` bytes that a process left below `root`. No link below it is followed: the
/// file has to be what stands there, not what the process points at.
///
/// # Errors
///
/// The given code, naming the path and what is wrong.
pub fn read_left(root: &Path, path: &Path, bound: u64, code: Code) -> Result<Vec<u8>, Error> {
    read(open_below(root, path), path, bound, code)
}

/// Reads at most `bound` bytes of a file that a process left below `root`, from a place in it; nothing where it ends
/// before that, or is not there yet.
///
/// # Errors
///
/// `STORE_IO`, naming the path and what is wrong.
pub fn read_from(root: &Path, path: &Path, at: u64, bound: u64) -> Result<Vec<u8>, Error> {
    use std::io::{Seek, SeekFrom};
    let failed = |error: io::Error| {
        Error::new(
            Code::StoreIo,
            format!("expected a readable file, {}: {error}", path.display()),
        )
    };
    let mut file = match open_below(root, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.map_err(failed)?,
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is no regular file")));
    }
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(at)).map_err(failed)?;
    file.take(bound).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn open_below(root: &Path, path: &Path) -> io::Result<File> {
    let outside = || io::Error::other("it does not lie where it was expected");
    let mut steps = path.strip_prefix(root).map_err(|_| outside())?.components();
    let mut folder = open(root, READING | OFlags::DIRECTORY, Mode::empty())?;
    let mut step = steps.next().ok_or_else(outside)?;
    loop {
        let Component::Normal(name) = step else {
            return Err(outside());
        };
        let next = steps.next();
        let flags = match next {
            Some(_) => READING | OFlags::NOFOLLOW | OFlags::DIRECTORY,
            None => READING | OFlags::NOFOLLOW,
        };
        let opened = openat(&folder, name, flags, Mode::empty()).map_err(|error| match error {
            rustix::io::Errno::LOOP => io::Error::other("it is a symbolic link"),
            error => error.into(),
        })?;
        match next {
            Some(next) => (folder, step) = (opened, next),
            None => return Ok(opened.into()),
        }
    }
}

fn read(opened: io::Result<File>, path: &Path, bound: u64, code: Code) -> Result<Vec<u8>, Error> {
    let path = path.display();
    let failed =
        |error: &io::Error| Error::new(code, format!("expected a readable file, {path}: {error}"));
    let file = opened.map_err(|error| failed(&error))?;
    if !file.metadata().map_err(|error| failed(&error))?.is_file() {
        let message = format!("expected a regular file, found something else at {path}");
        return Err(Error::new(code, message));
    }
    let mut bytes = Vec::new();
    file.take(bound.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| failed(&error))?;
    if bytes.len() as u64 > bound {
        let message = format!("expected at most {bound} bytes, found more in {path}");
        return Err(Error::new(code, message));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_within_the_bound_are_read_and_nothing_blocks() {
        let dir = tempfile::TempDir::new().unwrap();
        let root = dir.path().join("root");
        let path = |name: &str| root.join(name);
        fs::create_dir_all(path("inside")).unwrap();
        fs::write(path("inside/plain"), "12345").unwrap();
        fs::write(dir.path().join("outside"), "victim").unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        fs::write(dir.path().join("folder/plain"), "victim").unwrap();
        symlink("../outside", path("link")).unwrap();
        symlink("../folder", path("way")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        let left = |name: &str, bound| {
            read_left(&root, &path(name), bound, Code::StoreIo).map_err(|error| error.message)
        };
        assert_eq!(left("inside/plain", 5).unwrap(), b"12345");
        let refused = [
            ("inside/plain", 4, "at most 4 bytes"),
            ("inside", 5, "regular file"),
            ("pipe", 5, "regular file"),
            ("link", 9, "symbolic link"),
            ("way/plain", 9, "expected a readable file"),
            ("../outside", 9, "not lie where"),
            ("none", 9, "expected a readable file"),
        ];
        for (name, bound, word) in refused {
            let message = left(name, bound).unwrap_err();
            assert!(message.contains(word), "{name}: {message}");
        }
        let named = |name: &str| read_bounded(&path(name), 9, Code::StoreIo);
        assert_eq!(named("link").unwrap(), b"victim");
        assert!(named("pipe").unwrap_err().message.contains("regular file"));
    }
}
