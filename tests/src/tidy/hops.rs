//! The path of a command: each hop's files say so in their opening lines, and the architecture page names the same files.
//! Invariant: the table of the page and the openings of the sources agree in both directions, hop by hop.
//! Its tests run over every Rust file and over `docs/ARCHITECTURE.md`.

use std::collections::{BTreeMap, BTreeSet};

use crate::repo::SourceFile;

/// How many hops a command makes from the mailbox back to the reply.
pub const HOPS: usize = 5;

/// Files by hop.
pub type Hops = BTreeMap<usize, BTreeSet<String>>;

/// The hops that sources claim in their opening `//!` lines.
pub fn claimed(files: &[SourceFile]) -> Hops {
    let mut hops = Hops::new();
    for file in files {
        let opening = file.text.lines().take_while(|line| line.starts_with("//!"));
        for hop in opening.flat_map(hops_in) {
            hops.entry(hop).or_default().insert(file.path.clone());
        }
    }
    hops
}

/// The hops of the page: rows of a table that begin with a hop's number, with paths between backticks.
pub fn documented(page: &str) -> Hops {
    let mut hops = Hops::new();
    for line in page.lines() {
        let Some((number, rest)) = line.strip_prefix("| ").and_then(|row| row.split_once(" |"))
        else {
            continue;
        };
        let Ok(hop) = number.parse() else { continue };
        let paths = rest.split('`').filter(|word| word.ends_with(".rs"));
        hops.entry(hop)
            .or_default()
            .extend(paths.map(str::to_owned));
    }
    hops
}

/// Where the two differ, and hops that nobody claims.
pub fn problems(claimed: &Hops, documented: &Hops) -> Vec<String> {
    let none = BTreeSet::new();
    let of = |hops: &Hops, hop| hops.get(&hop).unwrap_or(&none).clone();
    let mut problems = Vec::new();
    for hop in 1..=HOPS {
        let (code, page) = (of(claimed, hop), of(documented, hop));
        if code.is_empty() {
            problems.push(format!("no file opens with hop {hop} of {HOPS}"));
        }
        let missing = code
            .difference(&page)
            .map(|path| format!("hop {hop}: the page does not name {path}"));
        let stale = page
            .difference(&code)
            .map(|path| format!("hop {hop}: {path} does not open with it"));
        problems.extend(missing.chain(stale));
    }
    problems
}

/// The numbers n of each `Hop n of 5` in a line.
fn hops_in(line: &str) -> Vec<usize> {
    let end = format!(" of {HOPS}");
    let after = line.split("Hop ").skip(1);
    after
        .filter_map(|rest| rest.split_once(end.as_str())?.0.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo;
    use crate::tidy::require;

    #[test]
    fn the_five_hops_are_named_in_their_files_and_on_the_page() {
        let page = repo::read(&repo::root().join("docs/ARCHITECTURE.md"));
        require(
            "the five hops",
            &problems(&claimed(&repo::files("rs")), &documented(&page)),
        );
    }

    #[test]
    fn the_rule_of_the_hops_can_fail() {
        let all = "//! Hop 1 of 5 / Hop 2 of 5: a.\n//! Hop 3 of 5: b. Hop 4 of 5, Hop 5 of 5.\n\n// Hop 9 of 5";
        let row = |hop: usize| format!("| {hop} | x | `a.rs` |\n");
        let page: String = (1..=HOPS).map(row).collect();
        let found = |text: &str, page: &str| {
            problems(
                &claimed(&[SourceFile::new("a.rs", text)]),
                &documented(page),
            )
            .len()
        };
        let cases = [
            (all, page.clone(), 0),
            // Hop 5 is claimed by nobody, and the page says otherwise.
            (&all.replace("Hop 5", "hop 5"), page.clone(), 2),
            // The page leaves a file out.
            (all, page.replace("| 3 | x | `a.rs` |", "| 3 | x | y |"), 1),
            // The page names a file that knows nothing of it.
            (
                all,
                page.replace("| 3 | x | `a.rs` |", "| 3 | x | `a.rs` and `b.rs` |"),
                1,
            ),
            ("// Hop 1 of 5", String::new(), HOPS),
        ];
        for (text, page, wanted) in cases {
            assert_eq!(found(text, &page), wanted, "{text}\n{page}");
        }
    }
}
