//! Forms: every command of the wire, what of it is a number, a list or `null`, and whose protocol it speaks.
//!
//! Invariant: the table of commands has one row per command type; each case changes one place of a valid request.

use aiws::decimal::Dec;
use aiws::error::Code;
use aiws::json::Value;
use aiws::record::{
    Artifact, Blocker, Criterion, CriterionStatus, Grant, HoldReason, OutcomeStatus,
};
use aiws::strict;
use praxis_model::command::{
    Body, BoundaryIntent, CommandType, CommitBoundary, Intent, PlaceHold, RevokeApproval,
};
use praxis_model::wire;

use crate::requests::*;
use crate::world::{AGENT, ENGINE, HUMAN, World, boundary, hold, id, lin};

/// Proves FV-CMD.1: every command has a form that is read, and it is that command.
#[test]
fn every_command_is_read() {
    for (kind, value) in all() {
        let request = parse(&value).unwrap_or_else(|error| panic!("{}: {error}", kind.name()));
        assert_eq!(request.command.body.kind(), kind);
    }
}

/// Proves HM-01.3, FV-CMD.3, ERR-UNSUPPORTED_PROTOCOL: protocol, edition, features and extensions are looked at
/// wherever they stand in a request, before the shape of anything and after strict JSON (T-38).
#[test]
fn protocols_are_looked_at_in_every_record() {
    let commit = CommandType::CommitBoundary;
    let open = CommandType::OpenMission;
    for (kind, place, text, pointer) in [
        (commit, "/command/protocol", r#""aiws-handoff/2""#, ""),
        (
            commit,
            "/command/body/manifest/protocol",
            r#""example-handoff/1""#,
            "",
        ),
        (
            commit,
            "/command/body/skipped/0/protocol",
            r#""aiws-handoff/2""#,
            "",
        ),
        (open, "/command/contract/edition", r#""0.5""#, ""),
        (
            open,
            "/command/contract/features",
            r#"["finite-v1","telepathy"]"#,
            "/1",
        ),
        (
            open,
            "/command/contract/extensions",
            r#"["aiws-limits/1"]"#,
            "/0",
        ),
        (open, "/command/protocol", r#""aiws-handoff/2""#, ""),
        (open, "/protocol", r#""aiws-handoff/2""#, ""),
    ] {
        let value = changed(kind, place, text);
        let pointer = format!("{place}{pointer}");
        is(
            &parse(&value).expect_err(place),
            Code::UnsupportedProtocol,
            &pointer,
        );
        // An unknown member anywhere, and a missing one, hide nothing of it.
        let odd = with(&value, "/x", Some(Value::Null));
        let odd = with(&odd, "/command/x", Some(Value::Null));
        let odd = with(&odd, "/requestId", None);
        is(
            &parse(&odd).expect_err(place),
            Code::UnsupportedProtocol,
            &pointer,
        );
        // What is no strict JSON is told first.
        let text = value
            .to_string()
            .replacen('{', r#"{"\u0072equestId":"q","#, 1);
        let error = wire::parse(text.as_bytes()).expect_err(place);
        assert_eq!(error.code(), Code::SchemaInvalid, "{error}");
    }
    // Protocol strings come before features.
    let both = changed(open, "/command/contract/features", r#"["telepathy"]"#);
    let both = with(&both, "/command/protocol", Some("aiws-handoff/2".into()));
    is(
        &parse(&both).expect_err("both"),
        Code::UnsupportedProtocol,
        "/command/protocol",
    );
    // What is no string is a matter of shape.
    let number = changed(commit, "/command/body/manifest/protocol", "1");
    is(
        &parse(&number).expect_err("a number"),
        Code::SchemaInvalid,
        "/command/body/manifest/protocol",
    );
}

/// Proves HM-01.3: an intent's body is looked at in the same way.
#[test]
fn protocols_are_looked_at_in_intents() {
    let read = |kind, place: &str| {
        let body = one(kind).pointer(place).expect(place).clone();
        let text = r#"{"requestId":"q","missionId":"m","runId":"r","intent":{"intent":"command"}}"#;
        with(
            &strict::parse(text.as_bytes()).expect(text),
            "/intent/body",
            Some(body),
        )
    };
    for (kind, at, place) in [
        (
            CommandType::CommitBoundary,
            "/command/body",
            "/manifest/protocol",
        ),
        (
            CommandType::CommitBoundary,
            "/command/body",
            "/skipped/0/protocol",
        ),
        (CommandType::OpenMission, "/command", "/contract/edition"),
    ] {
        let place = format!("/intent/body{place}");
        let value = with(&read(kind, at), &place, Some("other/1".into()));
        let value = with(&value, "/x", Some(Value::Null));
        let error = wire::intent(value.to_string().as_bytes()).expect_err(&place);
        is(&error, Code::UnsupportedProtocol, &place);
    }
}

/// Proves NUM-1, NUM-2: every number of every command may have a hundred digits. Whether it can ever match is decided
/// later (T-57); a number of a hundred and one digits, or with a leading zero, has no form.
#[test]
fn numbers_of_a_hundred_digits_are_well_formed() {
    let (large, huge) = ("9".repeat(100), "9".repeat(101));
    let mut seen = 0;
    for (kind, value) in all() {
        for place in numbers(&value, String::new()) {
            seen += 1;
            let refused = |text: &str| {
                let error = parse(&with(&value, &place, Some(text.into())));
                error.expect_err(&place).code() == Code::SchemaInvalid
            };
            assert!(refused(&huge) && refused("01"), "{}{place}", kind.name());
            // What stands in both layers is changed in both.
            let twins = ["expectedRevision", "ownerEpoch"];
            let twin = twins
                .iter()
                .find(|name| place.ends_with(**name) && place.matches('/').count() < 3);
            let mut mutant = with(&value, &place, Some(large.as_str().into()));
            for other in twin
                .iter()
                .flat_map(|name| [format!("/{name}"), format!("/command/{name}")])
            {
                if value.pointer(&other).is_some() {
                    mutant = with(&mutant, &other, Some(large.as_str().into()));
                }
            }
            let read = parse(&mutant);
            assert!(read.is_ok(), "{}{place}: {:?}", kind.name(), read.err());
        }
    }
    assert!(seen > 100, "the table has {seen} numbers");
}

/// Every place with the text "1".
fn numbers(value: &Value, place: String) -> Vec<String> {
    match value {
        Value::String(text) if text == "1" => vec![place],
        Value::Object(members) => {
            let inside = members.iter();
            inside
                .flat_map(|(name, value)| numbers(value, format!("{place}/{name}")))
                .collect()
        }
        Value::Array(items) => {
            let inside = items.iter().enumerate();
            inside
                .flat_map(|(index, value)| numbers(value, format!("{place}/{index}")))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Proves HS-03.5, HF-01.1, HC-IV.1, REL-11: a proposed hold allows something, says nothing twice, and what is optional is absent and
/// never `null`; what is nullable is there.
#[test]
fn lists_and_nulls_of_commands() {
    let (place, commit) = (CommandType::PlaceHold, CommandType::CommitBoundary);
    let recover = CommandType::RecoverOwnership;
    let (invalidate, summary) = (CommandType::InvalidateHandoff, CommandType::RecordSummary);
    let blocker = r#"{"kind":"OPERATOR","subjectId":"x","evidence":[]}"#;
    let stop = r#"{"operationId":"o","attemptId":"t","action":"DRAIN"}"#;
    let twice = |text: &str| format!("[{text},{text}]");
    for (kind, member, text, pointer) in [
        (place, "/hold/allowedDecisions", "[]".to_owned(), ""),
        (
            place,
            "/hold/allowedDecisions",
            r#"["CANCEL","CANCEL"]"#.to_owned(),
            "/1",
        ),
        (place, "/hold/blockers", twice(blocker), "/1"),
        (place, "/hold/blockers", "null".to_owned(), ""),
        (place, "/hold/stopDisposition", twice(stop), "/1"),
        (place, "/hold/stopDisposition", "null".to_owned(), ""),
        (place, "/hold/members", "[]".to_owned(), ""),
        (commit, "/hold/allowedDecisions", "[]".to_owned(), ""),
        (commit, "/skipped", "null".to_owned(), ""),
        (
            CommandType::ClaimDelivery,
            "/leaseMs",
            "null".to_owned(),
            "",
        ),
        (CommandType::ResolveHold, "/rule", "null".to_owned(), ""),
        (recover, "/reason", r#""""#.to_owned(), ""),
        (invalidate, "/reason", r#""""#.to_owned(), ""),
        (invalidate, "/evidence", "[]".to_owned(), ""),
        (invalidate, "/evidence", r#"["e","e"]"#.to_owned(), "/1"),
        (invalidate, "/hold", "null".to_owned(), ""),
        (summary, "/summary/text", r#""""#.to_owned(), ""),
        (summary, "/summary/revision", r#""1""#.to_owned(), ""),
        (summary, "/summary/createdAtMs", r#""1""#.to_owned(), ""),
        (
            summary,
            "/summary/author/operationId",
            "null".to_owned(),
            "",
        ),
        (invalidate, "/hold/scope", "{}".to_owned(), ""),
    ] {
        let member = format!("/command/body{member}");
        let error = parse(&changed(kind, &member, &text)).expect_err(&member);
        is(&error, Code::SchemaInvalid, &format!("{member}{pointer}"));
    }
    // An operation goes with a MODEL and with nobody else.
    for kind in ["HUMAN", "ENGINE"] {
        let text = format!("{kind:?}");
        let posing = changed(summary, "/command/body/summary/author/kind", &text);
        let error = parse(&posing).expect_err(kind);
        let pointer = "/command/body/summary/author/operationId";
        is(&error, Code::SchemaInvalid, pointer);
        parse(&with(&posing, pointer, Some(Value::Null))).expect("none is right");
    }
    for (kind, member) in [(commit, "hold"), (recover, "decisionRef")] {
        let pointer = format!("/command/body/{member}");
        let error = parse(&with(&one(kind), &pointer, None)).expect_err(member);
        is(&error, Code::SchemaInvalid, "/command/body");
        parse(&changed(kind, &pointer, "null")).expect("null is written");
    }
    for (kind, member) in [
        (place, "/hold/stopDisposition"),
        (commit, "/skipped"),
        (CommandType::ClaimDelivery, "/leaseMs"),
        (CommandType::ResolveHold, "/rule"),
        (invalidate, "/hold"),
    ] {
        let pointer = format!("/command/body{member}");
        parse(&with(&one(kind), &pointer, None)).expect("optional");
    }
}

/// Proves HC-ENV.5: an intent's optional members are absent, never `null`; its nullable one is there.
#[test]
fn nulls_of_intents() {
    let read = |intent: &str| {
        let text = format!(r#"{{"requestId":"q","missionId":"m","runId":"r","intent":{intent}}}"#);
        wire::intent(text.as_bytes())
    };
    let said = r#"{"intent":"boundary","nodeId":"n","status":"COMPLETED","result":{}"#;
    read(&format!("{said}}}")).expect("nothing more");
    for member in [
        "artifacts",
        "criteria",
        "approvals",
        "cause",
        "hold",
        "context",
    ] {
        let error = read(&format!("{said},{member:?}:null}}")).expect_err(member);
        assert_eq!(error.code(), Code::SchemaInvalid, "{member}");
    }
    let error = read(&format!(r#"{said},"approvals":["p","p"]}}"#));
    assert_eq!(error.expect_err("twice").code(), Code::SchemaInvalid);
    read(r#"{"intent":"admit","nodeId":"n","admissionRef":null}"#).expect("a control node");
    let error = read(r#"{"intent":"admit","nodeId":"n"}"#).expect_err("missing");
    assert_eq!(error.code(), Code::SchemaInvalid);
}

/// Proves FV-CMD.4: what a typed caller builds against the shape of the wire is refused at its place and recorded
/// nowhere: it would never read back.
#[test]
fn typed_intents_have_the_shape_of_the_wire() {
    let mut world = World::with(lin());
    world.apply_task("a").expect("a's operation");
    let before = world.clone();
    let blocker = Blocker {
        kind: HoldReason::Operator,
        subject_id: id("x"),
        evidence: Vec::new(),
    };
    let mut twice = hold("h", HoldReason::Operator);
    twice.blockers = vec![blocker.clone(), blocker];
    let met = Criterion {
        criterion_id: id("tests"),
        status: CriterionStatus::Met,
        evidence: Vec::new(),
    };
    let mut signed: Artifact = crate::world::artifact("text");
    signed.locator.key = id("https://host/key?sig=x");
    let completed = || boundary("a", OutcomeStatus::Completed);
    let unsaid = RevokeApproval {
        approval_id: id("p"),
        run_id: id("run"),
        reason: String::new(),
    };
    let cases = [
        (
            HUMAN,
            command(Body::PlaceHold(PlaceHold { hold: twice })),
            "/hold/blockers/1",
        ),
        (HUMAN, command(Body::RevokeApproval(unsaid)), "/reason"),
        (
            AGENT,
            Intent::Boundary(BoundaryIntent {
                criteria: vec![met.clone(), met],
                ..completed()
            }),
            "/manifest/outcome/criteria/1",
        ),
        (
            AGENT,
            Intent::Boundary(BoundaryIntent {
                artifacts: vec![signed],
                ..completed()
            }),
            "/manifest/artifacts/0/locator/key",
        ),
    ];
    for (actor, intent, pointer) in cases {
        let error = world.intend(actor, &intent).expect_err(pointer);
        is(&error, Code::SchemaInvalid, pointer);
    }
    assert_eq!(world, before, "a refusal changes nothing");
    world.commit(completed()).expect("the plain one");
}

fn command(body: Body) -> Intent {
    Intent::Command { body }
}

/// Proves REL-14: the recorded manifest has the mandatory checks whatever was sent, and keeps what was asked for beside
/// them.
#[test]
fn more_checks_are_kept() {
    let mut world = World::with(lin());
    world.apply_task("a").expect("a's operation");
    let intent = Intent::Boundary(boundary("a", OutcomeStatus::Completed));
    let draft = praxis_model::draft::command(world.state(), &intent, &world.facts(ENGINE));
    let Ok(Body::CommitBoundary(CommitBoundary {
        mut manifest,
        hold,
        skipped,
    })) = draft
    else {
        panic!("no boundary")
    };
    let mut asked = manifest.resume.required_checks.clone();
    asked.push(aiws::record::RequiredCheck::Other(id("SECURITY_REVIEW")));
    manifest.resume.required_checks = asked.clone();
    let handoff = manifest.handoff_id.clone();
    let body = CommitBoundary {
        manifest,
        hold,
        skipped,
    };
    world
        .send(ENGINE, Body::CommitBoundary(body))
        .expect("more checks");
    let kept = world.state().manifests.get(&handoff).expect("committed");
    assert_eq!(kept.manifest.resume.required_checks, asked);
}

/// Proves FV-GRT.2: a grant that is read is a sorted set of literal names with an amount in units.
#[test]
fn grants_are_sets() {
    let read = |text: &str| {
        parse(&changed(
            CommandType::GrantCommand,
            "/command/grant/actions",
            text,
        ))
    };
    let error = read(r#"["b","a"]"#).expect_err("unsorted");
    is(&error, Code::SchemaInvalid, "/command/grant/actions/1");
    let Body::GrantCommand(sent) = read(r#"["a","b"]"#).expect("sorted").command.body else {
        panic!("another body")
    };
    let Grant { max_amount, .. } = sent.grant;
    assert_eq!(max_amount, Dec::from_u64(1));
}
