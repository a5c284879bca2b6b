//! The pages of `docs/errors`, one per error code, as `praxis explain` prints them.
//! Invariant: a code has its page in the binary itself, so that it is at hand where no source is; a test holds them 1:1.
//! Called by `verbs::explain`.

macro_rules! pages {
    ($($name:ident)*) => {
        &[$((
            stringify!($name),
            include_str!(concat!("../../../../../docs/errors/", stringify!($name), ".md")),
        ),)*]
    };
}

/// Name and page, in the order of the table of codes.
#[rustfmt::skip]
const PAGES: &[(&str, &str)] = pages! {
    UNSUPPORTED_PROTOCOL SCHEMA_INVALID IDENTITY_CONFLICT REVISION_CONFLICT STALE_OWNER
    AUTHORIZATION_DENIED HUMAN_REQUIRED SCOPE_UNSUPPORTED TERMINAL_EXECUTION HOLD_ACTIVE DELIVERY_STATE
    HOLD_STATE CLAIM_EXPIRED BASIS_STALE ARTIFACT_UNAVAILABLE ARTIFACT_MISMATCH INPUT_INCOMPATIBLE
    INPUT_SET_CONFLICT JOIN_UNSETTLED HOLD_NOT_CLEAR NOT_FOUND DUPLICATE_ID STALE_EPOCH GRANT_EXCEEDED
    APPROVAL_REQUIRED APPROVAL_STALE BUDGET_EXCEEDED ATTEMPTS_EXHAUSTED DEADLINE_PASSED NODE_NOT_READY
    EVIDENCE_INVALID GRAPH_INVALID STATE_INVALID EFFECT_UNRESOLVED WAIT_MISMATCH TRIGGER_DISABLED
    TRIGGER_MISMATCH TRIGGER_EXPIRED TRIGGER_RATE TRIGGER_CONCURRENCY TRIGGER_DEPTH CONTROL_STATE
    BINDING_STALE LIMIT_EXCEEDED PROTECTED_RESERVE STORE_NOT_FOUND NOT_A_STORE STORE_TOO_NEW
    STORE_LOCKED STORE_READ_ONLY STORE_FULL STORE_CORRUPT TAIL_LOST CHAIN_BROKEN STORE_PERMISSIONS
    STORE_IO EVENT_TOO_LARGE LAUNCH_UNCONDITIONED INTERNAL_STORE BUSY ACTOR_LOST
    CHECKPOINT_AHEAD CHECKPOINT_FORKED CHECKPOINT_UNTRUSTED USAGE CODE_UNKNOWN
    REPO_NOT_FOUND REPO_DIRTY REPO_UNUSABLE RUN_NOT_FOUND RUN_AMBIGUOUS ATTEMPT_NOT_FOUND
    EVIDENCE_UNREADABLE EXPORT_FAILED BRANCH_CONFLICT CHECKPOINT_INVALID KEY_INVALID
    TERMINAL_NEEDED
};

/// The page of a code in Markdown; none for a name that is no code.
pub(super) fn markdown(name: &str) -> Option<&'static str> {
    let found = PAGES.iter().find(|(known, _)| *known == name);
    found.map(|(_, page)| *page)
}

/// The page as text for a terminal: without its title, which the caller prints, and without the marks of links.
pub(super) fn text(name: &str) -> Option<String> {
    let page = markdown(name)?;
    let mut out = String::new();
    let mut after_heading = true;
    for line in page.lines().skip(1) {
        let heading = line.strip_prefix("## ");
        let skip = line.is_empty() && after_heading;
        after_heading = heading.is_some() || skip;
        match heading {
            Some(heading) => out.push_str(heading),
            None if skip => continue,
            None if line.is_empty() => {}
            None => out.push_str(&format!("  {}", plain(line))),
        }
        out.push('\n');
    }
    Some(out)
}

/// A line without the marks of links and of words set apart.
fn plain(line: &str) -> String {
    // Commands stand as they are typed.
    if line.starts_with("    ") {
        return line.to_owned();
    }
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, label, after)) = first_link(rest) {
        out.push_str(before);
        out.push_str(label);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// What stands before the first link of a line, its words, and what comes after it.
fn first_link(line: &str) -> Option<(&str, &str, &str)> {
    let (before, from) = line.split_once('[')?;
    let (label, target) = from.split_once("](")?;
    let (_, after) = target.split_once(')')?;
    Some((before, label, after))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use aiws::error::Code;
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_code_has_its_page_and_every_page_its_code() {
        let codes: Vec<&str> = Code::all().iter().map(|code| code.name()).collect();
        let pages: Vec<&str> = PAGES.iter().map(|(name, _)| *name).collect();
        assert_eq!(pages, codes);
    }

    /// A page that names a verb which is not there sends people nowhere.
    #[test]
    fn pages_name_verbs_that_exist() {
        let command = crate::args::Cli::command();
        let verbs: BTreeSet<&str> = command
            .get_subcommands()
            .map(|verb| verb.get_name())
            .collect();
        for (name, page) in PAGES {
            let commands = page.lines().filter_map(|line| line.strip_prefix("    "));
            for command in commands.flat_map(|line| line.split("&&")) {
                let mut words = command.trim().split(' ').skip_while(|word| *word == "!");
                if words.next() != Some("praxis") {
                    continue;
                }
                let verb = match words.next() {
                    Some("--store") => words.nth(1),
                    verb => verb,
                };
                let known = verb.is_some_and(|verb| verbs.contains(verb) || verb.starts_with('-'));
                assert!(known, "{name}: praxis {verb:?}");
            }
        }
    }

    #[test]
    fn a_page_for_a_terminal_has_no_marks_of_links() {
        let text = text("STORE_LOCKED").unwrap();
        assert!(text.contains("Related\n  STORE_NOT_FOUND, BUSY"), "{text}");
        assert!(!text.contains("](") && !text.contains("## "), "{text}");
        assert_eq!(plain("[A](A.md), [B](B.md)."), "A, B.");
        assert_eq!(plain("a [b] c"), "a [b] c");
    }
}
