//! Races: two callers at once, and the boundary decides.
//! Invariant: both are asked before either is answered; the outcome is one of those that the rules allow, and whoever
//! lost learns it. Scenarios.

use aiws::error::{Code, Error};
use aiws::id::DeliveryId;
use aiws::record::{DeliveryState, HoldReason, HoldState};

use crate::bodies::{self, lin};
use crate::oracle::money;
use crate::wire::id;
use crate::world::{ENGINE, HUMAN, SUPERVISOR, W1, W2, World, both};

/// Proves R-04, HD-02.4, CRD-3, HD-01.T3: the lease ends while the receipt reads its bytes; the time of the
/// commit decides, and at no time are there two live claims.
#[tokio::test]
async fn r_04_claim_expiry_at_equality() {
    // From 1045 a read of 54 ms is over at 1099, one of 55 at 1100, one of 60 at 1105.
    for (read_ms, received) in [(54, true), (55, false), (60, false)] {
        both(lin(), async |w: &mut World| {
            w.work_with("a", b"the report").await;
            let name = w.delivery("a", "b");
            let token = w.claim(W1, &name).await;
            w.clock.set(1045);
            let ack = w.request(w.ack_of(&name, &token).await).await.bytes();
            let claim = w.request(bodies::claim(&name)).await.bytes();
            w.shelf.next_read_takes(read_ms);
            let (engine, one, two) = (w.engine().clone(), w.capability(W1), w.capability(W2));
            let (acked, claimed) =
                tokio::join!(engine.apply(&one, &ack), engine.claim(&two, &claim));
            w.tokens.extend(
                claimed
                    .as_ref()
                    .ok()
                    .and_then(|claimed| claimed.token.as_ref())
                    .map(|token| token.expose()),
            );
            if received {
                acked.expect("a receipt at 1099");
                assert_eq!(
                    claimed.expect_err("a second claim").code(),
                    Code::RevisionConflict
                );
                w.refuse(W2, bodies::claim(&name), Code::DeliveryState)
                    .await;
                return;
            }
            assert_eq!(
                acked.expect_err("a late receipt").code(),
                Code::ClaimExpired
            );
            claimed.expect("the claim at 1100 or later");
            let state = w.state().await;
            let delivery = state.deliveries.get(&id::<DeliveryId>(&name)).unwrap();
            assert_eq!(
                (delivery.record.state, delivery.record.generation.get()),
                (DeliveryState::Claimed, 2)
            );
            let (ended, end) = &delivery.ended_claims[0];
            let live = delivery.record.claim.as_ref().unwrap();
            assert!(ended.expires_at_ms <= live.claimed_at_ms && end.at_ms <= live.claimed_at_ms);
            w.refuse_bytes(W1, &ack, Code::RevisionConflict).await;
        })
        .await;
    }
}

/// Proves R-06, FV-ACC.1, HD-03.7: ten runs admit 3 units each at once under a budget of 10; three get them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r_06_last_budget_unit() {
    for lost in [false, true] {
        let mut w = World::new(lost, None).await;
        w.open_mission(&bodies::config()).await;
        let mut asked = Vec::new();
        for number in 0..10 {
            w.run = format!("r{number}");
            w.start_run(&lin()).await;
            let admission = w.admission("a").await;
            asked.push(w.request(admission).await.bytes());
        }
        let mut all = tokio::task::JoinSet::new();
        for bytes in asked.clone() {
            let (engine, capability) = (w.engine().clone(), w.capability(W1));
            all.spawn(async move {
                engine
                    .apply(&capability, &bytes)
                    .await
                    .map(|answer| answer.revision)
            });
        }
        let answers: Vec<Result<u64, Error>> = all.join_all().await;
        let (accepted, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        assert_eq!((accepted.len(), refused.len(), money(&w)), (3, 7, (0, 9)));
        for refusal in refused {
            assert_eq!(refusal.expect_err("a refusal").code(), Code::BudgetExceeded);
        }
        // Asked again: the three get their answers, the seven are refused again, and nothing more is reserved.
        let mut replayed = 0;
        for bytes in &asked {
            match w.once(W1, bytes).await {
                Ok(answer) => {
                    assert!(answer.event.is_none());
                    replayed += 1;
                }
                Err(error) => assert_eq!(error.code(), Code::BudgetExceeded),
            }
        }
        assert_eq!((replayed, money(&w)), (3, (0, 9)));
        w.finish().await;
    }
}

/// Proves R-08, F-14, HC-RO.1, HS-06.2, HS-01.11, HS-03.2: two take a crashed run over at once, one of them does;
/// one restart hold; and of three holds each gates by itself.
#[tokio::test]
async fn r_08_f_14_two_recoveries_two_holds() {
    both(lin(), async |w: &mut World| {
        w.work("a").await;
        w.policy.rules().recovery.remove(ENGINE);
        w.restart().await;
        assert_eq!(w.state().await.epoch, 1);
        let one = w.request(bodies::recover(1, None)).await;
        let two = w.request(bodies::recover(1, Some("decision-1"))).await;
        let (engine, supervisor, human) = (
            w.engine().clone(),
            w.capability(SUPERVISOR),
            w.capability(HUMAN),
        );
        let bytes = [one.bytes(), two.bytes()];
        let (first, second) = tokio::join!(
            engine.apply(&supervisor, &bytes[0]),
            engine.apply(&human, &bytes[1])
        );
        let answers = [first, second];
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        let (loser, actor) = if answers[0].is_ok() {
            (two.clone(), HUMAN)
        } else {
            (one.clone(), SUPERVISOR)
        };
        let lost = answers.into_iter().find_map(Result::err).unwrap();
        assert_eq!(lost.code(), Code::RevisionConflict);
        let mut refreshed = loser;
        refreshed.revision = w.state().await.head.revision.to_string();
        w.refuse_sent(actor, &refreshed, Code::StaleOwner).await;
        let state = w.state().await;
        assert_eq!(state.epoch, 2);
        let restarts: Vec<_> = state
            .holds
            .values()
            .filter(|hold| hold.reason == HoldReason::Restart)
            .collect();
        assert_eq!(restarts.len(), 1);

        for (name, reason) in [("h1", "OPERATOR"), ("h2", "ARTIFACT")] {
            let hold = bodies::hold(&*w.state().await, name, reason, &["RECHECK", "CANCEL"]);
            w.send(HUMAN, hold).await;
        }
        let claim = bodies::claim(&w.delivery("a", "b"));
        w.send(HUMAN, bodies::resolve("h1", "RECHECK", &[])).await;
        w.refuse(W1, claim.clone(), Code::HoldActive).await;
        w.send(
            HUMAN,
            bodies::resolve(restarts[0].hold_id.as_str(), "RECHECK", &[]),
        )
        .await;
        w.refuse(W1, claim.clone(), Code::HoldActive).await;
        let open = |state: &praxis_model::run::RunState| {
            state
                .holds
                .values()
                .filter(|hold| hold.state == HoldState::Open)
                .count()
        };
        assert_eq!(open(&*w.state().await), 1);
        w.refuse(
            HUMAN,
            bodies::resolve("h2", "RECHECK", &[]),
            Code::HoldNotClear,
        )
        .await;
        w.send(HUMAN, bodies::resolve("h2", "RECHECK", &["evidence"]))
            .await;
        w.send(W1, claim).await;
        assert_eq!(open(&*w.state().await), 0);
    })
    .await;
}
