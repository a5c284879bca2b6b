//! Deciding again: a real store of every command has no finding, and an event that was forged whole, hash and chain, has one.
//! Invariant: plain verification is content with every forged store, so that what is found is found by deciding again.
//! The forged stores are written through the ledger itself, event by event.

use std::collections::BTreeSet;
use std::sync::Arc;

use aiws::decimal::{Dec, U64};
use aiws::error::Code;
use aiws::record::{ActorKind, AttemptStatus};
use praxis_engine::Shutdown;
use praxis_journal::verify::{DeepReport, Finding};
use praxis_journal::{Append, Conditions, FileDisk, Ledger, Options, VerifyReport};
use praxis_journal_format::{Sealed, export, seal};
use praxis_model::account::Posting;
use praxis_model::command::{Body, CommandType};
use praxis_model::event::Event;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use praxis_model::table::{Launch, launches};
use praxis_model::transition::Transition;
use praxis_model::{decide, evolve, redecide};
use praxis_plant::{self as plant, Plant};
use serde_json::json;
use tempfile::TempDir;

use crate::bodies::{self, Boundary, lin, wide};
use crate::oracle::export_of;
use crate::world::{HUMAN, SUPERVISOR, W1, World};

/// A run that is canceled in the end, after nearly everything was asked of it.
async fn first_life(w: &mut World) {
    w.work("a").await;
    let (one, two) = (w.delivery("a", "b"), w.delivery("a", "b2"));
    let token = w.claim(W1, &one).await;
    w.send(W1, bodies::release(&one, &token, 1)).await;
    w.receive(W1, &two).await;
    w.admit("c").await;
    w.dispatch("c").await;
    w.settle("c", "UNKNOWN", 0).await;
    let lost = w.attempt("c");
    let body = bodies::settle(
        &*w.state().await,
        "reconcile",
        &lost,
        "CONFIRMED_NOT_APPLIED",
        0,
    );
    w.send(HUMAN, body).await;
    let retry = json!({
        "type": "retry", "runId": w.run, "ownerEpoch": "1", "operationId": w.operation("c"),
        "attemptId": "at-c-2", "amount": "3", "policy": {"id": "policy", "revision": "1"},
    });
    w.send(W1, retry).await;
    w.admit("f").await;
    w.dispatch("f").await;
    w.settle("f", "CONFIRMED_APPLIED", 1).await;
    let approve = bodies::approve(&*w.state().await, "ap-1", &bodies::action("a"), 5000);
    w.send(HUMAN, approve).await;
    let revoke = json!({"type": "revokeApproval", "approvalId": "ap-1", "runId": w.run, "reason": "changed"});
    w.send(W1, revoke).await;
    w.clock.set(2000);
    let verify = bodies::assess(&*w.state().await, "verify", "v-1", "PASS");
    w.send(W1, verify).await;
    let hold = bodies::hold(&*w.state().await, "hold-1", "OPERATOR", &["RECHECK"]);
    w.send(HUMAN, hold).await;
    w.send(HUMAN, bodies::resolve("hold-1", "RECHECK", &[]))
        .await;
    w.send(SUPERVISOR, bodies::recover(1, None)).await;
    for kind in ["cancelRun", "finishCancelRun"] {
        let body = bodies::cancel(&*w.state().await, kind);
        w.send(HUMAN, body).await;
    }
}

/// A run that is completed, and recovered after its end.
async fn second_life(w: &mut World) {
    w.run = "second".to_owned();
    w.start_run(&lin()).await;
    w.work_with("a", b"what a made").await;
    let delivery = w.delivery("a", "b");
    w.receive(W1, &delivery).await;
    w.work("b").await;
    for (kind, actor, name, verdict) in [
        ("verify", W1, "v-2", "PASS"),
        ("accept", HUMAN, "c-2", "ACCEPTED"),
    ] {
        let body = bodies::assess(&*w.state().await, kind, name, verdict);
        w.send(actor, body).await;
    }
    let delivery = w.delivery("b", "end");
    w.receive(W1, &delivery).await;
    let admit = bodies::admit(&*w.state().await, "end", None);
    w.send(W1, admit).await;
    let end = Boundary::completed(json!({"disposition": "COMPLETED"}));
    w.commit("end", &end).await;
    let complete = bodies::complete(&*w.state().await);
    w.send(W1, complete).await;
    w.send(SUPERVISOR, bodies::recover(1, None)).await;
    w.send(SUPERVISOR, bodies::recover(2, None)).await;
    // Words about what was handed off, and a hand-off that turns out to be wrong, come after the end as well.
    let summary = bodies::summary(&*w.state().await, "a", ("HUMAN", HUMAN, None), "as agreed");
    w.send(HUMAN, summary).await;
    let wrong = bodies::invalidate(&*w.state().await, "a");
    w.send(HUMAN, wrong).await;
}

/// The events of a store in which every command was accepted; the store itself was decided again.
async fn history() -> Vec<Sealed> {
    let mut w = World::new(false, None).await;
    w.open_mission(&bodies::config()).await;
    let grant = json!({"type": "grant", "grant": {
        "grantId": "child", "parentGrantId": "root", "subject": "agent:w2", "actions": ["do"], "scopes": ["here"],
        "maxAmount": "2", "notAfterMs": "900000",
    }});
    w.send(HUMAN, grant).await;
    w.start_run(&wide()).await;
    first_life(&mut w).await;
    second_life(&mut w).await;
    let report = w.host().journal().verify_deep(&mut |_, _| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let events = export::read(&export_of(&w)).unwrap().events;
    let deep = DeepReport {
        reached: events.len() as u64,
        ..DeepReport::default()
    };
    assert_eq!(report.deep, Some(deep));
    w.close(Shutdown::Drain).await;
    events.into_iter().map(|(_, sealed)| sealed).collect()
}

/// Proves T-11: in a real store with every command of this build, each event is decided again and reaches its recorded
/// outcome, also after its run has ended.
#[tokio::test]
async fn t_11_every_command_is_decided_again() {
    let events = history().await;
    let seen: BTreeSet<CommandType> = events.iter().map(|sealed| sealed.event.kind).collect();
    let all: BTreeSet<CommandType> = CommandType::ALL.iter().copied().collect();
    assert_eq!(seen, all);
}

/// A forged store: the events before one, and that one changed and sealed anew. What both verifications say of it.
fn forged(events: &[Sealed], at: usize, changed: Event) -> (VerifyReport, VerifyReport) {
    let kept = TempDir::new().unwrap();
    let mut ledger = ledger(&kept);
    let last = seal(changed).expect("what is forged can be sealed");
    for sealed in events[..at].iter().chain([&last]) {
        let now_ms = sealed.event.at_ms.get();
        let append = Append {
            sealed: vec![sealed.clone()],
            conditions: conditions(&sealed.event),
        };
        for answer in plant::with(Plant::BoundUnchecked, || ledger.commit(&[append], now_ms)) {
            answer.expect("the writer takes it");
        }
    }
    ledger.flush_index().unwrap();
    let plain = ledger.verify(&mut |_, _| {}).unwrap();
    let deep = ledger.verify_deep(&mut |_, _| {}).unwrap();
    ledger.close().unwrap();
    (plain, deep)
}

fn ledger(kept: &TempDir) -> Ledger {
    let disk = Arc::new(FileDisk::new(kept.path()));
    Ledger::create(disk, "forged".parse().unwrap(), &Options::default()).unwrap()
}

fn conditions(event: &Event) -> Conditions {
    let mission = Subject::mission(event.subject.mission_id.clone());
    let launching = launches(event.kind) != Launch::Nothing;
    Conditions {
        head: true,
        fence: event
            .owner_epoch
            .map(|epoch| (event.stream.clone(), epoch.get())),
        gates: launching.then(|| vec![event.subject.clone(), mission]),
        ..Conditions::default()
    }
}

/// The run's state before an event of its stream.
fn before(events: &[Sealed], at: usize) -> RunState {
    let stream = &events[at].event.stream;
    let mut state = None;
    for sealed in &events[..at] {
        state = match state {
            _ if sealed.event.outcome.opens.contains(stream) => {
                Some(RunState::admitted(&sealed.event, &sealed.hash).unwrap())
            }
            Some(state) if sealed.event.stream == *stream => {
                Some(evolve::run(state, &sealed.event, &sealed.hash).unwrap())
            }
            state => state,
        };
    }
    state.expect("the run was admitted")
}

/// One forgery: which event, how it is changed, and what is found.
struct Forgery {
    name: &'static str,
    picked: fn(&Event) -> bool,
    change: fn(&[Sealed], usize, &mut Event),
    member: Option<&'static str>,
    says: &'static [&'static str],
}

fn is_task(event: &Event) -> bool {
    event.kind == CommandType::AdmitConsumer && !event.outcome.accounts.is_empty()
}

fn applies(event: &Event) -> bool {
    matches!(&event.command, Body::Settle(body) if body.attempt_id.as_str() == "at-run-f")
}

const FORGERIES: &[Forgery] = &[
    Forgery {
        name: "a settlement that releases more than was reserved",
        picked: applies,
        change: |_, _, event| {
            if let Posting::Settle { reserved, .. } = &mut event.outcome.accounts[0] {
                *reserved = Dec::from_u64(6);
            }
        },
        member: Some("/outcome/accounts/0/reserved"),
        says: &["decided \"3\"", "recorded \"6\""],
    },
    Forgery {
        name: "an admission without its reservation",
        picked: is_task,
        change: |_, _, event| event.outcome.accounts.clear(),
        member: Some("/outcome/accounts/0"),
        says: &["RESERVE", "recorded nothing"],
    },
    Forgery {
        name: "a posting too many",
        picked: |event| event.kind == CommandType::Verify,
        change: |events, _, event| {
            let reserve = events.iter().find(|sealed| is_task(&sealed.event)).unwrap();
            event.outcome.accounts = reserve.event.outcome.accounts.clone();
        },
        member: Some("/outcome/accounts/0"),
        says: &["decided nothing"],
    },
    Forgery {
        name: "a hold released by an agent",
        picked: |event| event.kind == CommandType::ResolveHold,
        change: |_, _, event| {
            event.actor_kind = ActorKind::Agent;
            for transition in &mut event.outcome.transitions {
                if let Transition::HoldClosed { resolution, .. } = transition {
                    resolution.actor_kind = ActorKind::Agent;
                }
            }
        },
        member: Some("/outcome"),
        says: &["decided a refusal", "AUTHORIZATION_DENIED"],
    },
    Forgery {
        name: "a dispatch of what is not the prepared attempt",
        picked: |event| event.kind == CommandType::Dispatch,
        change: |_, _, event| {
            for transition in &mut event.outcome.transitions {
                if let Transition::AttemptMoved { to, .. } = transition {
                    *to = AttemptStatus::Unknown;
                }
            }
        },
        member: Some("/outcome/transitions/0/to"),
        says: &["DISPATCHED", "UNKNOWN"],
    },
    Forgery {
        name: "an answer that says something else",
        picked: applies,
        change: |_, _, event| event.result = aiws::object! { "actual": "9" },
        member: Some("/result/actual"),
        says: &["decided \"1\"", "recorded \"9\""],
    },
    Forgery {
        name: "a command that names another policy than the authorizer's",
        picked: |event| event.kind == CommandType::Dispatch,
        change: |_, _, event| {
            if let Body::Dispatch(body) = &mut event.command {
                body.policy.revision = Dec::from_u64(9);
            }
        },
        member: Some("/command/policy/revision"),
        says: &["decided \"1\"", "recorded \"9\""],
    },
    Forgery {
        name: "a grant that was never in the register",
        picked: is_task,
        change: |_, _, event| {
            let mut value = json!({});
            for read in &mut event.facts.registers {
                value = bodies::json_of(&read.value);
                value["maxAmount"] = json!("50");
                read.value = crate::wire::record(&value);
            }
            assert_eq!(value["grantId"], "root");
        },
        member: Some("/facts/registers/0"),
        says: &["Grant root", "revision 1"],
    },
    Forgery {
        name: "an account that nobody could have read",
        picked: is_task,
        change: |_, _, event| {
            let row = event.facts.account.as_mut().unwrap();
            row.bound = Dec::from_u64(1000);
        },
        member: Some("/facts/account"),
        says: &["1000"],
    },
    Forgery {
        name: "a reservation past the budget, decided on an account of long ago",
        picked: |event| {
            is_task(event)
                && matches!(&event.command, Body::AdmitConsumer(body) if body.consumption.node_id.as_str() == "f")
        },
        change: |events, at, event| {
            let first = events.iter().find(|sealed| is_task(&sealed.event)).unwrap();
            event.facts.account = first.event.facts.account.clone();
            for proposal in event.facts.admissions.values_mut() {
                proposal.amount = Dec::from_u64(5);
            }
            let (command, facts) = (redecide::command(event), redecide::facts(event, &[]));
            let decision = decide::run(&before(events, at), &command, &facts).unwrap();
            event.outcome = decision.outcome;
            event.result = decision.result;
        },
        member: Some("/outcome/accounts/0"),
        says: &["past the bound"],
    },
    Forgery {
        name: "a time before the event before it",
        picked: |event| event.kind == CommandType::Verify,
        change: |events, at, event| {
            let earlier = U64(events[at - 1].event.at_ms.get() - 1);
            (event.at_ms, event.facts.authorized_at_ms) = (earlier, earlier);
        },
        member: None,
        says: &["does not follow", "the time"],
    },
];

/// Proves T-11: an event whose hash and chain are right and whose outcome is not what its command and facts give is
/// found, with its sequence, stream, revision, command and the first member that differs.
#[tokio::test]
async fn t_11_what_was_not_decided_so_is_found() {
    let events = history().await;
    for forgery in FORGERIES {
        let name = forgery.name;
        let picked = |sealed: &Sealed| (forgery.picked)(&sealed.event);
        let at = events.iter().position(picked).expect(name);
        let mut event = events[at].event.clone();
        (forgery.change)(&events, at, &mut event);
        assert_ne!(event, events[at].event, "{name}");
        let (plain, deep) = forged(&events, at, event);
        assert!(
            plain.is_sound() && plain.deep.is_none(),
            "{name}: {plain:?}"
        );
        let [found] = &deep.findings[..] else {
            panic!("{name}: {:?}", deep.findings);
        };
        let wanted = Finding {
            code: Code::StoreCorrupt,
            sequence: Some(at as u64 + 1),
            stream: Some(events[at].event.stream.clone()),
            revision: Some(events[at].event.revision.get()),
            command: Some(events[at].event.kind),
            member: forgery.member.map(str::to_owned),
            what: found.what.clone(),
        };
        assert_eq!(*found, wanted, "{name}");
        for part in forgery.says {
            assert!(found.what.contains(part), "{name}: {}", found.what);
        }
        let counted = DeepReport {
            reached: at as u64,
            differing: 1,
            ..DeepReport::default()
        };
        assert_eq!(deep.deep, Some(counted), "{name}");
    }
}
