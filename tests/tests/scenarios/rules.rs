//! A rule decides: it releases a hold, and it lets a run go on whose process was killed.
//! Invariant: the rule is the one that the configuration approves, at its revision, as the host evaluated it; each
//! refusal breaks one of these. Every case runs twice, as all scenarios do.

use aiws::decimal::Dec;
use aiws::error::Code;
use aiws::record::{ActorKind, HoldReason, HoldState, Ref};
use praxis_model::run::RunState;
use serde_json::{Value as Json, json};

use crate::bodies::{self, lin};
use crate::wire::id;
use crate::world::{HUMAN, RULE, SUPERVISOR, W1, World, configured};

/// The rule at a revision; the configuration approves 3.
fn rule(revision: u64) -> Ref {
    Ref {
        id: id("look-again"),
        revision: Dec::from_u64(revision),
    }
}

/// A recheck in the name of the rule at a revision.
fn ruled(hold: &str, revision: u64, evidence: &[&str]) -> Json {
    let mut body = bodies::resolve(hold, "RECHECK", evidence);
    body["rule"] = bodies::json_of(&rule(revision));
    body
}

fn open_holds(state: &RunState) -> Vec<(String, HoldReason)> {
    let open = state
        .holds
        .values()
        .filter(|hold| hold.state == HoldState::Open);
    open.map(|hold| (hold.hold_id.to_string(), hold.reason))
        .collect()
}

/// Proves HS-03.9, HS-06.2, HS-06.1, HS-03.2, HC-RH.1: under RULE a run whose process was killed is held until the approved
/// rule, at its revision and with evidence of what it saw, lets go of that hold and of no other; where the rule allows it
/// beforehand, the next recovery opens none, and one that allows another revision does not count.
#[tokio::test]
async fn a_rule_decides_about_holds_and_restarts() {
    let mut config = bodies::config();
    config["restartPolicy"] = json!("RULE");
    config["rule"] = bodies::json_of(&rule(3));
    configured(lin(), config, async |w: &mut World| {
        w.work("a").await;
        w.restart().await;
        let state = w.state().await;
        let open = open_holds(&state);
        let [(restart, HoldReason::Restart)] = &open[..] else {
            panic!("one restart hold: {open:?}");
        };
        assert_eq!(state.epoch, 2);
        let claim = bodies::claim(&w.delivery("a", "b"));
        w.refuse(W1, claim.clone(), Code::HoldActive).await;
        let hold = bodies::hold(&*w.state().await, "h1", "OPERATOR", &["RECHECK", "CANCEL"]);
        w.send(HUMAN, hold).await;

        let evidence = &["evidence"][..];
        let denied = Code::AuthorizationDenied;
        // The host has no such rule, a newer one, or the approved one while another is named; nobody else names one,
        // and the engine does not decide alone.
        for (has, actor, body) in [
            (None, RULE, ruled(restart, 3, evidence)),
            (Some(4), RULE, ruled(restart, 3, evidence)),
            (Some(4), RULE, ruled(restart, 4, evidence)),
            (Some(3), RULE, ruled(restart, 4, evidence)),
            (Some(3), RULE, bodies::resolve(restart, "RECHECK", evidence)),
            (Some(3), HUMAN, ruled(restart, 3, evidence)),
            (
                Some(3),
                SUPERVISOR,
                bodies::resolve(restart, "RECHECK", evidence),
            ),
            (Some(3), W1, ruled(restart, 3, evidence)),
        ] {
            w.policy.rules().rule = has.map(|revision| (rule(revision), true));
            w.refuse(actor, body, denied).await;
        }
        w.policy.rules().rule = Some((rule(3), true));
        for unseen in [&[][..], &["hearsay"][..]] {
            let body = ruled(restart, 3, unseen);
            w.refuse(RULE, body, Code::HoldNotClear).await;
        }
        w.policy.rules().rule = Some((rule(3), false));
        w.refuse(RULE, ruled(restart, 3, evidence), Code::HoldNotClear)
            .await;
        let mut cancel = ruled(restart, 3, evidence);
        cancel["decision"] = json!("CANCEL");
        w.refuse(RULE, cancel, Code::HumanRequired).await;

        w.policy.rules().rule = Some((rule(3), true));
        w.send(RULE, ruled(restart, 3, evidence)).await;
        let state = w.state().await;
        let end = state
            .holds
            .get(&id::<aiws::id::HoldId>(restart))
            .and_then(|hold| hold.resolution.clone());
        let end = end.expect("a resolution");
        assert_eq!(
            (end.actor_kind, end.rule, end.policy),
            (ActorKind::Rule, Some(rule(3)), rule(3))
        );
        w.refuse(W1, claim.clone(), Code::HoldActive).await;
        w.send(RULE, ruled("h1", 3, evidence)).await;
        w.send(W1, claim.clone()).await;

        // The rule allows the next restart beforehand: the run goes on at once.
        w.restart().await;
        let state = w.state().await;
        assert_eq!((state.epoch, open_holds(&state)), (3, Vec::new()));
        w.send(W1, claim.clone()).await;
        // By the next one somebody changed the rule, and nobody approved that.
        w.policy.rules().rule = Some((rule(4), true));
        w.restart().await;
        let state = w.state().await;
        assert_eq!((state.epoch, open_holds(&state).len()), (4, 1));
        w.refuse(W1, claim, Code::HoldActive).await;
    })
    .await;
}
