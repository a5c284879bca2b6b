//! Every row of the tables of refusals is refused by its own guard; without that guard it is not.
//!
//! Invariant: one test process switches guards off one at a time, and nothing else decides meanwhile.

use std::collections::BTreeSet;
use std::sync::{RwLock, RwLockReadGuard};

use praxis_model::guard::{Guard, ablation};

use crate::table::Case;
use crate::{
    cases_admission, cases_holds, cases_invalidation, cases_mission, cases_retry, cases_settlement,
    cases_summary,
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

fn all() -> Vec<Case> {
    let tables = [
        cases_mission::MISSION,
        cases_mission::GRANTS,
        cases_mission::APPROVALS,
        cases_admission::ADMISSION,
        cases_admission::DISPATCH,
        cases_retry::RETRY,
        cases_settlement::SETTLE,
        cases_settlement::RECONCILE,
        cases_settlement::ASSESSMENTS,
        cases_settlement::CANCEL,
        cases_invalidation::INVALIDATE,
        cases_invalidation::AFTERWARDS,
        cases_summary::SUMMARY,
        cases_holds::PLACE,
        cases_holds::RESOLVE,
        cases_holds::RECOVER,
    ];
    tables.concat()
}

/// Proves FV-CMD.3, FV-CON.5, HM-01.1, HM-01.3: a contract with unknown features or extensions opens nothing, and
/// no run starts without the negotiated protocol or past the deadline.
#[test]
fn a_mission_or_run_out_of_order_is_refused() {
    refused(cases_mission::MISSION);
}

/// Proves FV-GRT.1, FV-GRT.2, FV-CON.2: a derived grant is refused where it is wider than its parent in any
/// dimension, and no root grant comes after the contract.
#[test]
fn a_wider_grant_is_refused() {
    refused(cases_mission::GRANTS);
}

/// Proves FV-APR.3: an approval that is expired when it is given, unknown or revoked before is refused.
#[test]
fn an_approval_out_of_order_is_refused() {
    refused(cases_mission::APPROVALS);
}

/// Proves FV-APR.1, FV-ACC.1, T-80, FV-GRAPH.10: admission is refused where grant, approval, payload, budget or
/// deadline do not allow exactly this action.
#[test]
fn an_admission_without_authority_is_refused() {
    refused(cases_admission::ADMISSION);
}

/// Proves HD-03.8, FV-APR.2, FV-APR.4, FV-REC.2, HF-04.11, FV-GRAPH.14, FV-GRAPH.16: dispatch checks again what
/// admission saw, one change at a time.
#[test]
fn a_dispatch_is_refused_for_whatever_changed_since_admission() {
    refused(cases_admission::DISPATCH);
}

/// Proves FV-ACC.5, FV-ACC.6, FV-EFF.3: a retry is refused unless the attempt before is confirmed not applied and
/// attempts, grant and budget are left.
#[test]
fn a_retry_out_of_order_is_refused() {
    refused(cases_retry::RETRY);
}

/// Proves FV-EFF.2, FV-REC.3, NUM-2, T-20: a settlement is refused that charges what was not applied, returns what
/// can still be dispatched, or declares an uncertain effect undone.
#[test]
fn an_untruthful_settlement_is_refused() {
    refused(cases_settlement::SETTLE);
}

/// Proves FV-EFF.4, HS-03.7, T-20: a reconciliation is refused without a human, a conclusive look-up or the rule for
/// lost reads, and without evidence that the host confirms.
#[test]
fn a_reconciliation_without_warrant_is_refused() {
    refused(cases_settlement::RECONCILE);
}

/// Proves FV-ASM.1, FV-APR.5: an acceptance is refused without a current passing verification.
#[test]
fn an_assessment_out_of_order_is_refused() {
    refused(cases_settlement::ASSESSMENTS);
}

/// Proves FV-RUN.4, HS-06.6: a cancellation is refused twice, unfinished while effects are open, and final.
#[test]
fn a_cancellation_out_of_order_is_refused() {
    refused(cases_settlement::CANCEL);
}

/// Proves HS-01.6, HS-01.9, HS-01.12, HS-01.13, HC-PH.1, ERR-SCOPE_UNSUPPORTED: a hold is refused that nobody can
/// fence, or that nobody with authority places.
#[test]
fn a_hold_out_of_order_is_refused() {
    refused(cases_holds::PLACE);
}

/// Proves HC-RH.1, HS-02.5, HS-03.5, HS-03.7, HS-03.8, HS-03.9, HS-06.3, HD-05.8, REL-9, ERR-HOLD_NOT_CLEAR,
/// ERR-HOLD_STATE: a hold stays where it is closed, disallowed, not clear, or another's to decide.
#[test]
fn a_resolution_out_of_order_is_refused() {
    refused(cases_holds::RESOLVE);
}

/// Proves HC-IV.1, HD-01.T6, HF-02.6, ERR-DELIVERY_STATE: an invalidation is refused that nobody with authority makes,
/// that gives no reason or names no evidence, of what is no hand-off of the run or was invalidated before.
#[test]
fn an_invalidation_out_of_order_is_refused() {
    refused(cases_invalidation::INVALIDATE);
}

/// Proves HD-05.5, HD-01.T7, HD-03.8: what was invalidated is not claimed, received, given back, admitted, dispatched or
/// tried again, even if no hold kept the run.
#[test]
fn work_on_an_invalidated_handoff_is_refused() {
    refused(cases_invalidation::AFTERWARDS);
}

/// Proves HC-RS.1, REL-10, SUM-1, SUM-2, SUM-3: a summary is refused of another manifest, by another author than the
/// authenticated one, in a human's name by nobody human, and in a model's without an operation that was settled for it.
#[test]
fn a_summary_out_of_order_is_refused() {
    refused(cases_summary::SUMMARY);
}

/// Proves HC-RO.1: ownership is not recovered without trusted authority and the current epoch.
#[test]
fn a_recovery_out_of_order_is_refused() {
    refused(cases_holds::RECOVER);
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
    let from = Guard::ALL
        .iter()
        .position(|guard| *guard == Guard::MissionNew)
        .expect("the first of these rows");
    let to = Guard::ALL
        .iter()
        .position(|guard| *guard == Guard::RecoverHuman)
        .expect("the last of these rows");
    let missing: Vec<_> = Guard::ALL[from..=to]
        .iter()
        .filter(|guard| !covered.contains(guard))
        .collect();
    assert!(missing.is_empty(), "{missing:?} have no case");
}
