//! The oracle judged by small histories: each invariant accepts one and is broken by another, under its own number.
//!
//! Invariant: an oracle that is switched off accepts all of them. Run by `cargo test -p praxis-simulations --test oracle`.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use praxis_simulations::invariant::Broken;
use praxis_simulations::oracle::{MARKS, Oracle};

#[path = "oracle/flow.rs"]
mod flow;
#[path = "oracle/history.rs"]
mod history;
#[path = "oracle/log.rs"]
mod log;
#[path = "oracle/outside.rs"]
mod outside;
#[path = "oracle/work.rs"]
mod work;

use history::History;

type Judged = Result<(), Broken>;

/// The history is accepted.
#[track_caller]
fn accepts(story: impl Fn(&mut History) -> Judged) {
    let judged = story(&mut History::begun(Oracle::new()));
    assert_eq!(judged, Ok(()));
}

/// The history breaks this invariant and no other; an oracle that is off says nothing.
#[track_caller]
fn breaks(number: u8, story: impl Fn(&mut History) -> Judged) {
    let judged = story(&mut History::begun(Oracle::new()));
    let broken = judged.expect_err("the history was accepted");
    assert_eq!(broken.invariant.number(), number, "{broken}");
    let control = story(&mut History::begun(Oracle::switched_off()));
    assert_eq!(control, Ok(()));
}

#[test]
fn the_oracle_names_nothing_of_the_engine() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut places = vec![source.join("oracle.rs"), source.join("oracle")];
    let mut read = 0;
    while let Some(place) = places.pop() {
        if place.is_dir() {
            let inner = std::fs::read_dir(&place).unwrap();
            places.extend(inner.map(|entry| entry.unwrap().path()));
            continue;
        }
        let text = std::fs::read_to_string(&place).unwrap();
        read += 1;
        assert!(!text.contains("praxis_"), "{place:?} names the engine");
        let own = ["crate::invariant", "crate::oracle"];
        let foreign = text
            .match_indices("crate::")
            .map(|(at, _)| &text[at..])
            .find(|rest| !own.iter().any(|own| rest.starts_with(own)));
        assert_eq!(
            foreign.map(|rest| &rest[..rest.len().min(40)]),
            None,
            "{place:?}"
        );
    }
    assert!(read > 15, "only {read} files were read");
}

#[test]
fn the_marks_are_sorted_and_each_is_set_somewhere() {
    assert!(MARKS.is_sorted());
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut text = std::fs::read_to_string(source.join("oracle.rs")).unwrap();
    for file in [
        "log",
        "claims",
        "effects",
        "effects/outcome",
        "outbox",
        "flow",
        "flow/inputs",
        "flow/invalid",
        "flow/left",
    ] {
        let path = source.join(format!("oracle/{file}.rs"));
        text.push_str(&std::fs::read_to_string(path).unwrap());
    }
    for mark in MARKS {
        assert!(text.contains(&format!("\"{mark}\"")), "{mark} is never set");
    }
}
