//! Work: claims, receipts, admission, accounts, holds, outcomes: invariants 14 to 19, 21, 22, 24 to 32, 43 to 47.
//!
//! Invariant: see the histories' own. Part of the oracle's tests.

use aiws::json::Value;
use aiws::object;
use praxis_simulations::oracle::{Lookup, Response};

use super::history::*;
use super::{accepts, breaks};

#[test]
fn a_delivery_is_claimed_once_at_a_time() {
    accepts(|it| {
        it.delivered()?;
        it.store(&claim("d1", 1, 2_000))?;
        it.store(&claim("d1", 2, 2_100))?;
        assert!(it.oracle.seen().contains("reclaimed-after-expiry"));
        Ok(())
    });
    breaks(14, |it| {
        it.delivered()?;
        it.store(&claim("d1", 1, 2_000))?;
        it.store(&claim("d1", 2, 2_099))
    });
}

#[test]
fn an_expired_claim_stays_expired() {
    accepts(|it| {
        it.delivered()?;
        it.store(&claim("d1", 1, 2_000))?;
        it.store(&acknowledge("d1", 1, 2_099))
    });
    // The log has seen a later time, in another run.
    breaks(15, |it| {
        it.delivered()?;
        it.store(&claim("d1", 1, 2_000))?;
        it.store(&Draft::new(R2, "verify").at(2_100))?;
        it.store(&acknowledge("d1", 1, 2_001))
    });
}

#[test]
fn only_the_holder_uses_a_claim() {
    breaks(16, |it| {
        it.delivered()?;
        it.store(&acknowledge("d1", 1, 2_001))
    });
    breaks(16, |it| {
        it.delivered()?;
        it.store(&claim("d1", 1, 2_000))?;
        it.store(&acknowledge("d1", 1, 2_001).says("claimToken", hex([2; 32])))
    });
    breaks(16, |it| {
        it.delivered()?;
        it.store(&claim("d1", 1, 2_000))?;
        let mut given = Draft::new(R1, "releaseDelivery").at(2_001);
        given = given
            .says("claimToken", hex([1; 32]))
            .says("generation", "2")
            .moves(object! {
                "kind": "DELIVERY_MOVED", "deliveryId": "d1", "from": "CLAIMED", "to": "PENDING",
            });
        it.store(&given)
    });
}

#[test]
fn a_claim_has_a_higher_generation() {
    breaks(17, |it| {
        it.delivered()?;
        it.store(&claim("d1", 1, 2_000))?;
        it.store(&claim("d1", 1, 2_100))
    });
}

#[test]
fn a_receipt_stays() {
    breaks(18, |it| {
        it.delivered()?;
        it.store(&claim("d1", 1, 2_000))?;
        it.store(&acknowledge("d1", 1, 2_001))?;
        it.store(&claim("d1", 2, 2_500))
    });
}

#[test]
fn a_receipt_rests_on_what_was_read() {
    breaks(19, |it| {
        it.delivered()?;
        it.store(&claim("d1", 1, 2_000))?;
        let mut draft = acknowledge("d1", 1, 2_001);
        draft.materials.clear();
        it.store(&draft)
    });
    breaks(19, |it| {
        it.delivered()?;
        it.store(&claim("d1", 1, 2_000))?;
        it.oracle.damaged_material(material());
        it.store(&acknowledge("d1", 1, 2_001))
    });
    breaks(19, |it| {
        it.delivered()?;
        it.store(&claim("d1", 1, 2_000))?;
        it.store(&acknowledge("d1", 1, 2_001).says("handoff", handoff("h2")))
    });
}

#[test]
fn no_receipt_is_for_another_run() {
    breaks(21, |it| {
        it.delivered()?;
        it.store(&claim("d1", 1, 2_000))?;
        it.store(&Draft {
            run: R2,
            ..acknowledge("d1", 1, 2_001)
        })
    });
    breaks(21, |it| it.store(&claim("d9", 1, 2_000)));
}

#[test]
fn an_activation_is_admitted_once() {
    accepts(|it| {
        it.store(&admit("o", "a", 10, "EXTERNAL"))?;
        it.store(&admit("p", "b", 10, "EXTERNAL"))
    });
    breaks(22, |it| {
        it.store(&admit("o", "a", 10, "EXTERNAL"))?;
        it.store(&admit("o", "b", 10, "EXTERNAL"))
    });
}

#[test]
fn attempts_and_grants_bound_work() {
    let failed = |it: &mut History, operation, attempt| {
        it.oracle.response(attempt, Response::NotApplied);
        it.store(&confirm("settle", attempt, "DISPATCHED", None))?;
        let _: &str = operation;
        Ok(())
    };
    accepts(|it| {
        it.working("o", "a", "EXTERNAL")?;
        failed(it, "o", "a")?;
        it.store(&retry("o", "b", 10))
    });
    breaks(24, |it| {
        it.working("o", "a", "EXTERNAL")?;
        failed(it, "o", "a")?;
        it.store(&retry("o", "b", 10))?;
        it.store(&moved("dispatch", "b", "PREPARED", "DISPATCHED"))?;
        failed(it, "o", "b")?;
        it.store(&retry("o", "c", 10))
    });
    breaks(24, |it| it.store(&admit("o", "a", 41, "EXTERNAL")));
    breaks(24, |it| {
        it.store(&admit("o", "a", 10, "EXTERNAL").at(1_000_000))
    });
    breaks(24, |it| {
        let mut draft = admit("o", "a", 10, "EXTERNAL");
        draft.reads = vec![
            object! { "register": register("GRANT", "g"), "revision": "2", "value": Value::Null },
        ];
        it.store(&draft)
    });
}

#[test]
fn a_reservation_fits() {
    breaks(25, |it| {
        it.store(&admit("o", "a", 40, "EXTERNAL"))?;
        it.store(&admit("p", "b", 40, "EXTERNAL"))?;
        it.store(&admit("q", "c", 21, "EXTERNAL"))
    });
    breaks(25, |it| {
        let mut draft = admit("o", "a", 40, "EXTERNAL");
        draft.accounts.clear();
        it.store(&draft)
    });
}

#[test]
fn nothing_goes_below_zero() {
    breaks(26, |it| {
        it.store(&Draft::new(R1, "settle").posts(release(1)))
    });
}

#[test]
fn a_reservation_ends_once() {
    breaks(27, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.store(&admit("p", "b", 10, "EXTERNAL"))?;
        it.oracle.response("a", Response::NotApplied);
        it.store(&confirm("settle", "a", "DISPATCHED", None).posts(release(10)))
    });
    breaks(27, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.store(&admit("p", "b", 10, "EXTERNAL"))?;
        it.oracle.response("a", Response::NotApplied);
        it.store(&confirm("settle", "a", "DISPATCHED", None))?;
        it.store(&confirm("settle", "a", "CONFIRMED_NOT_APPLIED", None))
    });
}

#[test]
fn a_late_settlement_is_charged() {
    let late = |it: &mut History, posts: bool| {
        it.working("o", "a", "EXTERNAL")?;
        it.lost("a")?;
        it.store(
            &Draft::new(R1, "cancelRun")
                .human()
                .moves(ended("CANCELING")),
        )?;
        it.applied("o", "a");
        it.oracle.response("a", Response::Applied { cost: 12 });
        let mut draft = confirm("reconcile", "a", "UNKNOWN", Some(12)).human();
        if !posts {
            draft.accounts.clear();
        }
        it.store(&draft)
    };
    accepts(|it| {
        late(it, true)?;
        assert!(it.oracle.seen().contains("late-settlement"));
        Ok(())
    });
    breaks(29, |it| late(it, false));
    breaks(29, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.applied("o", "a");
        it.oracle.response("a", Response::Applied { cost: 10 });
        let mut draft = confirm("settle", "a", "DISPATCHED", Some(10));
        draft.accounts = vec![release(10)];
        it.store(&draft)
    });
}

#[test]
fn what_is_held_starts_nothing() {
    accepts(|it| {
        it.store(&hold("k", "OPERATOR"))?;
        it.store(&resolve("k"))?;
        it.store(&admit("o", "a", 10, "EXTERNAL"))
    });
    breaks(30, |it| {
        it.store(&hold("k", "OPERATOR"))?;
        it.store(&admit("o", "a", 10, "EXTERNAL"))
    });
    breaks(30, |it| {
        let mut draft = Draft::new(None, "grant");
        draft.gates = vec![
            object! { "scope": scope(None), "gate": object! { "kind": "CANCEL" }, "closed": true },
        ];
        it.store(&draft)?;
        it.store(&Draft::new(R1, "completeRun"))
    });
    breaks(30, |it| {
        it.store(&Draft::new(R1, "completeRun").moves(ended("COMPLETED")))?;
        it.store(&admit("o", "a", 10, "EXTERNAL"))
    });
}

#[test]
fn a_hold_closes_its_gate() {
    breaks(31, |it| {
        let mut draft = hold("k", "OPERATOR");
        draft.gates.clear();
        it.store(&draft)
    });
}

#[test]
fn a_hold_ends_by_its_authority() {
    accepts(|it| {
        it.store(&hold("k", "COST_LIMIT"))?;
        it.store(&resolve("k").human())
    });
    breaks(32, |it| {
        it.store(&hold("k", "COST_LIMIT"))?;
        it.store(&resolve("k"))
    });
    breaks(32, |it| {
        it.store(&hold("k", "UNCERTAIN_EFFECT"))?;
        it.store(&Draft {
            decision_ref: None,
            ..resolve("k").human()
        })
    });
    breaks(32, |it| {
        it.store(&hold("k", "OPERATOR"))?;
        it.store(&Draft {
            actor_kind: "AGENT",
            ..resolve("k")
        })
    });
}

#[test]
fn a_lost_answer_is_no_failure() {
    accepts(|it| {
        it.working("o", "a", "EXTERNAL")?;
        it.lost("a")
    });
    breaks(43, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.oracle.response("a", Response::Lost);
        it.store(&confirm("settle", "a", "DISPATCHED", None))
    });
    breaks(43, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.lost("a")?;
        it.oracle.looked_up("a", Lookup::Nothing);
        it.store(&Draft {
            class: "LOOKUP",
            ..confirm("reconcile", "a", "UNKNOWN", None)
        })
    });
}

#[test]
fn the_unknown_keeps_its_reservation() {
    breaks(44, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.oracle.response("a", Response::Lost);
        it.store(&moved("settle", "a", "DISPATCHED", "UNKNOWN").posts(release(10)))
    });
}

#[test]
fn the_unknown_is_not_tried_again() {
    breaks(45, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.lost("a")?;
        it.store(&retry("o", "b", 10))
    });
    breaks(45, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.oracle.called(1, "a")
    });
    breaks(45, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.lost("a")?;
        it.oracle.called(1, "a")
    });
}

#[test]
fn the_unknown_is_resolved_by_evidence() {
    let lost = |it: &mut History, effect| {
        it.working("o", "a", effect)?;
        it.lost("a")
    };
    accepts(|it| {
        lost(it, "EXTERNAL")?;
        it.applied("o", "a");
        it.oracle
            .looked_up("a", Lookup::Conclusive(Response::Applied { cost: 10 }));
        it.store(&Draft {
            class: "LOOKUP",
            ..confirm("reconcile", "a", "UNKNOWN", Some(10))
        })
    });
    accepts(|it| {
        lost(it, "READ")?;
        it.applied("o", "a");
        let mut draft = confirm("reconcile", "a", "UNKNOWN", None);
        (draft.class, draft.decision_ref) = ("LOST_READ_RULE", Some("ann-rules"));
        draft.transitions = vec![object! {
            "kind": "ATTEMPT_MOVED", "attemptId": "a", "from": "UNKNOWN", "to": "CONFIRMED_NOT_APPLIED", "actual": "10",
        }];
        draft.accounts = vec![spend(10, 10)];
        it.store(&draft)?;
        it.oracle.rest()
    });
    breaks(46, |it| {
        lost(it, "EXTERNAL")?;
        it.store(&Draft {
            evidence: Vec::new(),
            ..confirm("reconcile", "a", "UNKNOWN", None).human()
        })
    });
    breaks(46, |it| {
        lost(it, "EXTERNAL")?;
        it.store(&Draft {
            actor_kind: "AGENT",
            ..confirm("reconcile", "a", "UNKNOWN", None)
        })
    });
}

#[test]
fn the_world_agrees() {
    breaks(47, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.oracle.response("a", Response::Applied { cost: 10 });
        it.store(&confirm("settle", "a", "DISPATCHED", Some(10)))
    });
    breaks(47, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.applied("o", "a");
        it.oracle.response("a", Response::NotApplied);
        it.store(&confirm("settle", "a", "DISPATCHED", None))
    });
    // It is applied after all, and then once more.
    breaks(47, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.oracle.response("a", Response::NotApplied);
        it.store(&confirm("settle", "a", "DISPATCHED", None))?;
        it.applied("o", "a");
        it.oracle.rest()
    });
    breaks(47, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.applied("o", "a");
        it.applied("o", "a");
        it.store(&Draft::new(R1, "verify"))
    });
}
