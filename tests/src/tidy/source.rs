//! Rules about Rust source: characters, openings, left-overs, purity, where redb's tables stand, length.
//! Invariant: each rule looks at shipped code with comments, literals and test items blanked, unless it says otherwise.
//! The tests below call each rule on the checkout and on a file that breaks it.

use crate::repo::SourceFile;

/// Lines above which a file needs a reason in [`LONG_FILES`].
pub const FILE_LINES_MAX: usize = 500;

/// Files over [`FILE_LINES_MAX`] that were reviewed, with the reason why each is still one idea.
pub const LONG_FILES: &[(&str, &str)] = &[];

/// Folders of the crates that know no clock, randomness, I/O, async or hash maps.
pub const PURE: &[&str] = &["crates/aiws", "crates/model", "journal-format"];

/// What a pure crate may not contain, as words of code.
const IMPURE: &[&str] = &[
    "async",
    "await",
    "std::time",
    "SystemTime",
    "Instant",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "rand",
    "thread_rng",
    "getrandom",
    "tokio",
    "HashMap",
    "HashSet",
    "RandomState",
];

/// Macros that mark unfinished work.
const LEFT_OVERS: &[&str] = &["todo!", "unimplemented!", "dbg!"];

/// Calls that turn an error into a panic.
const PANICKING: &[&str] = &[".unwrap()", ".expect("];

/// Macros that end the program when the other end of an output is gone.
const PRINTING: &[&str] = &["print!", "println!", "eprint!", "eprintln!"];

/// Source is ASCII, comments and literals included.
pub fn not_ascii(file: &SourceFile) -> Vec<String> {
    let bad = |line: &str| line.chars().find(|c| !c.is_ascii());
    lines(&file.text)
        .filter_map(|(number, line)| {
            bad(line).map(|c| format!("{}:{number}: {c:?} is not ASCII", file.path))
        })
        .collect()
}

/// A file opens with `//!`.
pub fn opening_missing(file: &SourceFile) -> Vec<String> {
    match file.text.starts_with("//!") {
        true => vec![],
        false => vec![format!("{}: does not open with a //! line", file.path)],
    }
}

/// No `todo!`, `unimplemented!` or `dbg!`, in tests neither.
pub fn left_overs(file: &SourceFile) -> Vec<String> {
    words(&file.path, &crate::lex::code_only(&file.text), LEFT_OVERS)
}

/// No `unwrap()` or `expect(` outside tests.
pub fn panicking_calls(file: &SourceFile) -> Vec<String> {
    words(&file.path, &file.shipped_code(), PANICKING)
}

/// The command line writes through functions that bear a closed or full output, never through the printing macros.
pub fn printing(file: &SourceFile) -> Vec<String> {
    match file.is_below("crates/cli/src") {
        true => words(&file.path, &file.shipped_code(), PRINTING),
        false => vec![],
    }
}

/// A pure crate contains none of what makes two runs differ.
pub fn impure(file: &SourceFile) -> Vec<String> {
    match PURE.iter().any(|folder| file.is_below(folder)) {
        true => words(&file.path, &file.shipped_code(), IMPURE),
        false => vec![],
    }
}

/// Tables of redb are defined in `crates/journal` and nowhere else; the harness that judges redb alone has one of its own.
pub fn foreign_tables(file: &SourceFile) -> Vec<String> {
    match file.is_below("crates/journal") || file.is_below("simulations/old-redb") {
        true => vec![],
        false => words(
            &file.path,
            &crate::lex::code_only(&file.text),
            &["TableDefinition", "MultimapTableDefinition"],
        ),
    }
}

/// Long files have a reason, and reasons have a long file.
pub fn long_files(files: &[SourceFile], reviewed: &[(&str, &str)]) -> Vec<String> {
    let is_long = |file: &&SourceFile| file.text.lines().count() > FILE_LINES_MAX;
    let long: Vec<&str> = files
        .iter()
        .filter(is_long)
        .map(|file| file.path.as_str())
        .collect();
    let listed = |path: &str| {
        reviewed
            .iter()
            .any(|(known, reason)| *known == path && !reason.is_empty())
    };
    let mut problems: Vec<String> = long
        .iter()
        .filter(|path| !listed(path))
        .map(|path| {
            format!("{path}: over {FILE_LINES_MAX} lines; split it, or list it with its reason")
        })
        .collect();
    let stale = reviewed.iter().filter(|(path, _)| !long.contains(path));
    problems.extend(stale.map(|(path, _)| format!("{path}: listed as long, and is not")));
    problems
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(at, line)| (at + 1, line))
}

/// Where the wanted words stand in code, each only as a whole word.
fn words(path: &str, code: &str, wanted: &[&str]) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, line) in lines(code) {
        for word in wanted {
            if contains_word(line, word) {
                problems.push(format!("{path}:{number}: has `{word}`"));
            }
        }
    }
    problems
}

fn contains_word(line: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let starts = !word.starts_with(joins) || !before.is_some_and(joins);
        let ends = !word.ends_with(joins) || !after.is_some_and(joins);
        starts && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo;
    use crate::tidy::require;

    type Rule = fn(&SourceFile) -> Vec<String>;

    const RULES: &[(&str, Rule, &str, &str, &str)] = &[
        (
            "source is ASCII",
            not_ascii,
            "crates/cli/src/a.rs",
            "//! \u{2014}\n",
            "//! -\n",
        ),
        (
            "a file opens with //!",
            opening_missing,
            "crates/cli/src/a.rs",
            "fn a() {}\n",
            "//! A.\nfn a() {}\n",
        ),
        (
            "nothing is left over",
            left_overs,
            "crates/cli/src/a.rs",
            "fn a() { todo!() }\n",
            "fn a() { } // todo!()\n",
        ),
        (
            "no unwrap or expect outside tests",
            panicking_calls,
            "crates/cli/src/a.rs",
            "fn a() { b().unwrap() }\n",
            "fn a() { b().unwrap_or(1) }\n#[test]\nfn t() { b().unwrap() }\n",
        ),
        (
            "the command line bears outputs that fail",
            printing,
            "crates/cli/src/a.rs",
            "fn a() { eprintln!(\"b\") }\n",
            "fn a() { say(\"b\") }\n#[test]\nfn t() { println!(\"b\") }\n",
        ),
        (
            "pure crates are pure",
            impure,
            "crates/model/src/a.rs",
            "use std::collections::HashMap;\n",
            "use std::collections::BTreeMap;\n",
        ),
        (
            "pure crates know no clock",
            impure,
            "journal-format/src/a.rs",
            "let t = Instant::now();\n",
            "let instant = 1; // Instant\n",
        ),
        (
            "redb's tables stand in the journal",
            foreign_tables,
            "crates/engine/src/a.rs",
            "const T: TableDefinition<u8, u8> = x;\n",
            "//! TableDefinition\n",
        ),
    ];

    #[test]
    fn house_rules_of_source_hold() {
        let files = repo::files("rs");
        assert!(
            files.len() > 20,
            "only {} Rust files were found",
            files.len()
        );
        for (name, rule, ..) in RULES {
            let problems: Vec<String> = files.iter().flat_map(rule).collect();
            require(name, &problems);
        }
        require("long files were reviewed", &long_files(&files, LONG_FILES));
    }

    #[test]
    fn house_rules_of_source_can_fail() {
        for (name, rule, path, bad, good) in RULES {
            assert!(!rule(&SourceFile::new(path, bad)).is_empty(), "{name}");
            assert_eq!(
                rule(&SourceFile::new(path, good)),
                Vec::<String>::new(),
                "{name}"
            );
        }
    }

    #[test]
    fn long_files_need_a_reason_and_reasons_a_long_file() {
        let long = [SourceFile::new("a.rs", &"//!\n".repeat(FILE_LINES_MAX + 1))];
        assert_eq!(long_files(&long, &[]).len(), 1);
        assert_eq!(long_files(&long, &[("a.rs", "")]).len(), 1);
        assert_eq!(long_files(&long, &[("a.rs", "one table")]).len(), 0);
        assert_eq!(long_files(&[], &[("a.rs", "one table")]).len(), 1);
    }
}
