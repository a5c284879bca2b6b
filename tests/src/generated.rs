//! Documents that are made from something else: compared with what would be made now, or written anew.
//! Invariant: without `PRAXIS_BLESS=1` nothing is written, and a document that differs is a failure.
//! `conformance` and `tidy::docs` call it.

use std::fs;

use crate::repo;

/// Compares `path` with `wanted`; with `PRAXIS_BLESS=1` in the environment writes it instead.
///
/// # Errors
/// One sentence that names the first line that differs and the command that writes the document anew.
pub fn check(path: &str, wanted: &str, command: &str) -> Result<(), String> {
    let file = repo::root().join(path);
    if std::env::var_os("PRAXIS_BLESS").is_some_and(|value| value == "1") {
        return fs::write(&file, wanted).map_err(|error| format!("{path}: {error}"));
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    difference(&found, wanted).map_or(Ok(()), |line| {
        Err(format!(
            "{path} is out of date ({line}); write it anew with: {command}"
        ))
    })
}

fn difference(found: &str, wanted: &str) -> Option<String> {
    if found == wanted {
        return None;
    }
    let (mut left, mut right) = (found.lines(), wanted.lines());
    let mut number = 1;
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Some("the ends of lines differ".to_owned()),
            (one, two) if one == two => number += 1,
            (one, two) => {
                let (one, two) = (one.unwrap_or("nothing"), two.unwrap_or("nothing"));
                return Some(format!("line {number} has `{one}`, expected `{two}`"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let cases = [
            ("a\nb\n", "a\nc\n", "line 2"),
            ("a\n", "a\nb\n", "line 2"),
            ("a", "a\n", "ends"),
        ];
        for (found, wanted, part) in cases {
            let said = difference(found, wanted).unwrap_or_default();
            assert!(said.contains(part), "{said}");
        }
    }
}
