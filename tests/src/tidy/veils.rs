//! The rule of veils: whatever keeps content in a member shows how much in its `Debug` form and never what.
//! Invariant: a member is content by its type (bytes, values of variables) or by how it is read (free text); a type
//! with one derives no `Debug`, unless it is listed with its reason. The test below calls it on the checkout.

use crate::lex;
use crate::repo::SourceFile;

/// Types that keep something that looks like content and may show it, with why.
pub const SHOWN: &[(&str, &str, &str)] = &[
    (
        "crates/cli/src/notices.rs",
        "Notice",
        "its text is a sentence of ours about a run",
    ),
    (
        "crates/cli/src/render/report.rs",
        "Report",
        "plan and patch are digests",
    ),
];

/// Types of members that are content whatever they are named.
const CONTENT: &[&str] = &[
    "Vec<u8>",
    "[u8]",
    "BTreeMap<String, String>",
    "BTreeMap<String,String>",
];

/// How free text of a record is read.
const FREE_TEXT: &[&str] = &["fields::text\"", "fields::texts\"", "fields::some_text\""];

/// Names of members that hold content as a string.
const NAMES: &[&str] = &[
    "text",
    "plan",
    "patch",
    "token",
    "claim_token",
    "secret",
    "password",
];

/// Types of shipped code that derive `Debug` and keep content.
pub fn shown_content(file: &SourceFile) -> Vec<String> {
    let code = file.shipped_code();
    let mut problems = Vec::new();
    for (at, _) in code.match_indices("#[derive(") {
        let Some(end) = code[at..].find(")]").map(|length| at + length) else {
            continue;
        };
        let derives = code[at + "#[derive(".len()..end].split(',');
        if !derives.map(str::trim).any(|one| one == "Debug") {
            continue;
        }
        let Some((name, start, end)) = body(&code, end) else {
            continue;
        };
        let listed = |one: &(&str, &str, &str)| (one.0, one.1) == (file.path.as_str(), &*name);
        if SHOWN.iter().any(listed) {
            continue;
        }
        // Literals are blank in the code and stand in the text, at the same place.
        let text = file.text.get(start..end).unwrap_or_default();
        let kept = &code[start..end];
        let by_type = CONTENT.iter().find(|word| kept.contains(**word));
        let by_reading = FREE_TEXT.iter().find(|word| text.contains(**word));
        let by_name = kept.lines().find(|line| named(line));
        let found = by_type.or(by_reading).copied().or(by_name.map(str::trim));
        if let Some(found) = found {
            problems.push(format!(
                "{}: {name} derives Debug and keeps `{found}`; use aiws::veiled!",
                file.path
            ));
        }
    }
    problems
}

/// Whether a line is a string member with the name of content.
fn named(line: &str) -> bool {
    let line = line.trim().trim_start_matches("pub ");
    let Some((name, kind)) = line.split_once(':') else {
        return false;
    };
    let kind = kind.trim().trim_end_matches(',');
    NAMES.contains(&name) && ["String", "Option<String>", "&'a str"].contains(&kind)
}

/// The name of the struct or enum behind a derive, with where its body begins and ends.
fn body(code: &str, from: usize) -> Option<(String, usize, usize)> {
    let rest = &code[from..];
    let open = rest.find(['{', ';'])?;
    let head = &rest[..open];
    let words: Vec<&str> = head.split_whitespace().collect();
    let kind = words
        .iter()
        .position(|word| ["struct", "enum"].contains(word))?;
    let name = words.get(kind + 1)?;
    let name: String = name
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    if rest[open..].starts_with(';') {
        // A tuple struct keeps its members in its head.
        return Some((name, from + head.find('(').unwrap_or(open), from + open));
    }
    let length = lex::bracket_length(&rest[open..], '{', '}')?;
    Some((name, from + open, from + open + length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo;
    use crate::tidy::require;

    fn of(text: &str) -> Vec<String> {
        shown_content(&SourceFile::new("crates/a/src/a.rs", text))
    }

    /// Proves HS-07.7: no type of shipped code that keeps bytes, free text or values of variables derives its `Debug`.
    #[test]
    fn content_is_veiled_everywhere() {
        let files = repo::files("rs");
        let shipped = |file: &&SourceFile| {
            ["crates", "journal-format"]
                .iter()
                .any(|folder| file.is_below(folder))
        };
        let problems: Vec<String> = files
            .iter()
            .filter(shipped)
            .flat_map(shown_content)
            .collect();
        require("content is veiled", &problems);
    }

    #[test]
    fn a_type_that_shows_content_is_found() {
        for bad in [
            "#[derive(Clone, Debug)]\npub struct A {\n    pub bytes: Vec<u8>,\n}\n",
            "#[derive(Debug)]\nstruct A(Arc<[u8]>);\n",
            "#[derive(Debug)]\nstruct A {\n    #[serde(deserialize_with = \"fields::some_text\")]\n    why: String,\n}\n",
            "#[derive(Debug)]\npub enum A { B { values: BTreeMap<String, String> } }\n",
            "#[derive(Debug)]\nstruct A {\n    pub text: Option<String>,\n}\n",
        ] {
            assert_eq!(of(bad).len(), 1, "{bad}");
        }
        for good in [
            "#[derive(Clone)]\npub struct A {\n    pub bytes: Vec<u8>,\n}\n",
            "#[derive(Debug)]\nstruct A {\n    // Vec<u8>\n    many: u8,\n}\nfn a(b: Vec<u8>) {}\n",
            "#[cfg(test)]\nmod t {\n    #[derive(Debug)]\n    struct A(Vec<u8>);\n}\n",
        ] {
            assert_eq!(of(good), Vec::<String>::new(), "{good}");
        }
    }
}
