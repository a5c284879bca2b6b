//! Licences of everything that is built, and the reasons for what is named directly.
//! Invariant: `docs/DEPENDENCIES.md` has a row for each library that a manifest names, and for no other.
//! Its tests run over `cargo tree`, which follows features as a build does.

use std::collections::{BTreeMap, BTreeSet};

use crate::repo;
use crate::tidy::crates::Workspace;

/// Licences that may stand in the tree.
const ALLOWED: &[&str] = &[
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "Unicode-3.0",
    "Unlicense",
    "BSL-1.0",
    "CC0-1.0",
];

/// A row of `docs/DEPENDENCIES.md`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The licence column.
    pub licence: String,
    /// The column that says why.
    pub why: String,
}

/// Packages whose licence is not allowed; `tree` has lines `name vVERSION...|LICENCE|`.
pub fn forbidden(tree: &str) -> Vec<String> {
    let ours = ["(/", "(proc-macro) (/"];
    let mut problems = BTreeSet::new();
    for line in tree.lines().filter(|line| !line.trim().is_empty()) {
        let mut columns = line.split('|');
        let (package, licence) = (
            columns.next().unwrap_or_default(),
            columns.next().unwrap_or_default(),
        );
        let is_ours = ours.iter().any(|mark| package.contains(mark));
        if !is_ours && !allows(licence) {
            problems.insert(format!("{package}: licence `{licence}` is not on the list"));
        }
    }
    problems.into_iter().collect()
}

/// True when an SPDX expression can be met by licences of the list; `/` counts as OR, as in old manifests.
pub fn allows(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let Some(inner) = expression.split_once('(') else {
        return either(&expression);
    };
    // One level of brackets is all that occurs: judge the inside first and put a verdict in its place.
    let (before, rest) = inner;
    let Some((group, after)) = rest.split_once(')') else {
        return false;
    };
    let verdict = if allows(group) { "MIT" } else { "refused" };
    allows(&format!("{before}{verdict}{after}"))
}

fn either(expression: &str) -> bool {
    expression
        .split(" OR ")
        .any(|part| part.split(" AND ").all(|one| ALLOWED.contains(&one.trim())))
}

/// The rows of `docs/DEPENDENCIES.md`, by package.
pub fn entries(document: &str) -> BTreeMap<String, Entry> {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    document
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(cells)
        .filter(|row| row.len() == 5 && row[0] != "crate")
        .map(|row| {
            (
                row[0].clone(),
                Entry {
                    licence: row[2].clone(),
                    why: row[4].clone(),
                },
            )
        })
        .collect()
}

/// Libraries without a row, rows without a library, and rows that say nothing or another licence.
pub fn unexplained(
    workspace: &Workspace,
    entries: &BTreeMap<String, Entry>,
    tree: &str,
) -> Vec<String> {
    let named = workspace.external();
    let mut problems = Vec::new();
    for (name, by) in &named {
        match entries.get(*name) {
            None => problems.push(format!(
                "{name}, named by {by:?}, has no row in docs/DEPENDENCIES.md"
            )),
            Some(entry) if entry.why.is_empty() => problems.push(format!("{name} has no reason")),
            Some(entry) => problems.extend(other_licence(name, entry, tree)),
        }
    }
    let unused = entries
        .keys()
        .filter(|name| !named.contains_key(name.as_str()));
    problems.extend(unused.map(|name| format!("{name} has a row and no manifest names it")));
    problems
}

fn other_licence(name: &str, entry: &Entry, tree: &str) -> Option<String> {
    let start = format!("{name} v");
    let line = tree.lines().find(|line| line.starts_with(&start))?;
    let licence = line.split('|').nth(1)?;
    (licence != entry.licence).then(|| {
        format!(
            "{name} has the licence `{licence}`, its row says `{}`",
            entry.licence
        )
    })
}

/// What is built on this machine, one package a line: `name vVERSION|LICENCE|`.
pub fn tree() -> String {
    let arguments = [
        "tree",
        "--workspace",
        "--prefix",
        "none",
        "-e",
        "normal,build,dev",
        "-f",
        "{p}|{l}|",
    ];
    crate::tidy::crates::cargo(&arguments)
}

/// The text of `docs/DEPENDENCIES.md`.
pub fn document() -> String {
    repo::read(&repo::root().join("docs/DEPENDENCIES.md"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::crates::Dependency;
    use crate::tidy::require;

    #[test]
    fn licences_are_on_the_list_and_dependencies_have_a_reason() {
        let tree = tree();
        assert!(tree.lines().count() > 50, "cargo tree says little: {tree}");
        require("licences", &forbidden(&tree));
        require(
            "docs/DEPENDENCIES.md",
            &unexplained(&Workspace::read(), &entries(&document()), &tree),
        );
    }

    #[test]
    fn expressions_are_met_by_one_side_of_or_and_both_of_and() {
        let cases = [
            ("MIT OR GPL-3.0", true),
            ("MIT AND GPL-3.0", false),
            ("MIT/Apache-2.0", true),
            ("MPL-2.0", false),
            ("", false),
            ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
            ("(GPL-3.0 OR AGPL-3.0) AND MIT", false),
        ];
        for (expression, wanted) in cases {
            assert_eq!(allows(expression), wanted, "{expression}");
        }
        assert_eq!(
            forbidden("a v1|MIT|\nb v2 (proc-macro)|GPL-3.0| (*)\nus v0 (/x)||\n").len(),
            1
        );
    }

    #[test]
    fn a_library_and_its_row_need_each_other() {
        let workspace = |names: &[&str]| Workspace {
            packages: BTreeSet::new(),
            dependencies: names
                .iter()
                .map(|name| Dependency {
                    by: "a".into(),
                    name: (*name).into(),
                    internal: false,
                    dev: false,
                })
                .collect(),
        };
        let rows = entries(
            "| crate | version | licence | named by | why |\n|---|---|---|---|---|\n| b | 1 | MIT | a | reads |\n",
        );
        assert_eq!(
            unexplained(&workspace(&["b"]), &rows, "b v1.0.0|MIT|"),
            Vec::<String>::new()
        );
        assert_eq!(
            unexplained(&workspace(&["b"]), &rows, "b v1.0.0|ISC|").len(),
            1
        );
        assert_eq!(unexplained(&workspace(&["b", "c"]), &rows, "").len(), 1);
        assert_eq!(unexplained(&workspace(&[]), &rows, "").len(), 1);
    }
}
