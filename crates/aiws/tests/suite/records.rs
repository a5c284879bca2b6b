//! The records as a whole: they read, write back to the same bytes, are closed, and are detached.
//! Invariant: every mutation of every example is either listed as allowed or refused with a pointer.
//! Called by `cargo test`.

use aiws::canonical::{bytes_of, digest_of, to_bytes};
use aiws::digest::sha256;
use aiws::error::{Code, Error};
use aiws::json::Value;
use aiws::record::*;

use crate::examples::{self, Example};
use crate::mutants::{changed, places};

#[track_caller]
fn refused(example: &Example, mutant: &Value, what: &str, pointer: &str) -> Error {
    let error =
        (example.read)(mutant).expect_err(&format!("{}: {what} at {pointer}", example.name));
    let version = pointer.starts_with("/features")
        || pointer.starts_with("/extensions")
        || pointer == "/edition"
        || pointer == "/protocol";
    let expected =
        error.code == Code::SchemaInvalid || version && error.code == Code::UnsupportedProtocol;
    assert!(expected, "{}: {what} at {pointer}: {error}", example.name);
    error
}

/// Each example reads and writes back to exactly the same canonical bytes.
#[test]
fn records_write_back_what_was_read() {
    for example in examples::all() {
        let value = example.value();
        let again =
            (example.read)(&value).unwrap_or_else(|error| panic!("{}: {error}", example.name));
        assert_eq!(again.to_string(), value.to_string(), "{}", example.name);
    }
}

/// Proves HF-01.1: an unfamiliar member in any object of any record is refused at its place.
#[test]
fn hf_01_1_unknown_members() {
    for example in examples::all() {
        let value = example.value();
        for place in places(&value, example.open) {
            let closed = !example.open.contains(&place.as_str());
            if closed && matches!(value.pointer(&place), Some(Value::Object(_))) {
                let pointer = format!("{place}/x");
                let error = refused(
                    &example,
                    &changed(&value, &pointer, Some(Value::Int(1))),
                    "unknown",
                    &pointer,
                );
                assert_eq!(
                    error.pointer.as_deref(),
                    Some(pointer.as_str()),
                    "{}: {error}",
                    example.name
                );
            }
        }
    }
}

/// Proves HF-01.4: no object of any record has a member for bytes; content goes by artifact reference.
#[test]
fn hf_01_4_no_member_for_bytes() {
    for example in examples::all() {
        let value = example.value();
        for place in places(&value, example.open) {
            let closed = !example.open.contains(&place.as_str());
            if closed && matches!(value.pointer(&place), Some(Value::Object(_))) {
                for member in ["bytes", "content", "data", "body", "text"] {
                    let pointer = format!("{place}/{member}");
                    // The words of a summary are bounded text, and the only such member.
                    if (example.name, pointer.as_str()) == ("summary", "/text") {
                        continue;
                    }
                    refused(
                        &example,
                        &changed(&value, &pointer, Some(Value::from("aGk="))),
                        "bytes",
                        &pointer,
                    );
                }
            }
        }
    }
}

/// Proves HF-01.1: every member that is not written as optional is required, in every object of every record.
#[test]
fn hf_01_1_missing_members() {
    for example in examples::all() {
        let value = example.value();
        for pointer in places(&value, example.open) {
            let Some((parent, _)) = pointer.rsplit_once('/') else {
                continue;
            };
            if !matches!(value.pointer(parent), Some(Value::Object(_))) {
                continue;
            }
            let mutant = changed(&value, &pointer, None);
            if example.optional.contains(&pointer.as_str()) {
                let again = (example.read)(&mutant)
                    .unwrap_or_else(|error| panic!("{}: {error}", example.name));
                assert_eq!(again, mutant, "{}: {pointer} stays absent", example.name);
            } else {
                let error = refused(&example, &mutant, "missing", &pointer);
                assert_eq!(
                    error.pointer.as_deref(),
                    Some(parent),
                    "{}: {error}",
                    example.name
                );
            }
        }
    }
}

/// Proves HF-01.1: `null` and other kinds of value are refused at their place wherever they are not written.
#[test]
fn hf_01_1_wrong_kinds() {
    let odd = [
        Value::Null,
        Value::Int(7),
        Value::Bool(true),
        Value::from(""),
        Value::Array(vec![Value::Int(7)]),
    ];
    for example in examples::all() {
        let value = example.value();
        for pointer in places(&value, example.open) {
            for kind in odd.iter().chain([&Value::from(vec![Value::Null])]) {
                let null = kind.is_null();
                let allowed = null && example.nullable.contains(&pointer.as_str())
                    || example.open.contains(&pointer.as_str())
                        && (pointer == "/result" || pointer.ends_with("/equals"))
                    || value
                        .pointer(&pointer)
                        .is_some_and(|found| found.as_bool().is_some())
                        && kind.as_bool().is_some()
                    || kind.as_str().is_some() && free_text(&pointer);
                let mutant = changed(&value, &pointer, Some(kind.clone()));
                if allowed {
                    assert!(
                        (example.read)(&mutant).is_ok(),
                        "{}: {kind} at {pointer}",
                        example.name
                    );
                    continue;
                }
                let error = refused(&example, &mutant, &kind.to_string(), &pointer);
                let at = error.pointer.unwrap_or_default();
                assert!(
                    at.starts_with(&pointer),
                    "{}: {kind} at {pointer}: pointer {at}",
                    example.name
                );
            }
        }
    }
}

/// Texts that may be empty.
fn free_text(pointer: &str) -> bool {
    pointer == "/outcome/cause/detail"
        || pointer.starts_with("/context/")
            && ![
                "/context/decisions",
                "/context/assumptions",
                "/context/limitations",
            ]
            .contains(&pointer)
}

/// Proves CJ-2: a manifest's digest is SHA-256 over its whole canonical bytes, and it cannot hold that digest itself.
#[test]
fn cj_2_manifest_digest() {
    let value = examples::manifest().value();
    let manifest = Checked::<Manifest>::from_value(&value).expect("manifest");
    assert_eq!(manifest.digest(), sha256(&to_bytes(&value)));
    assert_eq!(digest_of(manifest.get()), Ok(manifest.digest()));
    assert_eq!(bytes_of(manifest.get()), Ok(to_bytes(&value)));
    let own = changed(&value, "/digest", Some(Value::from(manifest.digest())));
    assert_eq!(
        Checked::<Manifest>::from_value(&own)
            .expect_err("own digest")
            .pointer
            .as_deref(),
        Some("/digest")
    );
}

/// Proves CJ-4: what happens to the source, or to a copy that was handed out, cannot change a constructed record.
#[test]
fn cj_4_records_are_detached() {
    let mut source = examples::manifest().value();
    let manifest = Checked::<Manifest>::from_value(&source).expect("manifest");
    let (digest, before) = (manifest.digest(), manifest.value());
    if let Value::Object(members) = &mut source {
        members.clear();
    }
    let mut copy = manifest.value();
    copy = changed(&copy, "/result/ok", Some(Value::Bool(false)));
    assert_ne!(copy, before);
    assert_eq!(
        (manifest.digest(), manifest.value()),
        (digest, before.clone())
    );
    assert_eq!(digest_of(manifest.get()), Ok(digest));
    assert_eq!(sha256(&to_bytes(&before)), digest);
}

/// Proves FV-CMD.4: a record built through the typed API with bad values is refused with a pointer, without a panic.
#[test]
fn fv_cmd_4_typed_records_are_checked() {
    let hold = Checked::<Hold>::from_value(&examples::hold().value())
        .expect("hold")
        .into_inner();
    let bad: [(Hold, &str); 5] = [
        (
            Hold {
                members: Vec::new(),
                ..hold.clone()
            },
            "/members",
        ),
        (
            Hold {
                allowed_decisions: Vec::new(),
                ..hold.clone()
            },
            "/allowedDecisions",
        ),
        (
            Hold {
                allowed_decisions: vec![HoldDecision::Cancel; 2],
                ..hold.clone()
            },
            "/allowedDecisions/1",
        ),
        (
            Hold {
                state: HoldState::Open,
                ..hold.clone()
            },
            "/resolution",
        ),
        (
            Hold {
                resolution: None,
                ..hold.clone()
            },
            "/resolution",
        ),
    ];
    for (record, pointer) in bad {
        assert_eq!(
            Checked::new(&record).expect_err(pointer).pointer.as_deref(),
            Some(pointer)
        );
    }
    assert!(Checked::new(&hold).is_ok());
    assert!(aiws::id::RunId::new("").is_err());
    assert!("1.5".parse::<aiws::decimal::Dec>().is_err());
}

/// A record is an object: the list of its members' values, which serde would take as well, is refused.
#[test]
fn records_are_objects() {
    let reference = aiws::object! { "id": "p", "revision": "1" };
    assert!(aiws::canonical::from_value::<Ref>(&reference).is_ok());
    let error = aiws::canonical::from_value::<Ref>(&Value::from(vec!["p", "1"])).expect_err("list");
    assert_eq!(error.pointer.as_deref(), Some(""));
    assert!(
        error.message.contains("expected an object, found an array"),
        "{error}"
    );
}
