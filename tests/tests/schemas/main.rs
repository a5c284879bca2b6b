//! What is sent: the published schemas and the reader of requests say the same of every command.
//! Invariant: each command of the vocabulary has an example with all its members, and a definition of its own name.
//! Called by `cargo test`; records are compared in `crates/aiws/tests/suite/schemas.rs`.

#![allow(clippy::expect_used, reason = "a helper of a test fails the test")]

#[path = "../../../crates/aiws/tests/suite/agree.rs"]
mod agree;
#[path = "../../../crates/aiws/tests/suite/mutants.rs"]
mod mutants;
mod sent;

use std::collections::BTreeSet;

use aiws::canonical::to_bytes;
use aiws::error::Error;
use aiws::json::Value;
use aiws::published::{Published, schema_of};
use praxis_model::command::CommandType;
use praxis_model::table::{Family, row};

use agree::{Seen, Subject};

fn schema(family: Family) -> &'static Published {
    let name = match family {
        Family::Finite => "finite-v1",
        Family::Handoff | Family::Engine => "aiws-handoff-1",
    };
    schema_of(name).expect(name)
}

fn read(value: &Value) -> Result<(), Error> {
    praxis_model::wire::parse(&to_bytes(value)).map(drop)
}

/// Proves HF-01.1: of every request with every command, and of every mutant of it, the published schema and the reader
/// of the wire say the same, except for what no schema can say; the members they know are the same at every place.
#[test]
fn hf_01_1_schema_and_wire_agree() {
    let names: Vec<&str> = CommandType::ALL.iter().map(|kind| kind.name()).collect();
    let more = [
        "RECHECK",
        "CANCEL",
        "UNKNOWN",
        "CONFIRMED_APPLIED",
        "HUMAN",
        "MODEL",
        "PASS",
        "APPROVED",
    ];
    let names: Vec<&str> = names.into_iter().chain(more).collect();
    let mut seen = Seen::default();
    for kind in CommandType::ALL {
        let subject = Subject {
            name: kind.name(),
            schema: schema(row(*kind).family),
            definition: "Request",
            value: sent::request(*kind),
            read: &read,
            open: sent::OPEN,
        };
        seen.judge(&subject, &names);
    }
    seen.finish(true);
}

/// Each schema defines the commands of its family, and no others, and its list of them is complete. The opening of a
/// mission brings a hand-off configuration, so it stands with the hand-off protocol.
#[test]
fn definitions_are_the_commands() {
    for (family, list) in [(Family::Finite, "Command"), (Family::Handoff, "Body")] {
        let published = schema(family);
        let wanted = |also: bool| -> BTreeSet<String> {
            let mut all = CommandType::ALL.iter().filter(|kind| {
                let its = row(**kind).family;
                its == family || also && its == Family::Engine
            });
            all.by_ref().map(|kind| kind.name().to_owned()).collect()
        };
        let defined = published.definitions().expect(published.name);
        let defined: BTreeSet<String> = defined
            .into_iter()
            .filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))
            .collect();
        assert_eq!(
            defined,
            wanted(family == Family::Handoff),
            "{}",
            published.name
        );
        let document = published.document().expect(published.name);
        let listed = document
            .pointer(&format!("/$defs/{list}/oneOf"))
            .and_then(Value::as_array)
            .expect(list);
        let listed: BTreeSet<String> = listed
            .iter()
            .filter_map(|one| one.get("$ref").and_then(Value::as_str))
            .map(|target| target.trim_start_matches("#/$defs/").to_owned())
            .collect();
        assert_eq!(listed, wanted(false), "{}", published.name);
        for name in &defined {
            let place = format!("/$defs/{name}/properties/type/const");
            assert_eq!(
                document.pointer(&place).and_then(Value::as_str),
                Some(name.as_str())
            );
        }
    }
}

/// Proves HF-01.2: hand-off alters nothing of finite-v1: the finite-v1 schema takes no request of the hand-off
/// protocol, and that of hand-off takes no bare command of finite-v1.
#[test]
fn hf_01_2_families_stay_apart() {
    let finite = schema(Family::Finite)
        .definition("Request")
        .expect("Request");
    let handoff = schema(Family::Handoff)
        .definition("Request")
        .expect("Request");
    for kind in CommandType::ALL {
        let request = sent::request(*kind);
        let is_finite = row(*kind).family == Family::Finite;
        assert_eq!(
            finite.validate(&request).is_ok(),
            is_finite,
            "{}",
            kind.name()
        );
        assert_eq!(
            handoff.validate(&request).is_ok(),
            !is_finite,
            "{}",
            kind.name()
        );
    }
}

/// Each command in the layers of every other one: a schema takes it where the reader does.
#[test]
fn layers_are_not_mixed() {
    let compiled = |family| schema(family).definition("Request").expect("Request");
    let both = [compiled(Family::Finite), compiled(Family::Handoff)];
    for kind in CommandType::ALL {
        for other in CommandType::ALL {
            let mixed = sent::in_layer_of(*kind, sent::body(*other));
            assert_eq!(
                both.iter().any(|schema| schema.validate(&mixed).is_ok()),
                read(&mixed).is_ok(),
                "{} in the layer of {}",
                other.name(),
                kind.name()
            );
        }
    }
}
