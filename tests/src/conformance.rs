//! `docs/CONFORMANCE.md`: every ID with the tests that claim it, or `open`.
//! Invariant: the document is made from `docs/spec` and the `Proves` lines of the sources, by nothing else.
//! Its test runs under `cargo test`; see `claims` for what a claim is.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::claims::{self, Claims};
use crate::repo;
use crate::spec::{Row, Spec};

/// The command that writes the document anew.
pub const COMMAND: &str = "PRAXIS_BLESS=1 cargo test -p praxis-tests conformance";
/// Where the document stands.
pub const PATH: &str = "docs/CONFORMANCE.md";

const HEAD: &str = "# Conformance

Generated; do not edit. Written by `PRAXIS_BLESS=1 cargo test -p praxis-tests conformance` from `docs/spec`
and from the lines `Proves ID: sentence` of the tests. A test fails when this page is out of date.

A row says which tests claim an ID, which is not more than those tests show. `open` means that no test claims it.
What fails once a rule of `decide` is switched off stands in [ABLATION.md](ABLATION.md); which refusal is told in which
state, and which first, in [TABLES.md](TABLES.md).
";

/// The claims of the whole checkout, Rust and Python.
pub fn claims_of_checkout(spec: &Spec) -> Claims {
    let mut files = repo::files("rs");
    files.extend(repo::files("py"));
    claims::scan(&files, &spec.ids())
}

/// The text of the document.
pub fn document(spec: &Spec, claims: &Claims) -> String {
    let mut tests: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for claim in &claims.valid {
        tests.entry(&claim.id).or_default().push(&claim.test);
    }
    let mut out = HEAD.to_owned();
    let (scenarios, cases): (Vec<Row>, Vec<Row>) = spec
        .scenarios
        .iter()
        .cloned()
        .partition(|row| !row.id.starts_with("F-"));
    table(&mut out, "Requirements", &spec.requirements, &tests);
    table(&mut out, "Scenarios", &scenarios, &tests);
    table(&mut out, "Field cases", &cases, &tests);
    table(&mut out, "Rulings", &spec.rulings, &tests);
    out
}

fn table(out: &mut String, title: &str, rows: &[Row], tests: &BTreeMap<&str, Vec<&str>>) {
    let claimed = rows
        .iter()
        .filter(|row| tests.contains_key(row.id.as_str()))
        .count();
    let open = rows.len() - claimed;
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "\n## {title}\n\n{} in all: {claimed} claimed, {open} open.\n\n",
        rows.len()
    );
    out.push_str("| ID | rule | tests, or open |\n|---|---|---|\n");
    for row in rows {
        let claims = match tests.get(row.id.as_str()) {
            Some(names) => names
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", "),
            None => "open".to_owned(),
        };
        let _ = writeln!(out, "| {} | {} | {claims} |", row.id, row.rule);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated;

    #[test]
    fn conformance_table_is_current() {
        let spec = Spec::read();
        let claims = claims_of_checkout(&spec);
        assert!(
            claims.problems.is_empty(),
            "claims that do not count:\n{}",
            claims.problems.join("\n")
        );
        let wanted = document(&spec, &claims);
        assert_eq!(generated::check(PATH, &wanted, COMMAND), Ok(()));
    }

    #[test]
    fn conformance_rows_are_claimed_or_open() {
        let row = |id: &str| Row {
            id: id.into(),
            rule: "holds".into(),
        };
        let spec = Spec {
            requirements: vec![row("AB-1"), row("AB-2")],
            rulings: vec![],
            scenarios: vec![row("F-01")],
        };
        let valid = [claims::Claim {
            id: "AB-1".into(),
            test: "x.rs::a".into(),
        }]
        .into();
        let text = document(
            &spec,
            &Claims {
                valid,
                problems: vec![],
            },
        );
        for line in [
            "| AB-1 | holds | `x.rs::a` |",
            "| AB-2 | holds | open |",
            "| F-01 | holds | open |",
            "2 in all: 1 claimed, 1 open.",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(HEAD.contains(COMMAND));
    }
}
