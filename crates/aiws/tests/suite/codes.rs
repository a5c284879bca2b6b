//! The error codes: a golden snapshot and the order of the stages.
//! Invariant: a shipped name keeps its namespace and its stage.
//! Called by `cargo test`.

use std::collections::BTreeSet;

use aiws::error::{Code, Error, Stage};

/// Proves ERR-PREC.4: errors are structured, and the code strings are the ones of the snapshot.
#[test]
fn err_prec_4_snapshot_of_code_names() {
    let table: String = Code::all()
        .iter()
        .map(|code| {
            format!(
                "{} {} {}\n",
                code.name(),
                code.namespace().name(),
                code.stage().name()
            )
        })
        .collect();
    assert_eq!(table, include_str!("codes.golden"));
    let error = Error::new(Code::HoldActive, "held")
        .at("/x")
        .with("gate", "PAUSE");
    let expected = r#"{"code":"HOLD_ACTIVE","details":{"gate":"PAUSE","pointer":"/x"},"message":"held","namespace":"handoff","stage":"gates"}"#;
    assert_eq!(error.to_value().to_string(), expected);
}

/// Names are unique and read back; each code says what it means and what to do, in whole sentences.
#[test]
fn every_code_explains_itself() {
    let names: BTreeSet<&str> = Code::all().iter().map(|code| code.name()).collect();
    assert_eq!(names.len(), Code::all().len());
    for code in Code::all() {
        assert_eq!(Code::parse(code.name()), Some(*code));
        for text in [code.sentence(), code.remedy()] {
            assert!(
                text.len() > 10 && text.ends_with('.') && text.starts_with(char::is_uppercase),
                "{code}: {text}"
            );
        }
    }
    assert_eq!(Code::parse("NOPE"), None);
    let handoff = Code::all()
        .iter()
        .filter(|code| code.namespace().name() == "handoff")
        .count();
    assert_eq!(handoff, 20);
}

/// The pipeline's stages are numbered 1 to 9 in order; the two outside it have no number.
#[test]
fn stages_are_in_order() {
    let stages = [
        Stage::Shape,
        Stage::Authentication,
        Stage::Replay,
        Stage::Revision,
        Stage::Ownership,
        Stage::Authority,
        Stage::Gates,
        Stage::Object,
        Stage::Admission,
    ];
    assert_eq!(
        stages.map(Stage::number),
        [1, 2, 3, 4, 5, 6, 7, 8, 9].map(Some)
    );
    assert!(stages.is_sorted());
    assert_eq!((Stage::Store.number(), Stage::Usage.number()), (None, None));
}

/// A pointer moves below a prefix, a stage can be overridden, and the root has a name of its own in the text.
#[test]
fn errors_carry_their_place() {
    let error = Error::schema("/b", "wrong").under("/a");
    assert_eq!(error.pointer.as_deref(), Some("/a/b"));
    assert_eq!(
        Error::new(Code::Busy, "full")
            .under("/a")
            .pointer
            .as_deref(),
        Some("/a")
    );
    assert_eq!(
        Error::new(Code::IdentityConflict, "again")
            .in_stage(Stage::Object)
            .stage,
        Stage::Object
    );
    assert_eq!(
        Error::schema("", "wrong").to_string(),
        "SCHEMA_INVALID: wrong (at the root)"
    );
    assert_eq!(Error::new(Code::Busy, "full").to_string(), "BUSY: full");
}
