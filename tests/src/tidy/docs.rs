//! What documents say about the code: IDs that exist, error codes that are explained, files that are there.
//! Invariant: a document cites no unknown ID, and `docs/ERRORS.md` has every code of the one table.
//! Its tests run over every Markdown file and over the comments of the sources.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use aiws::error::Code;

use crate::repo::SourceFile;

/// Where the page of error codes stands.
pub const ERRORS_PATH: &str = "docs/ERRORS.md";
/// The command that writes it anew.
pub const ERRORS_COMMAND: &str = "PRAXIS_BLESS=1 cargo test -p praxis-tests error_codes";

const ERRORS_HEAD: &str = "# Error codes

Generated from the table of codes in `crates/aiws`; do not edit. Written by
`PRAXIS_BLESS=1 cargo test -p praxis-tests error_codes`.

An error has one code. When several rules are broken, the earliest stage answers: shape, authentication, replay,
revision, ownership, authority, gates, object, admission (ERR-PREC.1). Store and usage stand outside that order.
An error changes nothing (ERR-PREC.3). Each code has a page: when it happens, what stays untouched, what to type.
`praxis explain CODE` prints the same page without a network and without the source.

| code | namespace | stage | meaning | what to do |
|---|---|---|---|---|
";

/// The page of error codes.
pub fn errors_document() -> String {
    let mut out = ERRORS_HEAD.to_owned();
    for code in Code::all() {
        let (name, namespace, stage) = (code.name(), code.namespace().name(), code.stage().name());
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "| [`{name}`](errors/{name}.md) | {namespace} | {stage} | {} | {} |",
            code.sentence(),
            code.remedy()
        );
    }
    out
}

/// IDs that a document or the comments of a source cite and that do not exist.
pub fn unknown_ids(file: &SourceFile, known: &BTreeSet<&str>) -> Vec<String> {
    let families: BTreeSet<&str> = known.iter().filter_map(|id| id.split('-').next()).collect();
    let is_rust = file.path.ends_with(".rs");
    let mut problems = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let text = if is_rust { comment(line) } else { line };
        for id in cited(text, &families) {
            if !exists(&id, known) {
                problems.push(format!(
                    "{}:{}: `{id}` is no ID of docs/spec",
                    file.path,
                    at + 1
                ));
            }
        }
    }
    problems
}

/// An ID, or the beginning of several (`HD-02` for `HD-02.1` and its neighbours).
fn exists(id: &str, known: &BTreeSet<&str>) -> bool {
    let group = |separator: char| {
        let start = format!("{id}{separator}");
        known.iter().any(|known| known.starts_with(&start))
    };
    known.contains(id) || group('.') || group('-')
}

/// The line, when it is a comment from its first character on; IDs in literals are data of tests.
fn comment(line: &str) -> &str {
    let line = line.trim_start();
    if line.starts_with("//") { line } else { "" }
}

/// Words of the shape of an ID whose family exists: capitals and digits only.
fn cited(text: &str, families: &BTreeSet<&str>) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    text.split(|c| !is_part(c))
        .map(|word| {
            word.split("..")
                .next()
                .unwrap_or(word)
                .trim_matches(['.', '-'])
        })
        .filter(|word| {
            let Some((family, rest)) = word.split_once('-') else {
                return false;
            };
            let shaped = rest
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || "._-".contains(c));
            // One letter and no digit, as in X-RAY, is a word and no ID.
            let numbered = family.len() > 1 || rest.starts_with(|c: char| c.is_ascii_digit());
            shaped && numbered && !rest.is_empty() && families.contains(family)
        })
        .map(str::to_owned)
        .collect()
}

/// Links of a Markdown file to files of the checkout that are not there; `exists` tells by path from the root.
pub fn broken_links(file: &SourceFile, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let targets = file
        .text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target);
    targets
        .map(|target| target.split('#').next().unwrap_or(target))
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .filter(|target| !exists(&join(folder, target)))
        .map(|target| format!("{}: the link to {target} leads nowhere", file.path))
        .collect()
}

fn join(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated;
    use crate::repo;
    use crate::spec::Spec;
    use crate::tidy::require;

    #[test]
    fn documents_and_comments_cite_ids_that_exist() {
        let spec = Spec::read();
        let known = spec.ids();
        let mut files = repo::files("md");
        assert!(files.iter().any(|file| file.path == "README.md"));
        files.extend(repo::files("rs"));
        let problems: Vec<String> = files
            .iter()
            .flat_map(|file| unknown_ids(file, &known))
            .collect();
        require("IDs exist", &problems);
    }

    #[test]
    fn links_lead_somewhere() {
        let there = |path: &str| repo::root().join(path).exists();
        let problems: Vec<String> = repo::files("md")
            .iter()
            .flat_map(|file| broken_links(file, &there))
            .collect();
        require("links", &problems);
    }

    /// Proves ERR-PREC.4: each code of the table has its row on the page of errors, under its own name.
    #[test]
    fn error_codes_have_a_page() {
        let names: BTreeSet<&str> = Code::all().iter().map(|code| code.name()).collect();
        assert_eq!(
            names.len(),
            Code::all().len(),
            "a name stands twice in the table"
        );
        assert_eq!(
            generated::check(ERRORS_PATH, &errors_document(), ERRORS_COMMAND),
            Ok(())
        );
    }

    #[test]
    fn rules_of_documents_can_fail() {
        let known = BTreeSet::from(["HD-02.4", "ART-1", "X-01"]);
        let count =
            |path: &str, text: &str| unknown_ids(&SourceFile::new(path, text), &known).len();
        let cases = [
            ("a.md", "HD-02.4, HD-02, ART-1..7, ART-n, UTF-8, X-RAY", 0),
            ("a.md", "see HD-02.5.", 1),
            ("a.md", "(X-99)", 1),
            ("a.rs", "let a = \"HD-9\";", 0),
            ("a.rs", "    /// Follows HD-9.", 1),
        ];
        for (path, text, wanted) in cases {
            assert_eq!(count(path, text), wanted, "{text}");
        }
        let file = SourceFile::new("docs/a.md", "[x](../b.md#y) [z](https://e) [w](c.md)");
        assert_eq!(broken_links(&file, &|path| path == "b.md").len(), 1);
    }
}
