//! Completions, man pages and the pages of codes: what needs no store.
//! Invariant: made from the command line itself, so that no verb is forgotten.
//! Part of the tests of `tools`.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use clap::CommandFactory;
use praxis_cli::args::Cli;

use crate::support::{self, Called, called, text};

/// The verbs that help shows.
fn verbs() -> Vec<String> {
    let command = Cli::command();
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    shown.map(|verb| verb.get_name().to_owned()).collect()
}

/// The binary without a store.
fn bare(args: &[&str]) -> Called {
    let mut command = Command::new(env!("CARGO_BIN_EXE_praxis"));
    command
        .args(args)
        .env_remove("PRAXIS_STORE")
        .env_remove("HOME")
        .env_remove("XDG_STATE_HOME")
        .stdin(Stdio::null());
    called(&mut command)
}

#[test]
fn completions_of_each_shell_know_every_verb() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let made = bare(&["completions", shell]);
        assert_eq!(made.exit, Some(0), "{shell}: {}", made.err);
        for verb in verbs() {
            assert!(made.out.contains(&verb), "{shell} does not know {verb}");
        }
        assert!(!made.out.contains("__shim"), "{shell} shows a hidden verb");
    }
    assert_eq!(bare(&["completions", "tcsh"]).exit, Some(2));
}

/// The script is sourced, and asked as bash would.
#[test]
fn bash_completes_a_verb() {
    if Command::new("bash").arg("-c").arg("true").status().is_err() {
        return;
    }
    let made = bare(&["completions", "bash"]);
    let dir = support::scratch();
    let script = dir.path().join("praxis.bash");
    fs::write(&script, &made.out).unwrap();
    let ask = format!(
        "source '{}'; COMP_WORDS=(praxis exp); COMP_CWORD=1; _praxis praxis exp praxis; echo \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let mut command = Command::new("bash");
    command.args(["--norc", "-c", &ask]);
    let asked = called(&mut command);
    assert_eq!(asked.exit, Some(0), "{}", asked.err);
    let offered: BTreeSet<&str> = asked.out.split_whitespace().collect();
    assert_eq!(
        offered,
        BTreeSet::from(["explain", "export"]),
        "{}",
        asked.err
    );
}

#[test]
fn man_pages_are_written_and_render_without_a_word() {
    let dir = support::scratch();
    let at = dir.path().join("man/man1");
    let made = bare(&["man", at.to_str().unwrap()]);
    assert_eq!(made.exit, Some(0), "{}", made.err);
    let mut wanted: BTreeSet<String> = verbs()
        .iter()
        .map(|verb| format!("praxis-{verb}.1"))
        .collect();
    wanted.insert("praxis.1".to_owned());
    let found: BTreeSet<String> = fs::read_dir(&at)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, wanted);
    let code = fs::read_to_string(at.join("praxis-code.1")).unwrap();
    assert!(
        code.contains("PRAXIS_STAGE") && code.contains(".SH NOTES"),
        "{code}"
    );
    if Command::new("groff").arg("--version").output().is_err() {
        return;
    }
    for name in &found {
        let mut command = Command::new("groff");
        command
            .args(["-man", "-Tascii", "-ww", "-z"])
            .arg(at.join(name));
        let rendered = called(&mut command);
        assert_eq!(rendered.err, "", "{name}");
        assert_eq!(rendered.exit, Some(0), "{name}");
    }
    let blocked = dir.path().join("file");
    fs::write(&blocked, "").unwrap();
    let refused = bare(&["man", blocked.to_str().unwrap()]);
    assert_eq!(refused.exit, Some(1));
    assert!(refused.err.contains("EXPORT_FAILED"), "{}", refused.err);
}

#[test]
fn explain_prints_the_page_of_a_code() {
    let explained = bare(&["explain", "store_locked"]);
    assert_eq!(explained.exit, Some(0), "{}", explained.err);
    for part in [
        "When it happens",
        "What stays untouched",
        "What to do",
        "Example",
        "Related",
        "praxis doctor",
    ] {
        assert!(explained.out.contains(part), "{part}: {}", explained.out);
    }
    let value = support::parse(&bare(&["explain", "STORE_LOCKED", "--json"]).out);
    assert!(text(&value, "/page").starts_with("# STORE_LOCKED\n"));
}

/// Proves HM-01.4: a published schema is printed byte for byte, and the list says the digest of these bytes.
#[test]
fn hm_01_4_schemas_are_printed_as_they_are_pinned() {
    let listed = bare(&["schema"]);
    assert_eq!(listed.exit, Some(0), "{}", listed.err);
    let mut names = Vec::new();
    for line in listed.out.lines() {
        let (name, digest) = line.split_once(' ').unwrap();
        let printed = bare(&["schema", name]);
        assert_eq!(printed.exit, Some(0), "{}", printed.err);
        let found = aiws::digest::sha256(printed.out.as_bytes()).to_string();
        assert_eq!(found, digest.trim(), "{name}");
        let value = support::parse(&bare(&["schema", name, "--json"]).out);
        assert_eq!(text(&value, "/digest"), found);
        let document = aiws::strict::parse(printed.out.as_bytes()).unwrap();
        assert_eq!(value.get("document"), Some(&document));
        names.push(name.to_owned());
    }
    assert_eq!(names, ["finite-v1", "aiws-handoff-1"]);
    let value = support::parse(&bare(&["schema", "--json"]).out);
    assert_eq!(text(&value, "/schemas/0/name"), "finite-v1");
    let unknown = bare(&["schema", "finite-v2"]);
    assert_eq!(unknown.exit, Some(2));
    assert!(unknown.err.contains("aiws-handoff-1"), "{}", unknown.err);
}
