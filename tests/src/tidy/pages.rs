//! The pages of error codes in `docs/errors`: one per code, each with the same sections.
//! Invariant: a page is short enough to be read where the error is met, and leaves no section out.
//! Its tests run over the folder and the table of codes.

use std::collections::BTreeSet;

use crate::repo::SourceFile;

/// Where the pages are.
pub const FOLDER: &str = "docs/errors";

/// The sections of a page after the paragraph that says what the code means, in this order.
pub const SECTIONS: &[&str] = &[
    "When it happens",
    "What stays untouched",
    "What to do",
    "Example",
    "Related",
];

/// Most lines of a page: more belongs into a guide.
const LINES: usize = 60;

/// The name of a page's code; none for another file.
pub fn code_of(file: &SourceFile) -> Option<&str> {
    let name = file.path.strip_prefix(FOLDER)?.strip_prefix('/')?;
    name.strip_suffix(".md")
}

/// Codes without a page, and pages without a code.
pub fn unmatched(files: &[SourceFile], codes: &BTreeSet<&str>) -> Vec<String> {
    let pages: BTreeSet<&str> = files.iter().filter_map(code_of).collect();
    let missing = codes.difference(&pages);
    let missing =
        missing.map(|code| format!("{FOLDER}/{code}.md: the code has no page; write one"));
    let foreign = pages.difference(codes);
    let foreign = foreign.map(|page| format!("{FOLDER}/{page}.md: no code has this name"));
    missing.chain(foreign).collect()
}

/// What a page lacks.
pub fn lacks(file: &SourceFile) -> Vec<String> {
    let Some(code) = code_of(file) else {
        return Vec::new();
    };
    let problem = |what: &str| format!("{}: {what}", file.path);
    let mut problems = Vec::new();
    let mut parts = file.text.split("\n## ");
    let head = parts.next().unwrap_or_default();
    let meaning = head.strip_prefix(&format!("# {code}\n"));
    if meaning.is_none_or(|text| text.trim().len() < 40) {
        problems.push(problem("it has to begin with its name and what it means"));
    }
    let parts: Vec<(&str, &str)> = parts
        .map(|part| part.split_once('\n').unwrap_or((part, "")))
        .collect();
    let found: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
    if found != SECTIONS {
        problems.push(problem(&format!(
            "expected the sections {SECTIONS:?}, found {found:?}"
        )));
    }
    for (name, text) in &parts {
        if text.trim().is_empty() {
            problems.push(problem(&format!("the section {name:?} is empty")));
        }
    }
    let example = parts.iter().find(|(name, _)| *name == "Example");
    let shows = |text: &str| text.contains(code) || text.trim_start().starts_with("None yet");
    if !example.is_some_and(|(_, text)| shows(text)) {
        problems.push(problem("the example shows no message with the code"));
    }
    if file.text.lines().count() > LINES {
        problems.push(problem(&format!("it has more than {LINES} lines")));
    }
    problems
}

#[cfg(test)]
mod tests {
    use aiws::error::Code;

    use super::*;
    use crate::repo;
    use crate::tidy::require;

    fn pages() -> Vec<SourceFile> {
        let files = repo::files("md").into_iter();
        files.filter(|file| file.is_below(FOLDER)).collect()
    }

    #[test]
    fn every_error_code_has_a_page_of_its_own() {
        let codes = Code::all().iter().map(|code| code.name()).collect();
        require("pages of codes", &unmatched(&pages(), &codes));
    }

    #[test]
    fn pages_of_codes_have_all_sections() {
        let pages = pages();
        assert!(!pages.is_empty());
        let problems: Vec<String> = pages.iter().flat_map(lacks).collect();
        require("sections of pages", &problems);
    }

    #[test]
    fn rules_of_pages_can_fail() {
        let codes = BTreeSet::from(["A", "B"]);
        let files = [
            SourceFile::new("docs/errors/B.md", ""),
            SourceFile::new("docs/errors/C.md", ""),
        ];
        assert_eq!(unmatched(&files, &codes).len(), 2);
        let sections: String = SECTIONS
            .iter()
            .map(|name| format!("\n## {name}\n\nA text.\n"))
            .collect();
        let meaning = "What it means, in a sentence that says something.";
        let whole = format!("# A\n\n{meaning}\n{sections}")
            .replace("Example\n\nA text", "Example\n\n    A: no");
        let count = |text: &str| lacks(&SourceFile::new("docs/errors/A.md", text)).len();
        assert_eq!(count(&whole), 0);
        assert_eq!(count(&whole.replace(meaning, "")), 1);
        assert_eq!(count(&whole.replace("Related", "Else")), 1);
        assert_eq!(count(&whole.replace("    A: no", "no")), 1);
        assert_eq!(count(&format!("{whole}{}", "x\n".repeat(60))), 1);
    }
}
