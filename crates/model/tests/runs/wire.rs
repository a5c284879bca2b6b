//! The wire: strict JSON, then the protocol, then the shape; and what of a request is hashed and kept.

use aiws::error::Code;
use aiws::json::Value;
use aiws::object;
use aiws::token::ClaimToken;
use praxis_model::command::{Body, CommandType, Intent};
use praxis_model::table::{Family, row};
use praxis_model::wire::{self, Request};

use crate::world::{AGENT, ENGINE, HUMAN, World, boundary, id, lin, raw_token};

fn envelope(body: Value) -> Value {
    object! {
        "requestId": "q1",
        "expectedRevision": "7",
        "ownerEpoch": "1",
        "command": object! {
            "protocol": "aiws-handoff/1",
            "requestId": "q1",
            "expectedRevision": "7",
            "missionId": "mission",
            "runId": "run",
            "ownerEpoch": "1",
            "body": body,
        },
    }
}

fn bare(command: Value) -> Value {
    object! { "requestId": "q1", "expectedRevision": "7", "ownerEpoch": "1", "missionId": "mission", "command": command }
}

fn claim() -> Value {
    envelope(object! { "type": "claimDelivery", "deliveryId": "d1" })
}

fn complete() -> Value {
    bare(object! { "type": "completeRun", "runId": "run", "ownerEpoch": "1" })
}

fn parse(value: &Value) -> Result<Request, aiws::error::Error> {
    wire::parse(value.to_string().as_bytes())
}

/// The value with this member at a place, or without it.
fn with(mut value: Value, path: &[&str], member: Option<Value>) -> Value {
    fn set(value: &mut Value, path: &[&str], member: Option<Value>) {
        let Value::Object(members) = value else {
            panic!("no object")
        };
        match (path, member) {
            ([name], Some(member)) => drop(members.insert((*name).to_owned(), member)),
            ([name], None) => drop(members.remove(*name)),
            ([name, rest @ ..], member) => {
                set(members.get_mut(*name).expect("a member"), rest, member)
            }
            ([], _) => {}
        }
    }
    set(&mut value, path, member);
    value
}

fn refused(value: &Value, code: Code, pointer: &str) {
    let error = parse(value).expect_err("refused");
    assert_eq!(
        (error.code(), error.pointer.as_deref()),
        (code, Some(pointer)),
        "{error} of {value}"
    );
}

/// Proves HC-ENV.1, HF-01.1: the envelope has exactly its seven members.
#[test]
fn an_envelope_has_seven_members() {
    let request = parse(&claim()).expect("accepted");
    assert_eq!(request.command.body.kind(), CommandType::ClaimDelivery);
    assert_eq!(request.command.run_id, Some(id("run")));
    for member in [
        "requestId",
        "expectedRevision",
        "missionId",
        "runId",
        "ownerEpoch",
        "body",
    ] {
        let error = parse(&with(claim(), &["command", member], None)).expect_err(member);
        assert_eq!(error.code(), Code::SchemaInvalid, "{member}");
    }
    let error = parse(&with(claim(), &["command", "extra"], Some(1.into()))).expect_err("extra");
    assert_eq!(error.code(), Code::SchemaInvalid);
}

/// Proves ERR-UNSUPPORTED_PROTOCOL, HM-01.3: another protocol is named before unknown members, and strict JSON before
/// both (T-38).
#[test]
fn another_protocol_is_named_first() {
    let other = with(
        claim(),
        &["command", "protocol"],
        Some("aiws-handoff/2".into()),
    );
    refused(&other, Code::UnsupportedProtocol, "/command/protocol");
    let other = with(other, &["command", "unknown"], Some(1.into()));
    refused(&other, Code::UnsupportedProtocol, "/command/protocol");
    let text = other
        .to_string()
        .replacen('{', "{\"\\u0072equestId\":\"q0\",", 1);
    assert_eq!(
        wire::parse(text.as_bytes())
            .expect_err("a duplicate key")
            .code(),
        Code::SchemaInvalid
    );
}

/// Proves FV-CMD.1, FV-CMD.2, ERR-SCHEMA_INVALID: invented types, unknown members and missing ones are refused at
/// their place, in every layer.
#[test]
fn shapes_are_closed() {
    refused(
        &with(
            claim(),
            &["command", "body", "type"],
            Some("invented".into()),
        ),
        Code::SchemaInvalid,
        "/command/body/type",
    );
    refused(
        &with(
            complete(),
            &["command", "type"],
            Some("completeNode".into()),
        ),
        Code::SchemaInvalid,
        "/command/type",
    );
    refused(
        &with(complete(), &["command", "type"], None),
        Code::SchemaInvalid,
        "/command/type",
    );
    for path in [
        vec!["x"],
        vec!["command", "x"],
        vec!["command", "body", "x"],
    ] {
        let error = parse(&with(claim(), &path, Some(1.into()))).expect_err("an unknown member");
        assert_eq!(error.code(), Code::SchemaInvalid, "{path:?}");
    }
    let error =
        parse(&with(complete(), &["command", "x"], Some(1.into()))).expect_err("an unknown member");
    assert_eq!(error.code(), Code::SchemaInvalid);
    let recover = envelope(
        object! { "type": "recoverOwnership", "expectedEpoch": "1", "reason": "x", "decisionRef": Value::Null },
    );
    parse(&recover).expect("null is written");
    let error =
        parse(&with(recover, &["command", "body", "decisionRef"], None)).expect_err("missing");
    assert_eq!(error.code(), Code::SchemaInvalid);
}

/// Proves FV-CMD.7, HM-01.5, HS-03.6: hand-off bodies stand in envelopes and finite-v1 commands outside; there is no
/// command that raises a bound or grants permission in the hand-off set.
#[test]
fn families_stay_apart() {
    let sent_bare = bare(object! { "type": "claimDelivery", "deliveryId": "d1" });
    refused(&sent_bare, Code::SchemaInvalid, "/command/type");
    let wrapped = envelope(object! { "type": "completeRun", "runId": "run", "ownerEpoch": "1" });
    refused(&wrapped, Code::SchemaInvalid, "/command/body/type");
    let with_manifest = with(complete(), &["command", "manifest"], Some(object! {}));
    assert_eq!(
        parse(&with_manifest).expect_err("a manifest").code(),
        Code::SchemaInvalid
    );
    let handoff: Vec<&str> = CommandType::ALL
        .iter()
        .filter(|kind| row(**kind).family == Family::Handoff)
        .map(|kind| kind.name())
        .collect();
    let expected = [
        "commitBoundary",
        "claimDelivery",
        "acknowledgeDelivery",
        "releaseDelivery",
        "admitConsumer",
        "placeHold",
        "resolveHold",
        "invalidateHandoff",
        "recoverOwnership",
        "recordSummary",
    ];
    assert_eq!(handoff, expected);
}

/// Proves HC-ENV.1, REL-1: what stands in both layers is one value.
#[test]
fn both_layers_agree() {
    for (member, other) in [
        ("requestId", "q2"),
        ("expectedRevision", "8"),
        ("ownerEpoch", "2"),
    ] {
        refused(
            &with(claim(), &[member], Some(other.into())),
            Code::SchemaInvalid,
            &format!("/command/{member}"),
        );
    }
    refused(
        &with(claim(), &["missionId"], Some("other".into())),
        Code::SchemaInvalid,
        "/command/missionId",
    );
    refused(
        &with(complete(), &["ownerEpoch"], Some("2".into())),
        Code::SchemaInvalid,
        "/command/ownerEpoch",
    );
    refused(
        &with(complete(), &["missionId"], None),
        Code::SchemaInvalid,
        "/missionId",
    );
}

/// Proves HC-ENV.6, HD-03.3, HD-02.7: a caller says nothing of who it is, what it verified, or what time it is.
#[test]
fn callers_assert_nothing() {
    for member in [
        "actorId",
        "actorKind",
        "policy",
        "nowMs",
        "verified",
        "facts",
    ] {
        for path in [
            vec![member],
            vec!["command", member],
            vec!["command", "body", member],
        ] {
            let error = parse(&with(claim(), &path, Some("HUMAN".into()))).expect_err(member);
            assert_eq!(error.code(), Code::SchemaInvalid, "{path:?}");
        }
    }
}

/// Proves HC-ENV.2: a revision of a hundred digits is well-formed; it only never matches (T-57).
#[test]
fn large_revisions_are_well_formed() {
    let large = "9".repeat(100);
    let value = with(claim(), &["expectedRevision"], Some(large.as_str().into()));
    let value = with(
        value,
        &["command", "expectedRevision"],
        Some(large.as_str().into()),
    );
    assert_eq!(
        parse(&value)
            .expect("well-formed")
            .command
            .expected_revision
            .and_then(|number| number.to_u64()),
        None
    );
    let value = with(value, &["command", "expectedRevision"], Some("01".into()));
    assert_eq!(
        parse(&value).expect_err("a leading zero").code(),
        Code::SchemaInvalid
    );
}

/// Proves HD-02.10, HF-02.8: the raw token is in neither command nor digest material; another token is other material.
#[test]
fn tokens_become_fingerprints() {
    let token = raw_token(1);
    let ack = |token: &ClaimToken| {
        envelope(object! {
            "type": "acknowledgeDelivery",
            "deliveryId": "d1",
            "handoff": object! { "handoffId": "h1", "digest": "0".repeat(64) },
            "claimToken": token.expose(),
            "generation": "1",
        })
    };
    let request = parse(&ack(&token)).expect("accepted");
    let Body::AcknowledgeDelivery(body) = &request.command.body else {
        panic!("another body")
    };
    assert_eq!(body.claim_token, token.fingerprint());
    assert_eq!(
        request.token.as_ref().map(ClaimToken::expose),
        Some(token.expose())
    );
    assert!(
        !format!("{request:?}").contains(&token.expose()),
        "the token is printed"
    );
    assert_ne!(
        request.digest,
        parse(&ack(&raw_token(2))).expect("accepted").digest
    );
    let redacted = with(
        ack(&token),
        &["command", "body", "claimToken"],
        Some(token.fingerprint().to_string().into()),
    );
    assert_eq!(
        request.digest,
        aiws::digest::sha256(redacted.to_string().as_bytes())
    );
    refused(
        &with(
            ack(&token),
            &["command", "body", "claimToken"],
            Some("short".into()),
        ),
        Code::SchemaInvalid,
        "/command/body/claimToken",
    );
}

/// Proves HF-02.7, HF-02.8: equal material has an equal digest, whatever its order and spaces; revision and epoch are
/// part of it (T-23).
#[test]
fn the_digest_is_of_the_material() {
    let request = parse(&claim()).expect("accepted");
    let spaced = claim().to_string().replace(',', " ,\n ");
    assert_eq!(
        wire::parse(spaced.as_bytes()).expect("accepted").digest,
        request.digest
    );
    let value = with(claim(), &["expectedRevision"], Some("8".into()));
    let value = with(value, &["command", "expectedRevision"], Some("8".into()));
    assert_ne!(parse(&value).expect("accepted").digest, request.digest);
}

/// Proves HC-ENV.5: an intent says what and leaves revision, epoch and basis to the owner.
#[test]
fn intents_are_read() {
    let value = |intent: Value| object! { "requestId": "q1", "missionId": "mission", "runId": "run", "intent": intent };
    let read = |value: &Value| wire::intent(value.to_string().as_bytes());
    let admit = value(object! { "intent": "admit", "nodeId": "a", "admissionRef": Value::Null });
    let request = read(&admit).expect("accepted");
    assert!(matches!(request.intent, Intent::Admit(intent) if intent.node_id.as_str() == "a"));
    let token = raw_token(1);
    let release = object! { "type": "releaseDelivery", "deliveryId": "d1", "claimToken": token.expose(), "generation": "1" };
    let request = read(&value(object! { "intent": "command", "body": release })).expect("accepted");
    assert_eq!(
        request.token.as_ref().map(ClaimToken::fingerprint),
        Some(token.fingerprint())
    );
    let Intent::Command {
        body: Body::ReleaseDelivery(body),
    } = request.intent
    else {
        panic!("another intent")
    };
    assert_eq!(body.claim_token, token.fingerprint());
    let boundary = object! { "intent": "boundary", "nodeId": "a", "status": "COMPLETED", "result": object! {} };
    assert!(matches!(
        read(&value(boundary)).expect("accepted").intent,
        Intent::Boundary(_)
    ));
    let error = read(&value(
        object! { "intent": "command", "body": object! { "type": "cancelRun", "runId": "run" } },
    ));
    let error = error.expect_err("members are missing");
    assert!(
        error
            .pointer
            .is_some_and(|pointer| pointer.starts_with("/intent/body"))
    );
    assert!(
        read(&with(admit, &["expectedRevision"], Some("1".into()))).is_err(),
        "an intent states no revision"
    );
}

/// Proves FV-CMD.4: what is drafted and decided in code has the shape of the wire: its canonical form reads back equal.
#[test]
fn recorded_commands_read_back() {
    let mut world = World::with(lin());
    world.work("a").expect("a");
    world.receive("b").expect("b");
    world
        .approve("p1", &crate::world::action_of("b"))
        .expect("approve");
    world
        .commit(boundary("a", aiws::record::OutcomeStatus::Completed))
        .expect_err("done before");
    assert!(world.events.len() > 8 && [AGENT, ENGINE, HUMAN].len() == 3);
    for (event, _) in &world.events {
        let value = aiws::canonical::to_value(event).expect("canonical");
        let text = value.to_string();
        let back: praxis_model::event::Event =
            aiws::canonical::from_value(&aiws::strict::parse(text.as_bytes()).expect("strict"))
                .expect("the shape");
        assert_eq!(&back, event, "{}", event.kind.name());
    }
}

/// Proves ERR-PREC.1, FV-EFF.2, FV-EFF.4: members that contradict each other are no shape, whatever the state is.
#[test]
fn contradicting_members_are_no_shape() {
    let said = |kind: &str, outcome: &str, actual: &str| {
        bare(object! {
            "type": kind, "runId": "run", "attemptId": "a", "outcome": outcome, "actual": actual,
            "evidence": vec!["e"],
        })
    };
    let reconciled = said("reconcile", "UNKNOWN", "0");
    refused(&reconciled, Code::SchemaInvalid, "/command/outcome");
    let charged = said("settle", "UNKNOWN", "5");
    refused(&charged, Code::SchemaInvalid, "/command/actual");
    for sent in [
        said("settle", "UNKNOWN", "0"),
        said("reconcile", "CONFIRMED_APPLIED", "5"),
    ] {
        wire::parse(sent.to_string().as_bytes()).expect("a shape");
    }
    refused(
        &with(complete(), &["ownerEpoch"], Some(Value::Null)),
        Code::SchemaInvalid,
        "/command/ownerEpoch",
    );
}
