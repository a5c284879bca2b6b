//! The cases of every guard, and the proof that each guard is needed.
//!
//! Invariant: a case is one source of truth: its doc comment names the requirements it proves, it runs as a test of
//! its own, and the ablation runs it again with one guard switched off.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot go on says why and stops"
)]

mod cases;
mod parts;
mod world;

use std::collections::BTreeMap;
use std::sync::RwLock;

use praxis_model::guard::{Guard, ablation};

/// Cases read it, the ablation writes it: while a guard is off, no other case runs.
pub static GUARDS: RwLock<()> = RwLock::new(());

/// Every guard is needed: with it switched off, a case that claims its requirement fails.
#[test]
fn ablation_fails_a_case_that_claims_the_row() {
    let _alone = GUARDS
        .write()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut by_id: BTreeMap<&str, Vec<&cases::Case>> = BTreeMap::new();
    for case in cases::all() {
        assert_eq!(
            (case.run)(),
            Ok(()),
            "{} passes with every guard on",
            case.name
        );
        for id in case.proves() {
            by_id.entry(id).or_default().push(case);
        }
    }
    std::panic::set_hook(Box::new(|_| {}));
    let mut unneeded = Vec::new();
    let mut part = String::from(
        "| row | requirement | fails without the row | claims the requirement too, and does not fail |\n|---|---|---|---|\n",
    );
    for guard in Guard::ALL.iter().filter(|guard| !elsewhere(**guard)) {
        ablation::disable(*guard);
        let cases = by_id.get(guard.id()).map_or(&[][..], Vec::as_slice);
        let (passing, failing): (Vec<_>, Vec<_>) = cases
            .iter()
            .partition(|case| matches!(std::panic::catch_unwind(case.run), Ok(Ok(()))));
        let names = |cases: &[&&cases::Case]| {
            let all: Vec<&str> = cases.iter().map(|case| case.name).collect();
            all.join(", ")
        };
        let (id, fails, rest) = (guard.id(), names(&failing), names(&passing));
        part.push_str(&format!("| {guard:?} | {id} | {fails} | {rest} |\n"));
        if failing.is_empty() {
            unneeded.push(format!("{guard:?} {} ({} cases)", guard.id(), cases.len()));
        }
    }
    ablation::restore();
    let _ = std::panic::take_hook();
    assert!(
        unneeded.is_empty(),
        "no case fails without these guards:\n{}",
        unneeded.join("\n")
    );
    assert_eq!(parts::check("cases", &part), Ok(()));
}

/// Guards of the commands about effects, approvals, holds and recovery: the test `effects` switches those off.
fn elsewhere(guard: Guard) -> bool {
    (Guard::MissionNew..=Guard::RecoverHuman).contains(&guard)
}
