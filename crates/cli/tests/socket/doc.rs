//! docs/SOCKET.md against the code: every request is in it, every example is one, and its worker is the one that runs.
//! Invariant: what a reader copies from the document is taken by an engine of this build.
//! Reads the document; needs no engine.

use aiws::error::Code;
use aiws::object;
use praxis_cli::request::{Request, WorkAsk};
use praxis_model::command::CommandType;

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SOCKET.md");
    std::fs::read_to_string(path).unwrap()
}

/// The names that a refusal of an unknown one lists.
fn names(refusal: &str) -> Vec<String> {
    let (_, listed) = refusal.split_once("expected one of ").unwrap();
    listed
        .split(", ")
        .map(|name| name.trim_matches('`').to_owned())
        .collect()
}

/// Every verb has a section with an example that this build reads as that verb, and with an example answer.
#[test]
fn every_request_is_in_the_document_with_an_example() {
    let document = document();
    let unknown = Request::from_value(&object! { "verb": "frobnicate" }).unwrap_err();
    assert_eq!(unknown.code(), Code::Usage);
    let verbs = names(&unknown.message);
    assert!(verbs.len() > 25, "{verbs:?}");
    for verb in verbs {
        let heading = format!("\n### {verb}\n");
        let (_, rest) = document
            .split_once(&heading)
            .unwrap_or_else(|| panic!("no {heading:?}"));
        let section = rest.split("\n#").next().unwrap();
        let (_, example) = section
            .split_once("```json\n")
            .unwrap_or_else(|| panic!("{verb}"));
        let mut lines = example.split("\n```").next().unwrap().lines();
        let (asked, answer) = (lines.next().unwrap(), lines.next().unwrap());
        let asked =
            aiws::strict::parse(asked.as_bytes()).unwrap_or_else(|error| panic!("{verb}: {error}"));
        assert_eq!(
            asked.get("verb").and_then(|verb| verb.as_str()),
            Some(verb.as_str())
        );
        // A job is made by praxis code alone; the document says so and shows none.
        if verb != "start" {
            Request::from_value(&asked).unwrap_or_else(|error| panic!("{verb}: {error}"));
        }
        let answer = aiws::strict::parse(answer.as_bytes())
            .unwrap_or_else(|error| panic!("{verb}: {error}"));
        assert!(
            answer.get("kind").is_some() && answer.get("version").is_some(),
            "{verb}"
        );
    }
}

#[test]
fn every_ask_and_command_of_the_document_is_known() {
    let document = document();
    let unknown = aiws::canonical::from_value::<WorkAsk>(&object! { "kind": "frobnicate" });
    for kind in names(&unknown.unwrap_err().message) {
        assert!(document.contains(&format!("\n| `{kind}` |")), "{kind}");
    }
    let (_, apply) = document.split_once("\n### apply\n").unwrap();
    let (_, listed) = apply.split_once("in a mission for workers: ").unwrap();
    let listed = listed.split(". Two forms").next().unwrap();
    for name in listed.split(',').map(|name| name.trim().trim_matches('`')) {
        assert!(CommandType::parse(name).is_some(), "{name:?}");
    }
}

#[test]
fn the_worker_of_the_document_is_the_one_that_runs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/worker.py");
    let worker = std::fs::read_to_string(path).unwrap();
    assert!(document().contains(&format!("```python\n{worker}```\n")));
    let code = worker
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    assert!(code.count() <= 40, "it is to be read at a glance");
}
