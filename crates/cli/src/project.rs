//! `praxis.toml`: what a repository says about how it is worked on; options that are typed win.
//! Invariant: it is read once, when a run begins, from the commit that the run starts from, and never from a tree that
//! an agent can write; an unknown key or a wrong value refuses. Called by the verb `code`.

use std::path::Path;

use aiws::error::{Code, Error};
use serde::Deserialize;
use toml::Spanned;

use crate::args::Code as Args;
use crate::coding::git::Git;
use crate::coding::source::Source;
use crate::limits::{MAX_CORRECTIONS, PROJECT_BYTES, TIMEOUT_SECONDS};
use crate::render::escape;

/// The file's name, at the top of the repository.
pub const FILE: &str = "praxis.toml";

/// What the file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Project {
    agent: Option<Spanned<String>>,
    check: Option<Spanned<String>>,
    max_corrections: Option<Spanned<i64>>,
    budget: Option<Spanned<i64>>,
    timeout_seconds: Option<Spanned<i64>>,
    env: Option<Vec<String>>,
    secrets: Option<Vec<String>>,
    notify: Option<Spanned<String>>,
}

/// Fills in what was not typed from the repository's `praxis.toml`, and says what came from it, a line each. A run that
/// begins again where another one ended (`--from`) has that one's choices, and the file has no say.
///
/// # Errors
///
/// `USAGE` naming line and column of what is wrong in the file, or why it is not read at all; `REPO_UNUSABLE` where git
/// cannot read the commit.
pub fn settle(args: &mut Args, source: &Source) -> Result<Vec<String>, Error> {
    if args.from.is_some() {
        return Ok(Vec::new());
    }
    match committed(source)? {
        Some(text) => fill(args, &text),
        None => Ok(Vec::new()),
    }
}

/// The file as the commit has it.
fn committed(source: &Source) -> Result<Option<String>, Error> {
    let listed = Git::inside(&source.root)
        .args(["ls-tree", "-l", &source.base, "--", FILE])
        .line()?;
    let mut words = listed.split_whitespace();
    let (mode, kind) = (words.next(), words.next());
    let size = words.nth(1).and_then(|size| size.parse::<u64>().ok());
    let Some(mode) = mode else {
        return match source.root.join(FILE).symlink_metadata() {
            Err(_) => Ok(None),
            Ok(_) => Err(refused(
                "it is ignored by git and not in the commit; commit it (git add -f praxis.toml), or remove it",
            )),
        };
    };
    match (mode, kind) {
        ("100644" | "100755", Some("blob")) => {}
        ("120000", _) => return Err(refused("it is a symbolic link; put the file itself there")),
        _ => return Err(refused("it is not a file")),
    }
    match size {
        Some(size) if size <= PROJECT_BYTES => {}
        _ => return Err(refused(&format!("it has more than {PROJECT_BYTES} bytes"))),
    }
    let bytes = Git::inside(&source.root)
        .args(["cat-file", "blob"])
        .args([format!("{}:{FILE}", source.base)])
        .run()?;
    let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8"))?;
    Ok(Some(text))
}

/// Takes what was not typed, and says what it took.
fn fill(args: &mut Args, text: &str) -> Result<Vec<String>, Error> {
    let project: Project = toml::from_str(text).map_err(|error| {
        let at = error.span().map(|span| span.start);
        misplaced(text, at, error.message())
    })?;
    let mut taken = Vec::new();
    let mut take = |name: &str, value: String| {
        taken.push(format!("{name} = {}", escape::line(&value)));
    };
    let command = |given: &Option<Spanned<String>>, name: &str| match given {
        Some(value) if value.as_ref().trim().is_empty() => {
            let what = format!("{name}: expected a command, found an empty text");
            Err(misplaced(text, Some(value.span().start), &what))
        }
        Some(value) => Ok(Some(value.as_ref().clone())),
        None => Ok(None),
    };
    for (typed, given, name) in [
        (&mut args.agent, &project.agent, "agent"),
        (&mut args.check, &project.check, "check"),
        (&mut args.notify, &project.notify, "notify"),
    ] {
        // What is wrong is said also where it is not needed.
        let given = command(given, name)?;
        if let (None, Some(value)) = (&typed, given) {
            take(name, value.clone());
            *typed = Some(value);
        }
    }
    let number = |given: &Option<Spanned<i64>>, name: &str, least: u64, most: u64| {
        let Some(value) = given else {
            return Ok(None);
        };
        let found = u64::try_from(*value.as_ref()).ok();
        match found.filter(|found| (least..=most).contains(found)) {
            Some(found) => Ok(Some(found)),
            None => {
                let what = match most {
                    u64::MAX => format!(
                        "{name}: expected at least {least}, found {}",
                        value.as_ref()
                    ),
                    most => format!(
                        "{name}: expected {least} to {most}, found {}",
                        value.as_ref()
                    ),
                };
                Err(misplaced(text, Some(value.span().start), &what))
            }
        }
    };
    let most = u64::from(MAX_CORRECTIONS);
    let corrections = number(&project.max_corrections, "max_corrections", 0, most)?;
    if let (None, Some(value)) = (args.max_corrections, corrections) {
        take("max_corrections", value.to_string());
        args.max_corrections = u32::try_from(value).ok();
    }
    let budget = number(&project.budget, "budget", 1, u64::MAX)?;
    if let (None, Some(value)) = (args.budget, budget) {
        take("budget", value.to_string());
        args.budget = Some(value);
    }
    let timeout = number(
        &project.timeout_seconds,
        "timeout_seconds",
        1,
        TIMEOUT_SECONDS,
    )?;
    if let (None, Some(value)) = (args.timeout, timeout) {
        take("timeout_seconds", value.to_string());
        args.timeout = Some(value);
    }
    for (typed, given, name) in [
        (&mut args.env, project.env, "env"),
        (&mut args.secret, project.secrets, "secrets"),
    ] {
        if let Some(names) = given.filter(|names| typed.is_empty() && !names.is_empty()) {
            take(name, names.join(", "));
            *typed = names;
        }
    }
    Ok(taken)
}

/// What is wrong, at its line and column, both from 1.
fn misplaced(text: &str, at: Option<usize>, what: &str) -> Error {
    let place = at.and_then(|at| text.get(..at)).map(|before| {
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        format!("line {line}, column {column}: ")
    });
    refused(&format!(
        "{}{}",
        place.unwrap_or_default(),
        escape::line(what)
    ))
}

fn refused(what: &str) -> Error {
    let message = format!("{FILE}: {what}");
    Error::new(Code::Usage, message).with("file", FILE)
}

/// Says what came from the file.
pub fn say(taken: &[String], root: &Path) {
    if taken.is_empty() {
        return;
    }
    let from = escape::line(&root.join(FILE).display().to_string());
    crate::render::say(&format!("from {from}"));
    for line in taken {
        crate::render::say(&format!("  {line}"));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Verb};

    fn typed(more: &[&str]) -> Args {
        let all = [&["praxis", "code", "--repo", ".", "--task", "t"], more].concat();
        match Cli::try_parse_from(all).unwrap().verb {
            Verb::Code(args) => args,
            other => panic!("{other:?}"),
        }
    }

    const WHOLE: &str = "\
# how this repository is worked on
agent = \"my-agent --yes\"
check = \"make test\"
max_corrections = 3
budget = 9
timeout_seconds = 600
env = [\"MY_KEY\", \"LANG\"]
secrets = [\"MY_KEY\"]
notify = \"notify-send praxis\"
";

    #[test]
    fn what_was_not_typed_comes_from_the_file() {
        let mut args = typed(&[]);
        let taken = fill(&mut args, WHOLE).unwrap();
        assert_eq!(taken.len(), 8, "{taken:?}");
        assert_eq!(args.agent.as_deref(), Some("my-agent --yes"));
        assert_eq!(args.check.as_deref(), Some("make test"));
        let numbers = (args.max_corrections, args.budget, args.timeout);
        assert_eq!(numbers, (Some(3), Some(9), Some(600)));
        assert_eq!(args.env, ["MY_KEY", "LANG"]);
        assert_eq!(args.secret, ["MY_KEY"]);
        assert_eq!(args.notify.as_deref(), Some("notify-send praxis"));
    }

    #[test]
    fn what_was_typed_wins() {
        let flags = [
            "--agent",
            "a",
            "--check",
            "c",
            "--max-corrections",
            "0",
            "--budget",
            "2",
            "--timeout",
            "5",
            "--env",
            "X",
            "--secret",
            "Y",
            "--notify",
            "n",
        ];
        let mut args = typed(&flags);
        assert_eq!(fill(&mut args, WHOLE).unwrap(), Vec::<String>::new());
        assert_eq!(args.agent.as_deref(), Some("a"));
        assert_eq!(
            (args.max_corrections, args.budget, args.timeout),
            (Some(0), Some(2), Some(5))
        );
        assert_eq!(
            (args.env, args.secret),
            (vec!["X".to_owned()], vec!["Y".to_owned()])
        );
        assert!(fill(&mut typed(&[]), "").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_named_by_its_place() {
        let cases = [
            ("agent = 1\n", "line 1, column 9"),
            ("check = \"x\"\nagnet = \"y\"\n", "line 2, column 1"),
            (
                "max_corrections = 21\n",
                "line 1, column 19: max_corrections: expected 0 to 20, found 21",
            ),
            ("max_corrections = -1\n", "expected 0 to 20, found -1"),
            (
                "\n  budget = 0",
                "line 2, column 12: budget: expected at least 1",
            ),
            ("timeout_seconds = 86401", "expected 1 to 86400"),
            ("timeout_seconds = 1.5", "line 1, column 19"),
            ("agent = \"  \"", "empty text"),
            ("env = \"X\"", "line 1, column 7"),
            ("env = [1]", "line 1"),
            ("agent = \"a\"\nagent = \"b\"", "line 2"),
            ("agent = \"a", "line 1"),
            ("[agent]\nx = 1", "line 1"),
        ];
        for (text, part) in cases {
            let error = fill(&mut typed(&[]), text).unwrap_err();
            assert_eq!(error.code(), Code::Usage, "{text}");
            let message = error.message;
            assert!(
                message.starts_with("praxis.toml: ") && message.contains(part),
                "{text}: {message}"
            );
        }
        // What is typed does not hide what is wrong.
        assert!(fill(&mut typed(&["--timeout", "5"]), "timeout_seconds = 0").is_err());
        let unknown = fill(&mut typed(&[]), "agnet = \"y\"").unwrap_err().message;
        assert!(
            unknown.contains("agnet") && unknown.contains("max_corrections"),
            "{unknown}"
        );
    }
}
