//! What people see at real terminals: the size and kind of the terminal, and the screens that the documents show.
//! Invariant: the terminal is a real pseudo-terminal; what a document tells people to type is what the program takes.
//! Run by `cargo test`.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Parser;
use praxis_cli::args::Cli;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use support::{AGENT, World, called, text};

/// Everything that a command writes to a terminal of this size.
fn at_terminal(mut command: Command, [columns, rows]: [u16; 2], term: &str) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let side = rustix::fs::open(
        name.as_c_str(),
        OFlags::RDWR | OFlags::NOCTTY,
        Mode::empty(),
    );
    let side = side.unwrap();
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&side, size).unwrap();
    let stream = || Stdio::from(side.try_clone().unwrap());
    command
        .stdin(Stdio::null())
        .stdout(stream())
        .stderr(stream());
    let mut child = command
        .env("TERM", term)
        .env_remove("NO_COLOR")
        .spawn()
        .unwrap();
    drop((command, side));
    let (mut shown, mut bytes, mut master) = (Vec::new(), [0; 4096], File::from(master));
    // A pseudo-terminal whose other side is closed answers with an error.
    while let Ok(count @ 1..) = master.read(&mut bytes) {
        shown.extend_from_slice(&bytes[..count]);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    String::from_utf8(shown).unwrap()
}

/// The sequences in what was written, and the text between them.
fn taken_apart(shown: &str) -> (Vec<String>, String) {
    let (mut sequences, mut plain) = (Vec::new(), String::new());
    let mut chars = shown.chars();
    while let Some(char) = chars.next() {
        if char != '\u{1b}' {
            plain.push(char);
            continue;
        }
        let mut sequence = String::new();
        for char in chars.by_ref() {
            sequence.push(char);
            if char.is_ascii_alphabetic() {
                break;
            }
        }
        sequences.push(sequence);
    }
    (sequences, plain)
}

/// The live tree never is wider or taller than the terminal, and the cursor is left as it was.
#[test]
fn a_live_run_fits_a_small_terminal() {
    let world = World::new(AGENT);
    let shown = at_terminal(world.code(&["--approve-as", "tester"]), [40, 9], "xterm");
    let (sequences, plain) = taken_apart(&shown);
    let copied = ["git -C", "praxis "];
    for line in plain.split('\n').map(|line| line.trim_end_matches('\r')) {
        let is_copied = copied.iter().any(|begin| line.contains(begin));
        assert!(is_copied || line.chars().count() <= 40, "{line:?}");
    }
    for sequence in &sequences {
        let up = sequence
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix('A'));
        let up: u16 = up.map_or(0, |up| up.parse().unwrap());
        assert!(up < 9, "{sequence}");
        let last = sequence.chars().last().unwrap();
        assert!(
            matches!(last, 'A' | 'K' | 'J' | 'm'),
            "{sequence:?}: only these are undone by themselves"
        );
    }
    assert!(
        sequences.iter().any(|sequence| sequence.ends_with('A')),
        "it never redrew"
    );
    assert!(
        plain.contains("lines above"),
        "a tree of more than 9 lines was not cut: {plain}"
    );
}

/// A terminal that can do nothing, and no terminal at all, get a line per change.
#[test]
fn without_a_capable_terminal_every_change_is_a_line() {
    let world = World::new(AGENT);
    let dumb = at_terminal(world.code(&["--approve-as", "tester"]), [80, 24], "dumb");
    let world = World::new(AGENT);
    let none = called(&mut world.code(&["--approve-as", "tester"])).err;
    for shown in [dumb, none] {
        assert!(!shown.contains('\u{1b}'), "{shown}");
        let lines = shown
            .lines()
            .filter(|line| line.contains("  passed    ") && line.contains("check-1"));
        assert!(lines.count() >= 1, "{shown}");
    }
}

/// A report is the same whenever it is asked for, and says who decided what, what was checked and what is recorded.
#[test]
fn a_report_says_everything_and_always_the_same() {
    let world = World::new(AGENT);
    let ran = called(&mut world.code(&["--approve-as", "tester"]));
    assert_eq!(ran.exit, Some(0), "{}", ran.err);
    let report = world.verb(&["report"]).out;
    assert_eq!(report, world.verb(&["report"]).out);
    for said in [
        ": accepted\n",
        "> make it good",
        "**tester** approved the plan and its exact action.",
        "**tester** accepted the patch.",
        "`IN\\_ADVANCE`".replace('\\', "").as_str(),
        "**check-0** failed",
        "**check-1** passed",
        "corrections: 1 of at most",
        "praxis/r-",
    ] {
        assert!(report.contains(said), "{said:?} is not in {report}");
    }
    let value = world.json(&["report"]);
    assert_eq!(text(&value, "/kind"), "report");
    assert_eq!(text(&value, "/decisions/0/decisionClass"), "IN_ADVANCE");
    assert_eq!(text(&value, "/checks/0/node"), "check-0");
    let accepted = world.json(&["show"]);
    assert_eq!(
        text(&value, "/patchDigest"),
        text(&accepted, "/accepted/patch")
    );
}

/// What `diff` writes is the patch: git takes it.
#[test]
fn git_takes_what_diff_writes() {
    let world = World::new(AGENT);
    let ran = called(&mut world.code(&["--approve-as", "tester"]));
    assert_eq!(ran.exit, Some(0), "{}", ran.err);
    let patch = world.file("change.patch", &world.verb(&["diff"]).out);
    world.git(&["apply", "--check", patch.to_str().unwrap()]);
}

/// Every command that a screen or the guide shows is one that the program takes.
#[test]
fn what_the_documents_say_to_type_exists() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let screens = std::fs::read_dir(docs.join("screens")).unwrap();
    let mut files: Vec<_> = screens.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
    assert!(files.len() >= 20, "the screens are not there: {files:?}");
    files.push(docs.join("CODE.md"));
    let mut seen = 0;
    for file in files {
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            seen += usize::from(
                is_taken(line).unwrap_or_else(|why| panic!("{}: {line:?}: {why}", file.display())),
            );
        }
    }
    assert!(seen >= 40, "only {seen} commands were found");
}

/// Whether a line is a command, and then one that parses.
fn is_taken(line: &str) -> Result<bool, String> {
    let line = line.trim_start().trim_start_matches("$ ");
    let line = ["type", "or", "try:"]
        .iter()
        .find_map(|label| line.strip_prefix(label))
        .unwrap_or(line);
    let Some(rest) = line.trim_start().strip_prefix("praxis ") else {
        return Ok(false);
    };
    // What follows two blanks or a mark of the shell is no part of it.
    let command = ["  ", " && ", " | ", " # ", " > "]
        .iter()
        .fold(rest, |rest, end| rest.split(end).next().unwrap_or(rest));
    if !command.starts_with(|char: char| char.is_ascii_lowercase() || char == '-')
        || command.contains('[')
    {
        return Ok(false);
    }
    let words = command
        .trim_end_matches(" \\")
        .split(' ')
        .filter(|word| !word.is_empty());
    let verb = words.clone().next().unwrap_or_default();
    // A capital N is a number that the reader chooses.
    let given = unquoted(command);
    let given = given
        .iter()
        .map(|word| if word == "N" { "7" } else { word });
    match Cli::try_parse_from(std::iter::once("praxis").chain(given)) {
        Ok(_) => Ok(true),
        Err(error) if error.exit_code() == 0 => Ok(true),
        // A line that is cut or goes on elsewhere still has to name a verb.
        Err(_) if line.ends_with('\\') && known(verb) => Ok(true),
        Err(error) => Err(error.to_string()),
    }
}

fn known(verb: &str) -> bool {
    let help = Cli::try_parse_from(["praxis", verb, "--help"]);
    help.is_err_and(|error| error.exit_code() == 0)
}

/// The words of a command line as a shell takes them, as far as the documents need it.
fn unquoted(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for char in command.chars() {
        match (char, quote) {
            ('"' | '\'', None) => quote = Some(char),
            (_, Some(open)) if char == open => quote = None,
            (' ', None) => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            _ => word.push(char),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}
