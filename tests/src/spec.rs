//! The IDs that exist: requirements, rulings, scenarios and field cases, read from `docs/spec`.
//! Invariant: an ID has one row in one document, and its rule is not empty.
//! `claims`, `conformance` and `tidy::docs` ask it which IDs are known.

use std::collections::BTreeSet;

use crate::repo;

/// Number of requirement IDs; a row that gets lost shows here.
pub const REQUIREMENTS: usize = 543;
/// Number of rulings, T-01 to T-86.
pub const RULINGS: usize = 86;

/// One row of a table in `docs/spec`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The ID, e.g. `HD-02.4`.
    pub id: String,
    /// What must hold, in the words of the document.
    pub rule: String,
}

/// The documents of `docs/spec`, in their order.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Rows of `requirements.md`.
    pub requirements: Vec<Row>,
    /// Rows of `rulings.md`.
    pub rulings: Vec<Row>,
    /// Rows of `scenarios.md`, field cases at the end.
    pub scenarios: Vec<Row>,
}

impl Spec {
    /// Reads the three documents of the checkout.
    pub fn read() -> Spec {
        let load = |name: &str| rows(&repo::read(&repo::root().join("docs/spec").join(name)));
        Spec {
            requirements: load("requirements.md"),
            rulings: load("rulings.md"),
            scenarios: load("scenarios.md"),
        }
    }

    /// Every ID of every document.
    pub fn ids(&self) -> BTreeSet<&str> {
        self.all().map(|row| row.id.as_str()).collect()
    }

    /// Every row of every document.
    pub fn all(&self) -> impl Iterator<Item = &Row> {
        self.requirements
            .iter()
            .chain(&self.rulings)
            .chain(&self.scenarios)
    }
}

/// The rows `| ID | rule |` of a document.
pub fn rows(document: &str) -> Vec<Row> {
    document.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let (id, rule) = inner.split_once('|')?;
    let (id, rule) = (id.trim(), rule.trim());
    let shaped = id.contains('-')
        && id.starts_with(|c: char| c.is_ascii_uppercase())
        && id
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || "._-".contains(c));
    shaped.then(|| Row {
        id: id.to_owned(),
        rule: rule.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_one_row_with_a_rule() {
        let spec = Spec::read();
        assert_eq!(spec.requirements.len(), REQUIREMENTS);
        assert_eq!(spec.rulings.len(), RULINGS);
        assert_eq!(spec.ids().len(), spec.all().count(), "an ID has two rows");
        let empty: Vec<&Row> = spec.all().filter(|row| row.rule.is_empty()).collect();
        assert!(empty.is_empty(), "{empty:?}");
    }

    #[test]
    fn only_rows_with_an_id_count() {
        let found =
            rows("| ID | rule |\n|---|---|\n| AB-1.T2 | holds |\n| nothing | here |\ntext\n");
        assert_eq!(
            found,
            [Row {
                id: "AB-1.T2".into(),
                rule: "holds".into()
            }]
        );
    }
}
