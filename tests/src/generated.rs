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

/// Compares the named parts of a document, each between `<!-- begin NAME -->` and `<!-- end NAME -->`, with what they
/// should be, as [`check`] does for a whole document. The rest is anybody's to write.
///
/// # Errors
/// As [`check`]; also where a part has no place in the document.
pub fn check_parts(path: &str, parts: &[(String, String)], command: &str) -> Result<(), String> {
    let found = fs::read_to_string(repo::root().join(path)).unwrap_or_default();
    check(path, &with_parts(path, found, parts)?, command)
}

fn with_parts(path: &str, mut text: String, parts: &[(String, String)]) -> Result<String, String> {
    for (name, wanted) in parts {
        let (begin, end) = (
            format!("<!-- begin {name} -->\n"),
            format!("<!-- end {name} -->"),
        );
        let place = text.find(&begin).and_then(|start| {
            let start = start + begin.len();
            Some(start..start + text[start..].find(&end)?)
        });
        let place = place.ok_or_else(|| format!("{path} has no place for {name}"))?;
        text.replace_range(place, &format!("\n{wanted}\n"));
    }
    Ok(text)
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
    use super::{difference, with_parts};

    #[test]
    fn a_part_is_written_between_its_marks() {
        let text = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n".to_owned();
        let part = |name: &str| vec![(name.to_owned(), "new".to_owned())];
        let wanted = "a\n<!-- begin x -->\n\nnew\n<!-- end x -->\nb\n";
        assert_eq!(
            with_parts("p", text.clone(), &part("x")).as_deref(),
            Ok(wanted)
        );
        assert!(with_parts("p", text, &part("y")).is_err());
    }

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
