//! Which test says that it proves which ID: the lines `/// Proves ID, ID: sentence` of the sources.
//! Invariant: a claim names IDs that exist and stands on something that runs as a test.
//! `conformance` makes its table from what is found here.

use std::collections::BTreeSet;

use crate::repo::SourceFile;

/// How many lines of comments and attributes may stand between a claim and its function.
const LINES_TO_FUNCTION_MAX: usize = 40;

/// One ID that one place claims.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Claim {
    /// The ID, e.g. `HD-02.4`.
    pub id: String,
    /// `path::function`, or the path alone for a claim of a whole file.
    pub test: String,
}

/// What a scan found: the claims that count, and what is wrong with the others.
#[derive(Clone, Default, Debug)]
pub struct Claims {
    /// Claims that count, sorted.
    pub valid: BTreeSet<Claim>,
    /// One sentence per claim that does not count, with its place.
    pub problems: Vec<String>,
}

/// Scans sources for claims; `known` are the IDs that exist.
pub fn scan(files: &[SourceFile], known: &BTreeSet<&str>) -> Claims {
    let mut claims = Claims::default();
    for file in files {
        scan_file(file, known, &mut claims);
    }
    claims
}

fn scan_file(file: &SourceFile, known: &BTreeSet<&str>, claims: &mut Claims) {
    let lines: Vec<&str> = file.text.lines().collect();
    for at in 0..lines.len() {
        let Some((marker, ids)) = claim_at(&lines, at) else {
            continue;
        };
        let place = format!("{}:{}", file.path, at + 1);
        if marker == "#" && !file.path.contains("test") {
            let problem = "a claim in Python counts in a file of tests only";
            claims.problems.push(format!("{place}: {problem}"));
            continue;
        }
        let test = match holder(&lines, at, marker) {
            Ok(Some(function)) => format!("{}::{function}", file.path),
            Ok(None) => file.path.clone(),
            Err(problem) => {
                claims.problems.push(format!("{place}: {problem}"));
                continue;
            }
        };
        for id in ids {
            if known.contains(id.as_str()) {
                let test = test.clone();
                claims.valid.insert(Claim { id, test });
            } else {
                claims
                    .problems
                    .push(format!("{place}: `{id}` is no ID of docs/spec"));
            }
        }
    }
}

/// The marker and the IDs of a claim that begins on line `at`; its list may go on in the comment lines below.
fn claim_at<'a>(lines: &[&'a str], at: usize) -> Option<(&'a str, Vec<String>)> {
    let (marker, text) = comment(lines[at])?;
    let mut list = text.strip_prefix("Proves ")?.to_owned();
    for line in &lines[at + 1..] {
        if list.contains(':') {
            break;
        }
        let (_, more) = comment(line)?;
        list.push(' ');
        list.push_str(more);
    }
    let (ids, _) = list.split_once(':')?;
    let ids: Vec<String> = ids
        .split([',', ' '])
        .filter(|id| !id.is_empty() && *id != "and")
        .map(str::to_owned)
        .collect();
    Some((marker, ids))
}

fn comment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    ["///", "//!", "//", "#"]
        .iter()
        .find_map(|marker| Some((*marker, line.strip_prefix(marker)?.trim())))
}

/// What runs for a claim: the function below it, else the function around it; `None` for a claim of the file.
fn holder(lines: &[&str], at: usize, marker: &str) -> Result<Option<String>, String> {
    if marker == "//!" {
        let any = lines.iter().any(|line| is_test_attribute(line.trim()));
        return match any {
            true => Ok(None),
            false => Err("a claim of a whole file needs a test in that file".to_owned()),
        };
    }
    if marker == "#" {
        return Ok(None);
    }
    match function_below(lines, at) {
        Some((_, attributes)) if attributes.iter().any(|a| a.starts_with("#[ignore")) => {
            Err("an ignored test proves nothing".to_owned())
        }
        Some((name, attributes)) if attributes.iter().any(|a| is_test_attribute(a)) => {
            Ok(Some(name))
        }
        Some((name, _)) => Err(format!("the claim stands above `{name}`, which is no test")),
        None => match function_around(lines, at) {
            Some(name) => Ok(Some(name)),
            None if marker == "//" => Ok(None),
            None => Err("no test function follows the claim".to_owned()),
        },
    }
}

/// The function directly below line `at`, with the attribute lines in between.
fn function_below<'a>(lines: &[&'a str], at: usize) -> Option<(String, Vec<&'a str>)> {
    let mut attributes = Vec::new();
    let mut open = 0isize;
    for line in lines[at + 1..].iter().take(LINES_TO_FUNCTION_MAX) {
        let line = line.trim();
        if open == 0 && comment(line).is_some_and(|(marker, _)| marker != "#") {
            continue;
        }
        if open == 0 && !line.starts_with("#[") {
            return function_name(line).map(|name| (name, attributes));
        }
        open += line.matches(['[', '(']).count() as isize;
        open -= line.matches([']', ')']).count() as isize;
        attributes.push(line);
    }
    None
}

/// The function whose body line `at` is in, told by indentation.
fn function_around(lines: &[&str], at: usize) -> Option<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let here = indent(lines[at]);
    lines[..at]
        .iter()
        .rev()
        .filter(|line| !line.trim().is_empty() && indent(line) < here)
        .find_map(|line| function_name(line.trim()))
}

fn function_name(line: &str) -> Option<String> {
    let mut rest = line;
    for word in ["pub(crate) ", "pub ", "async ", "const "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let rest = rest.strip_prefix("fn ")?;
    let name: String = rest
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    (!name.is_empty()).then_some(name)
}

fn is_test_attribute(line: &str) -> bool {
    line.starts_with("#[test]") || (line.starts_with("#[") && line.contains("::test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan_text(text: &str) -> Claims {
        let known = BTreeSet::from(["AB-1", "AB-2.T1"]);
        scan(&[SourceFile::new("crates/a/src/x.rs", text)], &known)
    }

    fn check(text: &str, wanted: &[(&str, &str)]) {
        let found = scan_text(text);
        assert_eq!(found.problems, Vec::<String>::new(), "{text}");
        let found: Vec<(String, String)> =
            found.valid.into_iter().map(|c| (c.id, c.test)).collect();
        let wanted: Vec<(String, String)> = wanted
            .iter()
            .map(|(id, test)| ((*id).to_owned(), format!("crates/a/src/x.rs{test}")))
            .collect();
        assert_eq!(found, wanted, "{text}");
    }

    #[test]
    fn a_claim_counts_for_the_test_below_or_around_it() {
        check(
            "/// Proves AB-1: x.\n#[test]\nfn a() {}\n",
            &[("AB-1", "::a")],
        );
        check(
            "/// Proves AB-1,\n/// AB-2.T1: x.\n/// More.\n#[test]\nfn a() {}\n",
            &[("AB-1", "::a"), ("AB-2.T1", "::a")],
        );
        check(
            "/// Proves AB-1: x.\n#[tokio::test(\n    flavor = 1\n)]\nasync fn a() {}\n",
            &[("AB-1", "::a")],
        );
        check(
            "#[test]\nfn a() {\n    let t = [\n        // Proves AB-1: x.\n        (1, 2),\n    ];\n}\n",
            &[("AB-1", "::a")],
        );
        check("//! Proves AB-1: x.\n#[test]\nfn a() {}\n", &[("AB-1", "")]);
    }

    #[test]
    fn a_claim_that_proves_nothing_is_a_problem() {
        let cases = [
            (
                "/// Proves AB-9: x.\n#[test]\nfn a() {}\n",
                "`AB-9` is no ID",
            ),
            ("/// Proves AB-1: x.\nfn a() {}\n", "no test"),
            (
                "/// Proves AB-1: x.\n#[test]\n#[ignore]\nfn a() {}\n",
                "ignored",
            ),
            ("//! Proves AB-1: x.\nfn a() {}\n", "whole file"),
            ("/// Proves AB-1: x.\nstruct A;\n", "no test function"),
        ];
        for (text, part) in cases {
            let found = scan_text(text);
            assert!(
                found.problems.iter().any(|p| p.contains(part)),
                "{text}: {found:?}"
            );
            assert!(found.valid.is_empty(), "{text}: {found:?}");
        }
        let script = SourceFile::new("journal-format/verify.py", "# Proves AB-1: x.\n");
        let found = scan(&[script], &BTreeSet::from(["AB-1"]));
        assert_eq!((found.valid.len(), found.problems.len()), (0, 1));
    }
}
