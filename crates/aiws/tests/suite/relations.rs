//! Members of one record that must fit together: state and what goes with it, lists without repetition.
//! Invariant: each case breaks one relation of a valid record and is refused at the member that breaks it.
//! Called by `cargo test`.

use aiws::json::Value;
use aiws::record::*;
use aiws::strict::parse;

use crate::examples::read;
use crate::mutants::changed;
use crate::refusals::{accepted, example, refused};

/// The example with the items of its list doubled, the second one changed in one member.
fn doubled(name: &str, list: &str, change: Option<(&str, &str)>) -> (Value, String) {
    let value = example(name).value();
    let items = value.pointer(list).and_then(Value::as_array).expect(list);
    let mut again = items[0].clone();
    if let Some((member, text)) = change {
        again = changed(&again, member, Some(parse(text.as_bytes()).expect(text)));
    }
    let at = items.len();
    let mut items = items.to_vec();
    items.push(again);
    let twice = changed(&value, list, Some(Value::Array(items)));
    (twice, format!("{list}/{at}"))
}

/// Proves HD-01.T11: claim and receipt are those of the delivery's state, and speak of this delivery.
#[test]
fn hd_01_t11_deliveries_tell_one_story() {
    for (name, place, text, pointer) in [
        ("pending", "/deliveryId", r#""d2""#, "/recipient/deliveryId"),
        (
            "pending",
            "/recipient/deliveryId",
            r#""d2""#,
            "/recipient/deliveryId",
        ),
        ("pending", "/state", r#""CLAIMED""#, "/claim"),
        ("pending", "/state", r#""ACKNOWLEDGED""#, "/acknowledgement"),
        ("pending", "/generation", r#""1""#, "/generation"),
        ("claimed", "/state", r#""PENDING""#, "/claim/end"),
        ("claimed", "/state", r#""EXCLUDED""#, "/claim/end"),
        ("claimed", "/state", r#""INVALIDATED""#, "/claim/end"),
        ("claimed", "/state", r#""ACKNOWLEDGED""#, "/acknowledgement"),
        ("claimed", "/claim", "null", "/claim"),
        (
            "claimed",
            "/claim/end",
            r#"{"cause":"RELEASED","atMs":"12"}"#,
            "/claim/end",
        ),
        ("claimed", "/generation", r#""1""#, "/claim/generation"),
        ("claimed", "/generation", r#""0""#, "/claim/generation"),
        ("delivery", "/state", r#""PENDING""#, "/acknowledgement"),
        ("delivery", "/state", r#""CLAIMED""#, "/acknowledgement"),
        ("delivery", "/state", r#""EXCLUDED""#, "/acknowledgement"),
        ("delivery", "/acknowledgement", "null", "/acknowledgement"),
        ("delivery", "/claim", "null", "/claim"),
        (
            "delivery",
            "/acknowledgement/deliveryId",
            r#""d2""#,
            "/acknowledgement/deliveryId",
        ),
        (
            "delivery",
            "/acknowledgement/handoff/handoffId",
            r#""h2""#,
            "/acknowledgement/handoff",
        ),
        (
            "delivery",
            "/acknowledgement/claimant",
            r#""v""#,
            "/acknowledgement/claimant",
        ),
        (
            "delivery",
            "/acknowledgement/generation",
            r#""2""#,
            "/acknowledgement/generation",
        ),
        (
            "delivery",
            "/claim/ownerEpoch",
            r#""2""#,
            "/acknowledgement/ownerEpoch",
        ),
        ("delivery", "/generation", r#""2""#, "/claim/generation"),
    ] {
        refused(name, place, text, pointer);
    }
    let hash = format!("{:?}", crate::examples::sha('c'));
    let place = "/acknowledgement/tokenHash";
    refused("delivery", place, &hash, place);
    // The receipt stands whether its claim's lease has ended or not (HD-01.T9), and when its manifest is invalidated.
    accepted("delivery", "/claim/end", "null");
    accepted("delivery", "/state", r#""INVALIDATED""#);
    accepted("pending", "/state", r#""INVALIDATED""#);
    accepted("pending", "/state", r#""EXCLUDED""#);
}

/// Proves HD-01.T3: a claim that was given back stays with its delivery, ended.
#[test]
fn hd_01_t3_ended_claims_stay() {
    let end = parse(br#"{"cause":"RELEASED","atMs":"12"}"#).expect("an end");
    let value = changed(&example("claimed").value(), "/claim/end", Some(end));
    for state in ["PENDING", "EXCLUDED", "INVALIDATED"] {
        let value = changed(&value, "/state", Some(Value::from(state)));
        assert_eq!(read::<Delivery>(&value).as_ref(), Ok(&value), "{state}");
    }
}

/// Proves HS-03.5: a hold ends by a decision that it allows, RELEASED by RECHECK and CANCELED by CANCEL.
#[test]
fn hs_03_5_holds_end_as_they_allow() {
    for (place, text, pointer) in [
        ("/state", r#""CANCELED""#, "/resolution/decision"),
        (
            "/resolution/decision",
            r#""CANCEL""#,
            "/resolution/decision",
        ),
        ("/allowedDecisions", r#"["CANCEL"]"#, "/resolution/decision"),
    ] {
        refused("hold", place, text, pointer);
    }
    accepted("hold", "/allowedDecisions", r#"["RECHECK"]"#);
    let canceled = changed(
        &example("hold").value(),
        "/state",
        Some(Value::from("CANCELED")),
    );
    let canceled = changed(
        &canceled,
        "/resolution/decision",
        Some(Value::from("CANCEL")),
    );
    assert_eq!(read::<Hold>(&canceled).as_ref(), Ok(&canceled));
}

/// Proves HF-01.1, REL-4, REL-7: what a record lists once stands in it once, even where the rest of it differs.
#[test]
fn rel_4_nothing_stands_twice() {
    let cases: [(_, _, Option<(&str, &str)>, _); 11] = [
        ("hold", "/members", Some(("/nodeIds", r#"["b"]"#)), ""),
        ("hold", "/blockers", None, ""),
        (
            "hold",
            "/stopDisposition",
            Some(("/action", r#""CANCEL""#)),
            "/attemptId",
        ),
        (
            "consumption",
            "/inputs",
            Some(("/handoff/handoffId", r#""h2""#)),
            "/deliveryId",
        ),
        (
            "manifest",
            "/inputs",
            Some(("/handoff/handoffId", r#""h2""#)),
            "",
        ),
        (
            "manifest",
            "/recipients",
            Some(("/nodeId", r#""other""#)),
            "",
        ),
        (
            "manifest",
            "/recipients",
            Some(("/deliveryId", r#""other""#)),
            "",
        ),
        (
            "manifest",
            "/outcome/criteria",
            Some(("/status", r#""MET""#)),
            "",
        ),
        (
            "manifest",
            "/outcome/outstanding",
            Some(("/status", r#""DISPATCHED""#)),
            "",
        ),
        (
            "manifest",
            "/producer/operations",
            Some(("/attemptIds", r#"["t2"]"#)),
            "",
        ),
        ("manifest", "/resume/requiredChecks", None, ""),
    ];
    for (name, list, change, member) in cases {
        let (twice, pointer) = doubled(name, list, change);
        let error = (example(name).read)(&twice).expect_err(list);
        let pointer = format!("{pointer}{member}");
        assert_eq!(
            error.pointer,
            Some(pointer),
            "{name}{list} {change:?}: {error}"
        );
    }
    for member in ["/nodeId", "/activationId", "/inputPort"] {
        let (other, _) = doubled("manifest", "/recipients", Some(("/deliveryId", r#""d2""#)));
        let place = format!("/recipients/1{member}");
        let other = changed(&other, &place, Some(Value::from("other")));
        assert_eq!(read::<Manifest>(&other).as_ref(), Ok(&other), "{member}");
    }
}

/// Proves REL-7: each delivery plays one part in a choice: an input and chosen, closed, or left over.
#[test]
fn rel_7_choices_are_consistent() {
    for (place, text, pointer) in [
        ("/join/selected", "[]", "/join/selected"),
        ("/join/selected", r#"["d9"]"#, "/join/selected"),
        ("/join/selected", r#"["d1","d9"]"#, "/join/selected"),
        ("/inputs", "[]", "/join/selected"),
        ("/join/excluded", r#"["d2","d1"]"#, "/join/excluded/1"),
        (
            "/join/unselectedAcknowledged",
            r#"["d3","d1"]"#,
            "/join/unselectedAcknowledged/1",
        ),
        (
            "/join/unselectedAcknowledged",
            r#"["d2"]"#,
            "/join/unselectedAcknowledged/0",
        ),
    ] {
        refused("consumption", place, text, pointer);
    }
    accepted("consumption", "/join/excluded", "[]");
}

/// Proves HF-03.9: an effect whose outcome is confirmed is not outstanding.
#[test]
fn hf_03_9_outstanding_is_unresolved() {
    let place = "/outcome/outstanding/0/status";
    for status in ["PREPARED", "DISPATCHED", "UNKNOWN"] {
        accepted("manifest", place, &format!("{status:?}"));
    }
    for status in ["CONFIRMED_APPLIED", "CONFIRMED_NOT_APPLIED"] {
        refused("manifest", place, &format!("{status:?}"), place);
    }
}

/// Proves REL-14: the five mandatory checks are always there; a producer may ask for more, under any id.
#[test]
fn rel_14_required_checks() {
    let place = "/resume/requiredChecks";
    let all = ["AUTHORITY", "MATERIAL", "LIMITS", "OWNERSHIP", "HOLDS"];
    for missing in all {
        let rest: Vec<&str> = all.into_iter().filter(|name| *name != missing).collect();
        refused(
            "manifest",
            place,
            &Value::from(rest.clone()).to_string(),
            place,
        );
        let renamed: Vec<&str> = rest.into_iter().chain(["authority"]).collect();
        refused("manifest", place, &Value::from(renamed).to_string(), place);
    }
    let more: Vec<&str> = ["SECURITY_REVIEW"]
        .into_iter()
        .chain(all)
        .chain(["x"])
        .collect();
    accepted("manifest", place, &Value::from(more).to_string());
    let again: Vec<&str> = all.into_iter().chain(["x", "x"]).collect();
    refused(
        "manifest",
        place,
        &Value::from(again).to_string(),
        "/resume/requiredChecks/6",
    );
    let empty: Vec<&str> = all.into_iter().chain([""]).collect();
    refused(
        "manifest",
        place,
        &Value::from(empty).to_string(),
        "/resume/requiredChecks/5",
    );
}

/// Limits are not built, so no record has a member for them, nor for a tolerance that nothing would read (T-86).
#[test]
fn members_that_nothing_reads_are_absent() {
    for (name, place, text) in [
        ("contract", "/limitsScopeId", r#""s""#),
        ("admission", "/limitScopes", "[]"),
        ("config", "/clockToleranceMs", r#""0""#),
        ("config", "/activeTimeRule", r#""SUM""#),
        ("manifest", "/migration", "{}"),
    ] {
        refused(name, place, text, place);
    }
}

/// Proves SUM-3, HF-01.1: a summary names an operation exactly where a model wrote it.
#[test]
fn sum_3_an_operation_goes_with_a_model() {
    let place = "/author/operationId";
    for kind in ["HUMAN", "ENGINE"] {
        refused("summary", "/author/kind", &format!("{kind:?}"), place);
    }
    refused("summary", place, "null", place);
    refused("summary", "/author/kind", r#""AGENT""#, "/author/kind");
}
