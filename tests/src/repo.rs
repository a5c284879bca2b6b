//! The checkout as data: its root, its Rust and Markdown files, and which Rust is test code.
//! Invariant: the order of files is the order of their paths; build output, hidden folders and projects in `examples` are never read.
//! Every rule of `tidy` and the scan of `claims` read the repository through it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::lex;

/// One text file of the checkout.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Path from the root, with `/` between the parts.
    pub path: String,
    /// The text as it stands on disk.
    pub text: String,
    /// True when the whole file is compiled for tests or benchmarks alone.
    pub test_only: bool,
}

impl SourceFile {
    /// A file that exists in memory only, for the cases that break a rule.
    pub fn new(path: &str, text: &str) -> SourceFile {
        SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
            test_only: lives_in_test_folder(path),
        }
    }

    /// The code that ships: comments, literals and test items blanked, every line in its place.
    pub fn shipped_code(&self) -> String {
        if self.test_only {
            return String::new();
        }
        lex::without_test_items(&lex::code_only(&self.text))
    }

    /// True when the path lies below `folder`.
    pub fn is_below(&self, folder: &str) -> bool {
        self.path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'))
    }
}

/// The root of the checkout.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Every file of the checkout that ends in `.extension`, sorted by path.
///
/// # Panics
/// When the checkout cannot be read: no rule can then be said to hold.
pub fn files(extension: &str) -> Vec<SourceFile> {
    let root = root();
    let mut paths = Vec::new();
    walk(&root, extension, &mut paths);
    paths.sort();
    let mut files: Vec<SourceFile> = paths
        .iter()
        .map(|path| {
            let relative = path.strip_prefix(&root).unwrap_or(path);
            SourceFile::new(&relative.to_string_lossy().replace('\\', "/"), &read(path))
        })
        .collect();
    mark_test_modules(&mut files);
    files
}

/// Reads a text file of the checkout.
///
/// # Panics
/// When it cannot be read, with its path.
pub fn read(path: &Path) -> String {
    match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

fn walk(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => panic!("{}: {error}", folder.display()),
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_symlink() || name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            if !is_build_output(&path, &name) && !is_example_material(&path) {
                walk(&path, extension, found);
            }
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
}

fn is_build_output(path: &Path, name: &str) -> bool {
    name == "target" || path.join("CACHEDIR.TAG").exists()
}

/// A folder below `examples` is a project that a user of Praxis might have, not source of ours.
fn is_example_material(path: &Path) -> bool {
    path.parent()
        .is_some_and(|folder| folder.ends_with("examples"))
}

fn lives_in_test_folder(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.contains("/benches/")
}

/// `#[cfg(test)] mod name;` makes the file of that module, and what lies below it, test code.
fn mark_test_modules(files: &mut [SourceFile]) {
    let mut stems = Vec::new();
    for file in files.iter() {
        let folder = module_folder(&file.path);
        for name in lex::test_modules(&lex::code_only(&file.text)) {
            stems.push(format!("{folder}/{name}"));
        }
    }
    for file in files.iter_mut() {
        let hit = |stem: &String| {
            file.path
                .strip_prefix(stem.as_str())
                .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        if stems.iter().any(hit) {
            file.test_only = true;
        }
    }
}

/// Where the child modules of a file live: beside `lib.rs`, `main.rs` and `mod.rs`, else in a folder of its name.
fn module_folder(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        _ => path.trim_end_matches(".rs").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_declared_for_tests_marks_its_file_and_what_lies_below() {
        let mut files = vec![
            SourceFile::new(
                "crates/a/src/queue.rs",
                "#[cfg(all(test, loom))]\nmod models;\n",
            ),
            SourceFile::new("crates/a/src/queue/models.rs", ""),
            SourceFile::new("crates/a/src/queue/models/deep.rs", ""),
            SourceFile::new("crates/a/src/models.rs", ""),
        ];
        mark_test_modules(&mut files);
        let marked: Vec<bool> = files.iter().map(|file| file.test_only).collect();
        assert_eq!(marked, [false, true, true, false]);
    }

    #[test]
    fn the_checkout_contains_this_file() {
        assert!(
            files("rs")
                .iter()
                .any(|file| file.path == "tests/src/repo.rs")
        );
    }
}
