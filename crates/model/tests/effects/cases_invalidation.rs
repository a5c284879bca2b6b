//! One refusal per guard: invalidateHandoff, and what is refused once a hand-off is invalid.
//!
//! Invariant: each case breaks one rule and would be accepted without it. Read by the tests of refusals.

use aiws::record::*;
use praxis_model::command::*;
use praxis_model::decision::{Decision, Rejection};
use praxis_model::facts::Facts;
use praxis_model::guard::Guard;

use crate::bench::*;
use crate::steps::*;
use crate::table::Case;

type Verdict = Result<Decision, Rejection>;

/// The invalidation of what `gate` handed over, changed in one place.
fn changed(bench: &Bench, who: Who, change: impl FnOnce(&mut InvalidateHandoff)) -> Verdict {
    let Body::InvalidateHandoff(mut body) = invalidate_body(bench.handoff("gate")) else {
        unreachable!("an invalidation")
    };
    change(&mut body);
    bench.decide(&Body::InvalidateHandoff(body), &bench.facts(who))
}

fn human(change: impl FnOnce(&mut InvalidateHandoff)) -> Verdict {
    changed(&Bench::work_ready(), Who::Human, change)
}

fn named(hold: &str) -> Option<HoldName> {
    Some(HoldName {
        hold_id: id(hold),
        owner: id("ann"),
    })
}

pub const INVALIDATE: &[Case] = &[
    Case(Guard::PolicyAllows, || {
        let bench = Bench::work_ready();
        let facts = Facts {
            allowed: false,
            ..bench.facts(Who::Human)
        };
        bench.decide(&invalidate_body(bench.handoff("gate")), &facts)
    }),
    Case(Guard::Invalidator, || {
        changed(&Bench::work_ready(), Who::Agent, |_| {})
    }),
    // A direct call without context is nobody's, and nothing can be attributed to it.
    Case(Guard::Invalidator, || {
        let bench = Bench::work_ready();
        let facts = Facts {
            actor_kind: ActorKind::Unattributed,
            ..bench.facts(Who::Human)
        };
        bench.decide(&invalidate_body(bench.handoff("gate")), &facts)
    }),
    Case(Guard::InvalidKnown, || {
        human(|body| body.handoff.handoff_id = id("ghost"))
    }),
    Case(Guard::InvalidKnown, || {
        human(|body| body.handoff.digest = aiws::digest::sha256(b"another"))
    }),
    Case(Guard::HoldNew, || {
        let bench = Bench::work_ready().held(HoldReason::Operator);
        changed(&bench, Who::Human, |body| body.hold = named("h"))
    }),
    Case(Guard::InvalidOnce, || {
        changed(&Bench::work_ready().invalidated(), Who::Human, |_| {})
    }),
    // Another reason and other evidence do not make it another invalidation.
    Case(Guard::InvalidOnce, || {
        changed(&Bench::work_ready().invalidated(), Who::System, |body| {
            body.reason = "again".to_owned();
            body.evidence = vec![id("another-review")];
        })
    }),
    Case(Guard::InvalidShape, || human(|body| body.evidence.clear())),
    Case(Guard::InvalidShape, || human(|body| body.reason.clear())),
    Case(Guard::InvalidShape, || {
        human(|body| body.evidence = vec![id("review"), id("review")])
    }),
];

/// The pending delivery of `gate`, before it is received.
fn pending() -> Bench {
    let mut bench = Bench::new();
    bench.pass_gate();
    bench
}

fn delivery(bench: &Bench) -> Delivery {
    let mut all = bench.run.deliveries.values();
    all.next().expect("a delivery").record.clone()
}

fn claim(bench: &Bench) -> Body {
    Body::ClaimDelivery(ClaimDelivery {
        delivery_id: delivery(bench).delivery_id,
        lease_ms: None,
    })
}

fn held_by(bench: &Bench) -> (aiws::digest::Digest, aiws::decimal::DecPlus) {
    let generation = delivery(bench).generation.get();
    let generation = aiws::decimal::DecPlus::new(dec(generation)).expect("positive");
    (aiws::digest::sha256(b"token"), generation)
}

/// The delivery is claimed, then invalidated; the holder goes on as if nothing had been.
fn fenced(body: impl FnOnce(&Bench) -> Body) -> Verdict {
    let mut bench = pending();
    bench.act(claim(&bench), Who::System);
    let bench = bench.invalidated().unheld();
    let facts = bench.with_material(bench.facts(Who::System));
    bench.decide(&body(&bench), &facts)
}

pub const AFTERWARDS: &[Case] = &[
    Case(Guard::NoOpenHold, || {
        let bench = Bench::work_admitted().invalidated();
        let facts = bench.with_material(bench.facts(Who::System));
        bench.decide(&dispatch_body(&bench, "work", "at-work"), &facts)
    }),
    Case(Guard::ResolveInputs, || {
        let mut bench = Bench::work_ready();
        let Body::InvalidateHandoff(body) = invalidate_body(bench.handoff("gate")) else {
            unreachable!("an invalidation")
        };
        let hold = named("h");
        bench.act(
            Body::InvalidateHandoff(InvalidateHandoff { hold, ..body }),
            Who::System,
        );
        let facts = confirming(bench.facts(Who::Human), &["review"]);
        bench.decide(
            &resolve_body("h", HoldDecision::Recheck, &["review"]),
            &facts,
        )
    }),
    Case(Guard::ClaimFree, || {
        let bench = pending().invalidated().unheld();
        bench.decide(&claim(&bench), &bench.facts(Who::System))
    }),
    Case(Guard::ReceiptOpen, || {
        fenced(|bench| {
            let (claim_token, generation) = held_by(bench);
            let Delivery {
                delivery_id,
                handoff,
                ..
            } = delivery(bench);
            Body::AcknowledgeDelivery(AcknowledgeDelivery {
                delivery_id,
                handoff,
                claim_token,
                generation,
            })
        })
    }),
    Case(Guard::ReceiptOpen, || {
        fenced(|bench| {
            let (claim_token, generation) = held_by(bench);
            Body::ReleaseDelivery(ReleaseDelivery {
                delivery_id: delivery(bench).delivery_id,
                claim_token,
                generation,
            })
        })
    }),
    Case(Guard::InputAcknowledged, || {
        let before = Bench::work_ready();
        let mut facts = before.with_material(before.facts(Who::System));
        let body = admit_body(&before, "work", &approved_work(), &mut facts);
        let bench = before.invalidated().unheld();
        bench.decide(&body, &facts)
    }),
    Case(Guard::DispatchConsumes, || {
        let bench = Bench::work_admitted().invalidated().unheld();
        let facts = bench.with_material(bench.facts(Who::System));
        bench.decide(&dispatch_body(&bench, "work", "at-work"), &facts)
    }),
    Case(Guard::DispatchConsumes, || {
        let mut bench = Bench::work_admitted();
        let facts = bench.with_material(bench.facts(Who::System));
        bench.act_on(&dispatch_body(&bench, "work", "at-work"), &facts);
        let returned = SettledOutcome::ConfirmedNotApplied;
        bench.act(settle_body("at-work", returned, 0, &["exit"]), Who::System);
        let bench = bench.invalidated().unheld();
        let body = retry_body(&bench, "work", "at-2", 10);
        bench.decide(&body, &bench.facts(Who::System))
    }),
];
