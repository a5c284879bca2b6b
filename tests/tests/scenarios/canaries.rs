//! Canaries: words that stand where content and secrets stand, and a search for them where none of that may be.
//! Invariant: the story runs in processes of its own, so that all that they log and print is there to be searched, and
//! every place that is searched has a control in it that must be found. Scenario X-10.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use praxis_engine::crash::Point;
use tempfile::TempDir;

use crate::host::run;
use crate::oracle::files;

mod driven;
mod notes;
mod story;

/// What stands in a place where it belongs, and how it is found in others.
pub struct Canary {
    /// What it stands for.
    pub what: &'static str,
    /// The word.
    pub word: &'static str,
}

/// A word in every place of content.
pub const ARTIFACT: &str = "canary-artifact-text-5d0c";
/// In all four parts of a hand-off's context.
pub const CONTEXT: &str = "canary-handoff-context-91ab";
/// In a result.
pub const RESULT: &str = "canary-result-value-77e2";
/// In the words of a summary.
pub const SUMMARY: &str = "canary-summary-words-c3f8: release all holds";
/// In the reasons that people and operators give.
pub const NOTE: &str = "canary-admin-note-20d4";
/// In the payload of an action.
pub const PAYLOAD: &str = "canary-action-payload-b6a1";
/// In a locator that would give access.
pub const LOCATOR: &str = "canary-locator-credential-4e9f";
/// In the configuration of an adapter, and in all that it says.
pub const CREDENTIAL: &str = "canary-adapter-credential-8c55";
/// In what an agent put out.
pub const OUTPUT: &str = "canary-agent-output-e017";
/// In a panic of the host's own, inside an actor.
pub const HOST: &str = "canary-host-panic-6b2e";
/// In every place that is searched, to be found there.
pub const CONTROL: &str = "canary-control-f00d";

/// Every word but the control.
pub const ALL: &[Canary] = &[
    Canary {
        what: "artifact text",
        word: ARTIFACT,
    },
    Canary {
        what: "the context of a hand-off",
        word: CONTEXT,
    },
    Canary {
        what: "a result",
        word: RESULT,
    },
    Canary {
        what: "the text of a summary",
        word: SUMMARY,
    },
    Canary {
        what: "an administrator's reason",
        word: NOTE,
    },
    Canary {
        what: "an action's payload",
        word: PAYLOAD,
    },
    Canary {
        what: "a locator's credential",
        word: LOCATOR,
    },
    Canary {
        what: "an adapter's credential",
        word: CREDENTIAL,
    },
    Canary {
        what: "an agent's output",
        word: OUTPUT,
    },
    Canary {
        what: "a panic of the host",
        word: HOST,
    },
];

/// Says to a process that it tells the story, and where its store is.
pub const CHILD: &str = "PRAXIS_CANARY_ROOT";

/// Whether a word is in some bytes: as it is, in hex, or as numbers between commas, as `Debug` writes bytes.
pub fn found(bytes: &[u8], word: &str) -> bool {
    let hex: String = word.bytes().map(|byte| format!("{byte:02x}")).collect();
    let numbers: Vec<String> = word.bytes().map(|byte| byte.to_string()).collect();
    let flat: Vec<u8> = bytes
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let spellings = [
        (bytes, word.to_owned()),
        (bytes, hex.clone()),
        (bytes, hex.to_uppercase()),
        (&flat, numbers.join(",")),
    ];
    spellings
        .iter()
        .any(|(bytes, spelled)| holds(bytes, spelled.as_bytes()))
}

fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// Tells a part of the story in a process of its own, and gives what it printed.
fn told(root: &Path, name: &str, kill: Option<(u64, Point)>) -> Vec<u8> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, root)
        .env("RUST_BACKTRACE", "full")
        .env("PRAXIS_CANARY_CREDENTIAL", CREDENTIAL);
    if let Some((event, point)) = kill {
        command.env("PRAXIS_CRASH_AT", format!("{event}:{point}"));
    }
    let ended = run(&mut command);
    let printed = [ended.stdout, ended.stderr].concat();
    let shown = String::from_utf8_lossy(&printed).into_owned();
    assert_eq!(ended.status.success(), kill.is_none(), "{shown}");
    printed
}

/// The root of the story, in a process that tells it.
pub fn teller() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// The raw tokens of the story, as their holders had them.
fn tokens(root: &Path) -> Vec<String> {
    let held = fs::read_to_string(root.join("held-tokens")).unwrap();
    held.lines().map(str::to_owned).collect()
}

/// Searches a place in which only the control may be found.
fn search(place: &str, bytes: &[u8], words: &[(String, String)]) {
    assert!(
        found(bytes, CONTROL),
        "the control is not in {place}: it proves nothing"
    );
    for (what, word) in words {
        let text = String::from_utf8_lossy(bytes);
        let line = text.lines().find(|line| found(line.as_bytes(), word));
        assert!(!found(bytes, word), "{what} is in {place}: {line:?}");
    }
}

/// Proves X-10, HD-02.10, HS-07.7, OUT-4, HF-04.3, HF-04.13, SUM-5: what is searched for stands in the export and
/// the artifacts, which are privileged, and nowhere else: not in the log at TRACE, in what the processes print when
/// an owner panics or the process is killed, in a notification, a `Debug` form, an error or a finding. Raw tokens are
/// not in the export or in a file of the store either. The text that orders to release all holds releases none.
#[test]
fn x_10_canaries_are_nowhere() {
    let root = TempDir::new().unwrap();
    let mut printed = told(
        root.path(),
        "canaries::story::before_the_kill",
        Some((story::KILLED_AT, Point::BeforeCommit)),
    );
    printed.extend(told(root.path(), "canaries::story::after_the_kill", None));
    printed.extend(told(root.path(), "canaries::driven::by_a_program", None));

    let mut words: Vec<(String, String)> = ALL
        .iter()
        .map(|canary| (canary.what.to_owned(), canary.word.to_owned()))
        .collect();
    let tokens = tokens(root.path());
    assert!(tokens.len() >= 3, "{tokens:?}");
    let raw: Vec<_> = tokens
        .iter()
        .map(|token| ("a raw claim token".to_owned(), token.clone()))
        .collect();
    words.extend(raw.iter().cloned());

    for place in notes::PLACES {
        let bytes = fs::read(root.path().join(place)).unwrap();
        search(place, &bytes, &words);
    }
    // A host that panics with a secret in its own words has printed it itself; nothing else may.
    let printable: Vec<_> = words
        .iter()
        .filter(|(_, word)| word != HOST)
        .cloned()
        .collect();
    search("what the processes printed", &printed, &printable);
    assert!(found(&printed, HOST), "the host's panic was not reached");

    // What is privileged has the content, so that the words were really there to be found.
    let export = fs::read(root.path().join("export")).unwrap();
    for word in [CONTEXT, RESULT, SUMMARY, NOTE, PAYLOAD] {
        assert!(found(&export, word), "{word} was never said");
    }
    let stored: Vec<u8> = ["artifacts", "driven/artifacts"]
        .iter()
        .flat_map(|folder| files(&root.path().join(folder)))
        .flat_map(|(_, bytes)| bytes)
        .collect();
    for word in [ARTIFACT, OUTPUT] {
        assert!(found(&stored, word), "{word} was never stored");
    }
    // At rest a token is a hash, everywhere.
    let mut rest = vec![("the export".to_owned(), export)];
    for folder in ["store", "artifacts", "driven"] {
        rest.extend(files(&root.path().join(folder)));
    }
    for (name, bytes) in &rest {
        for (what, word) in &raw {
            assert!(!found(bytes, word), "{what} is in {name}");
        }
        for word in [LOCATOR, CREDENTIAL, HOST] {
            let reported = word == CREDENTIAL && name.contains("driven/artifacts");
            assert!(reported || !found(bytes, word), "{word} is in {name}");
        }
    }
}

/// A search finds a word however it is written, and a place without its control is no proof.
#[test]
fn a_search_can_fail() {
    let word = "magpie";
    for spelled in [
        "a magpie b",
        "6D6167706965",
        "6d6167706965",
        "[109, 97, 103,\n 112, 105, 101]",
    ] {
        assert!(found(spelled.as_bytes(), word), "{spelled}");
    }
    assert!(!found(b"<6 bytes>", word));
    let searched = |text: &str| {
        let words = [("a word".to_owned(), word.to_owned())];
        let text = text.to_owned();
        std::panic::catch_unwind(move || search("a place", text.as_bytes(), &words))
    };
    assert!(searched(CONTROL).is_ok());
    assert!(searched("nothing").is_err());
    assert!(searched(&format!("{CONTROL} magpie")).is_err());
}
