//! Every row of the tables of refusals is refused by its own guard; without that guard it is not.
//!
//! Invariant: one test process switches guards off one at a time, and nothing else decides meanwhile.

use std::collections::BTreeSet;
use std::sync::{RwLock, RwLockReadGuard};

use praxis_model::guard::{Guard, ablation};

use crate::table::Case;
use crate::{
    cases_admission, cases_holds, cases_invalidation, cases_mission, cases_names, cases_retry,
    cases_settlement, cases_summary,
};

/// Guards are switched off for the whole process: whoever decides holds this for reading meanwhile.
static ALL_GUARDS_ON: RwLock<()> = RwLock::new(());

/// Keeps every guard switched on while it lives.
pub fn guarded() -> RwLockReadGuard<'static, ()> {
    ALL_GUARDS_ON
        .read()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn refused(cases: &[Case]) {
    let _on = guarded();
    let problems: Vec<String> = cases
        .iter()
        .filter_map(|case| case.is_refused().err())
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// A list of refusals, with the test that stands for it.
struct Listed {
    name: &'static str,
    /// The doc comment of the test, which begins with `Proves ID, ID: `.
    doc: &'static str,
    cases: &'static [Case],
}

impl Listed {
    fn proves(&self, id: &str) -> bool {
        let ids = self.doc.trim().strip_prefix("Proves ");
        let ids = ids.and_then(|rest| rest.split_once(": "));
        ids.is_some_and(|(ids, _)| ids.split(',').any(|own| own.trim() == id))
    }
}

/// Makes a test of every list, and a list of them all.
macro_rules! refusals {
    ($($(#[doc = $doc:literal])* #[test] fn $name:ident() { $cases:path })*) => {
        $($(#[doc = $doc])*
        #[test]
        fn $name() {
            refused($cases);
        })*

        const LISTS: &[Listed] = &[$(Listed {
            name: stringify!($name),
            doc: concat!($($doc),*),
            cases: $cases,
        }),*];
    };
}

fn all() -> Vec<Case> {
    let lists = LISTS.iter().map(|list| list.cases);
    lists.collect::<Vec<_>>().concat()
}

refusals! {
    /// Proves FV-CMD.3, FV-CMD.4, FV-CON.1, FV-CON.5, HM-01.1, HM-01.3, REL-1: a contract with unknown features or
    /// extensions, of another mission, of no good shape or after another one opens nothing, and
    /// no run starts without the negotiated protocol or past the deadline.
    #[test]
    fn a_mission_or_run_out_of_order_is_refused() { cases_mission::MISSION }

    /// Proves HF-01.6: an id that stands for a grant, an approval, an assessment or a summary is refused for another one.
    #[test]
    fn an_id_stands_for_one_thing() { cases_names::REUSED }

    /// Proves FV-ACC.7: a run is not started again under its name, which would bring its first epoch back.
    #[test]
    fn a_run_is_not_started_again() { cases_names::STARTED_AGAIN }

    /// Proves REL-3: a dispatch, a settlement, a reconciliation, a retry or a summary that names an operation or an
    /// attempt which the run does not have is refused.
    #[test]
    fn what_the_run_does_not_have_is_not_referred_to() { cases_names::DANGLING }

    /// Proves FV-GRT.1, FV-GRT.2, FV-CON.2, FV-CMD.4: a derived grant is refused that has no good shape, and where it is wider than its parent in any
    /// dimension, and no root grant comes after the contract.
    #[test]
    fn a_wider_grant_is_refused() { cases_mission::GRANTS }

    /// Proves FV-APR.3: an approval that is expired when it is given, unknown or revoked before is refused.
    #[test]
    fn an_approval_out_of_order_is_refused() { cases_mission::APPROVALS }

    /// Proves FV-APR.1, FV-APR.2, FV-APR.3, FV-ACC.1, FV-CON.3, FV-CON.5, FV-GRT.1, FV-GRT.2, FV-GRT.3, T-80,
    /// FV-GRAPH.10: admission is refused where grant, approval, payload, budget or
    /// deadline do not allow exactly this action.
    #[test]
    fn an_admission_without_authority_is_refused() { cases_admission::ADMISSION }

    /// Proves HD-03.8, FV-ACC.5, FV-APR.1, FV-APR.2, FV-APR.3, FV-APR.4, FV-REC.2, HF-04.11, FV-GRAPH.14, FV-GRAPH.15,
    /// FV-GRAPH.16: dispatch checks again what admission saw, one change at a time, and an attempt is dispatched once.
    #[test]
    fn a_dispatch_is_refused_for_whatever_changed_since_admission() { cases_admission::DISPATCH }

    /// Proves FV-ACC.5, FV-ACC.6, FV-EFF.3, FV-GRAPH.14: a retry is refused unless the attempt before is confirmed not
    /// applied, its node is still to be worked at, and attempts, grant and budget are left.
    #[test]
    fn a_retry_out_of_order_is_refused() { cases_retry::RETRY }

    /// Proves FV-EFF.2, FV-REC.3, HF-03.4, NUM-2, T-20: a settlement is refused that confirms an effect by its id alone,
    /// without evidence, returns what can still be dispatched, or declares an uncertain effect undone.
    #[test]
    fn an_untruthful_settlement_is_refused() { cases_settlement::SETTLE }

    /// Proves FV-ACC.4: what was not applied gives its whole reservation back, so that a price for it is refused.
    #[test]
    fn what_was_not_applied_costs_nothing() { cases_settlement::NOT_APPLIED }

    /// Proves FV-EFF.4, HS-03.7, HS-03.8, T-20: a reconciliation is refused without a human, a conclusive look-up or the rule for
    /// lost reads, and without evidence that the host confirms.
    #[test]
    fn a_reconciliation_without_warrant_is_refused() { cases_settlement::RECONCILE }

    /// Proves FV-ASM.1, FV-APR.5: an acceptance is refused without a current passing verification.
    #[test]
    fn an_assessment_out_of_order_is_refused() { cases_settlement::ASSESSMENTS }

    /// Proves FV-RUN.4, FV-RUN.5, HS-06.6: a run is in one state of its life: what is being canceled is not canceled again,
    /// only what is being canceled finishes so, not while effects are open, and what ended so stays ended.
    #[test]
    fn a_cancellation_out_of_order_is_refused() { cases_settlement::CANCEL }

    /// Proves HF-05.5, HS-01.6, HS-01.8, HS-01.9, HS-01.12, HS-01.13, HS-03.5, HC-PH.1, REL-8, ERR-SCOPE_UNSUPPORTED: a
    /// hold is refused that allows no decision, stops what is not in flight, names a branch of another graph than the
    /// pinned one, has no room for the blockers that the ledger adds, that nobody can fence, or that nobody with
    /// authority places.
    #[test]
    fn a_hold_out_of_order_is_refused() { cases_holds::PLACE }

    /// Proves HC-RH.1, HS-01.1, HS-02.5, HS-02.7, HS-03.5, HS-03.7, HS-03.8, HS-03.9, HS-06.2, HS-06.3, HS-06.6, HD-05.8,
    /// REL-9, ERR-HOLD_NOT_CLEAR, ERR-HOLD_STATE: a hold stays where it is closed, disallowed, not clear, or another's to decide.
    #[test]
    fn a_resolution_out_of_order_is_refused() { cases_holds::RESOLVE }

    /// Proves HC-IV.1, HD-01.T6, HF-02.6, ERR-DELIVERY_STATE: an invalidation is refused that nobody with authority makes,
    /// that gives no reason or names no evidence, of what is no hand-off of the run or was invalidated before.
    #[test]
    fn an_invalidation_out_of_order_is_refused() { cases_invalidation::INVALIDATE }

    /// Proves HD-05.5, HD-01.T7, HD-03.8: what was invalidated is not claimed, received, given back, admitted, dispatched or
    /// tried again, even if no hold kept the run.
    #[test]
    fn work_on_an_invalidated_handoff_is_refused() { cases_invalidation::AFTERWARDS }

    /// Proves HC-RS.1, REL-10, SUM-1, SUM-2, SUM-3: a summary is refused of another manifest, by another author than the
    /// authenticated one, in a human's name by nobody human, and in a model's without an operation that was settled for it.
    #[test]
    fn a_summary_out_of_order_is_refused() { cases_summary::SUMMARY }

    /// Proves HC-RO.1, HS-03.11: ownership is not recovered without trusted authority and the current epoch, and a human's
    /// decision is named by a human alone.
    #[test]
    fn a_recovery_out_of_order_is_refused() { cases_holds::RECOVER }
}

/// Each row's requirement is claimed by a list that is not refused in the same way without the row.
#[test]
fn ablation_fails_a_list_that_claims_the_row() {
    let _alone = ALL_GUARDS_ON
        .write()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut part = String::from(
        "| row | requirement | fails without the row | claims the requirement too, and does not fail |\n|---|---|---|---|\n",
    );
    let mut problems = Vec::new();
    for guard in here() {
        ablation::disable(*guard);
        let claiming = LISTS.iter().filter(|list| list.proves(guard.id()));
        let (passing, failing): (Vec<&Listed>, Vec<&Listed>) =
            claiming.partition(|list| list.cases.iter().all(|case| case.is_refused().is_ok()));
        ablation::restore();
        let names = |lists: &[&Listed]| {
            let all: Vec<&str> = lists.iter().map(|list| list.name).collect();
            all.join(", ")
        };
        let (id, fails, rest) = (guard.id(), names(&failing), names(&passing));
        part.push_str(&format!("| {guard:?} | {id} | {fails} | {rest} |\n"));
        if failing.is_empty() {
            problems.push(format!(
                "no list that claims {id} fails without {guard:?}: {rest}"
            ));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(crate::parts::check("refusals", &part), Ok(()));
}

/// The rows of these commands.
fn here() -> &'static [Guard] {
    let at = |row: Guard| Guard::ALL.iter().position(|guard| *guard == row);
    let from = at(Guard::MissionNew).expect("the first of these rows");
    let to = at(Guard::RecoverHuman).expect("the last of these rows");
    &Guard::ALL[from..=to]
}

/// Proves ERR-PREC.3: no case is refused by accident; switched off one at a time, each guard turns out to be what
/// refused it.
#[test]
fn without_its_guard_no_case_is_refused_the_same_way() {
    let _alone = ALL_GUARDS_ON
        .write()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut problems = Vec::new();
    for case in all() {
        ablation::disable(case.0);
        if case.is_refused().is_ok() {
            problems.push(format!("{:?} is not what refuses its case", case.0));
        }
        ablation::restore();
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The guards of these commands all have a case; the other guards belong to the hand-off commands.
#[test]
fn every_guard_of_these_commands_has_a_case() {
    let covered: BTreeSet<Guard> = all().iter().map(|case| case.0).collect();
    let missing: Vec<_> = here()
        .iter()
        .filter(|guard| !covered.contains(guard))
        .collect();
    assert!(missing.is_empty(), "{missing:?} have no case");
}
