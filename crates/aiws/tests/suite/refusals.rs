//! Single wrong values in otherwise valid records, each with the place where it must be reported.
//! Invariant: one change, one refusal, one pointer.
//! Called by `cargo test`.

use aiws::error::Code;
use aiws::json::Value;
use aiws::record::*;
use aiws::strict::parse;

use crate::examples::{self, Example, read};
use crate::mutants::changed;

pub fn example(name: &str) -> Example {
    examples::all()
        .into_iter()
        .find(|example| example.name == name)
        .expect(name)
}

/// Checks that one changed place (JSON text; an empty text removes the member) is refused there.
#[track_caller]
pub fn refused(name: &str, place: &str, text: &str, pointer: &str) {
    let example = example(name);
    let change = (!text.is_empty()).then(|| parse(text.as_bytes()).expect(text));
    let mutant = changed(&example.value(), place, change);
    let error = (example.read)(&mutant).expect_err(&format!("{name}{place} = {text}"));
    assert_eq!(
        error.code,
        Code::SchemaInvalid,
        "{name}{place} = {text}: {error}"
    );
    assert_eq!(
        error.pointer.as_deref(),
        Some(pointer),
        "{name}{place} = {text}: {error}"
    );
    assert!(!error.message.contains('\u{1}'), "{error}");
}

#[track_caller]
pub fn accepted(name: &str, place: &str, text: &str) {
    let example = example(name);
    let change = (!text.is_empty()).then(|| parse(text.as_bytes()).expect(text));
    let mutant = changed(&example.value(), place, change);
    let again =
        (example.read)(&mutant).unwrap_or_else(|error| panic!("{name}{place} = {text}: {error}"));
    assert_eq!(again, mutant);
}

/// Sets are sorted and unique; texts and lists keep their bounds.
#[test]
fn sets_texts_and_lists() {
    for (name, place, text, pointer) in [
        ("grant", "/actions", r#"["b","a"]"#, "/actions/1"),
        ("grant", "/scopes", r#"["a","a"]"#, "/scopes/1"),
        ("grant", "/scopes", r#"["a",""]"#, "/scopes/1"),
        (
            "contract",
            "/authority/rootGrants/0/actions",
            r#"["b","a"]"#,
            "/authority/rootGrants/0/actions/1",
        ),
        (
            "contract",
            "/authority/rootGrants/0/parentGrantId",
            r#""g0""#,
            "/authority/rootGrants/0/parentGrantId",
        ),
        (
            "contract",
            "/extensions",
            r#"["aiws-handoff/1","aiws-handoff/1"]"#,
            "/extensions/1",
        ),
        ("graph", "/nodes", "[]", "/nodes"),
        (
            "graph",
            "/nodes/3/dependsOn",
            r#"["a","b","a"]"#,
            "/nodes/3/dependsOn/2",
        ),
        (
            "manifest",
            "/outcome/cause/code",
            r#""""#,
            "/outcome/cause/code",
        ),
        ("manifest", "/lineage/reason", r#""""#, "/lineage/reason"),
        (
            "consumption",
            "/join/selected",
            r#"["d","d"]"#,
            "/join/selected/1",
        ),
        (
            "assessment",
            "/invalidated/reason",
            r#""""#,
            "/invalidated/reason",
        ),
        ("summary", "/text", r#""""#, "/text"),
        ("invalidation", "/reason", r#""""#, "/reason"),
        ("invalidation", "/evidence", "[]", "/evidence"),
        ("invalidation", "/evidence", r#"["e","e"]"#, "/evidence/1"),
        (
            "invalidation",
            "/affectedDeliveries",
            r#"["d","d"]"#,
            "/affectedDeliveries/1",
        ),
    ] {
        refused(name, place, text, pointer);
    }
    let long = format!(
        "\"{}\"",
        "\u{e4}".repeat(aiws::limits::MAX_TEXT_SCALARS + 1)
    );
    refused("manifest", "/context/intent", &long, "/context/intent");
    refused(
        "manifest",
        "/context/decisions",
        &format!("[\"\",{long}]"),
        "/context/decisions/1",
    );
    let many = format!(
        "[{}]",
        vec![r#""x""#; aiws::limits::MAX_LIST_ITEMS + 1].join(",")
    );
    refused(
        "manifest",
        "/context/decisions",
        &many,
        "/context/decisions",
    );
    accepted("grant", "/scopes", r#"["*","a/*"]"#);
}

/// Proves FV-CON.4: an amount that is a fraction, a number literal, negative or empty is refused.
#[test]
fn fv_con_4_whole_amounts() {
    for text in [
        r#""1.5""#,
        "1",
        r#""-1""#,
        r#""""#,
        r#""01""#,
        r#""unlimited""#,
    ] {
        refused("contract", "/budget", text, "/budget");
        refused("grant", "/maxAmount", text, "/maxAmount");
        refused("admission", "/amount", text, "/amount");
    }
    assert!(parse(br#"{"budget":1.5}"#).is_err());
}

/// Proves NUM-3, F-11: positive where written: attempts, leases, fan-out, generations. Zero is never 'unlimited'.
#[test]
fn num_3_positive_members() {
    for (name, place) in [
        ("contract", "/maxAttempts"),
        ("config", "/leaseMs"),
        ("config", "/maxRecipients"),
        ("delivery", "/claim/generation"),
        ("delivery", "/acknowledgement/generation"),
        ("assessment", "/revision"),
    ] {
        for text in [r#""0""#, r#""-1""#, &format!("\"{}\"", "9".repeat(101))] {
            refused(name, place, text, place);
        }
    }
    accepted("pending", "/generation", r#""0""#);
}

/// Proves FV-CMD.3, HM-01.3: an unknown edition, feature or extension is refused before the shape is looked at, and also by the shape.
#[test]
fn fv_cmd_3_editions_and_features() {
    for (place, text, pointer) in [
        ("/edition", r#""0.5""#, "/edition"),
        ("/features", r#"["finite-v1","foo"]"#, "/features/1"),
        (
            "/extensions",
            r#"["aiws-handoff/1","aiws-limits/1"]"#,
            "/extensions/1",
        ),
        ("/extensions", r#"["aiws-handoff/2"]"#, "/extensions/0"),
    ] {
        let example = example("contract");
        let mutant = changed(
            &example.value(),
            place,
            Some(parse(text.as_bytes()).expect(text)),
        );
        let error = (example.read)(&mutant).expect_err(text);
        assert_eq!(
            (error.code, error.pointer.as_deref()),
            (Code::UnsupportedProtocol, Some(pointer))
        );
        assert!(aiws::canonical::from_value::<Contract>(&mutant).is_err());
    }
}

/// Proves HF-01.1: a manifest of another version of the protocol is refused as such.
#[test]
fn hf_01_1_other_versions() {
    for version in ["aiws-handoff/2", "aiws-handoff/1 ", "example-handoff/1", ""] {
        let mutant = changed(
            &examples::manifest().value(),
            "/protocol",
            Some(Value::from(version)),
        );
        let error = read::<Manifest>(&mutant).expect_err(version);
        assert_eq!(
            (error.code, error.pointer.as_deref()),
            (Code::UnsupportedProtocol, Some("/protocol"))
        );
    }
}

/// Proves HF-03.5: five outcomes are read, a sixth is refused.
#[test]
fn hf_03_5_outcomes() {
    for status in ["COMPLETED", "SKIPPED", "BLOCKED", "FAILED", "CANCELED"] {
        accepted("manifest", "/outcome/status", &format!("{status:?}"));
    }
    for status in ["SUCCEEDED", "HELD", "completed", "CANCELLED", "VERIFIED"] {
        refused(
            "manifest",
            "/outcome/status",
            &format!("{status:?}"),
            "/outcome/status",
        );
    }
    refused(
        "manifest",
        "/outcome/status",
        r#"{"COMPLETED":null}"#,
        "/outcome/status",
    );
}

/// Proves HF-04.2: an artifact reference is a closed shape with locator and version, digest, size, media type and retention.
#[test]
fn hf_04_2_artifact_shape() {
    let members = [
        "locator",
        "locator/store",
        "locator/key",
        "locator/version",
        "digest",
        "sizeBytes",
        "mediaType",
        "retentionOwner",
        "retainUntilMs",
    ];
    for member in members {
        let place = format!("/artifacts/0/{member}");
        let parent = place.rsplit_once('/').expect("member").0;
        refused("manifest", &place, "", parent);
    }
    accepted("manifest", "/artifacts/0/schemaDigest", "");
    refused(
        "manifest",
        "/artifacts/0/bytes",
        r#""aGk=""#,
        "/artifacts/0/bytes",
    );
}

/// Proves HF-04.3: nothing that a client could read as a URL, and so nothing that carries a credential, is a locator's
/// name; a plain name is, whatever else stands in it.
#[test]
fn hf_04_3_locators_carry_no_credentials() {
    for text in [
        // A scheme, whether known or not, and one behind something else.
        "https://host/key",
        "s3://bucket/key",
        "HTTPS://host",
        "data:text/plain;base64,c2VjcmV0",
        "javascript:x",
        "file:/etc/passwd",
        "mailto:a@b",
        "urn:x",
        "a+b-c.d1:x",
        "git@host://x",
        "x/https://host/key",
        // User information.
        "user:pw@host/key",
        "id@bucket/key",
        "//user@host/key",
        "a/user@host/key",
        "a@b@c/d",
        // A query or a fragment: a signature travels in one.
        "bucket/key?sig=abc",
        "key?abc",
        "what?",
        "x#1",
        "key#token",
        // Backslashes, which browsers read as slashes.
        "\\\\user@host\\key",
        "a\\b",
        // What would be one of these once decoded, once or twice.
        "key%3Fsig=abc",
        "user%40host/key",
        "%2f%2fhost",
        "key%253Fsig",
        // What a client strips before it reads.
        "ht\ntps:x",
        "\thttps:x",
        " https:x",
        "key ",
    ] {
        for part in ["store", "key", "version"] {
            let place = format!("/artifacts/0/locator/{part}");
            let text = Value::from(text).to_string();
            refused("manifest", &place, &text, &place);
        }
    }
    for text in [
        "plan.md",
        "runs/r1/plan.md",
        "a//b",
        "//host/key",
        "a@b",
        "npm/pkg@1.2",
        "100%",
        "50%-done",
        "%zz",
        "1:2",
        "a b",
        "runs/r1:plan",
        ":x",
        "sha256-ab/cd",
        "=&;",
        "0f",
    ] {
        accepted("manifest", "/artifacts/0/locator/key", &format!("{text:?}"));
    }
}

/// Proves HF-04.3: a refused locator is not repeated in the error, for it may be the credential.
#[test]
fn hf_04_3_refusals_keep_the_secret() {
    let example = example("manifest");
    for text in ["https://u:hunter2@host/", "k?sig=hunter2", "hunter2@h/k"] {
        let place = "/artifacts/0/locator/key";
        let mutant = changed(&example.value(), place, Some(Value::from(text)));
        let error = (example.read)(&mutant).expect_err(text);
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

/// A hold has members, nodes and decisions; its resolution fits its state; only RECHECK and CANCEL end it.
#[test]
fn hold_shape() {
    for (place, text, pointer) in [
        ("/members", "[]", "/members"),
        ("/members/1/nodeIds", "[]", "/members/1/nodeIds"),
        ("/members/1/nodeIds", r#""a""#, "/members/1/nodeIds"),
        ("/members/1/nodeIds", r#"["a",""]"#, "/members/1/nodeIds/1"),
        ("/members/1/nodeIds", r#"["a","a"]"#, "/members/1/nodeIds/1"),
        ("/allowedDecisions", "[]", "/allowedDecisions"),
        (
            "/allowedDecisions",
            r#"["RECHECK","RESUME"]"#,
            "/allowedDecisions/1",
        ),
        (
            "/resolution/decision",
            r#""RESUME""#,
            "/resolution/decision",
        ),
        ("/resolution", "null", "/resolution"),
        ("/state", r#""OPEN""#, "/resolution"),
        ("/state", r#""HELD""#, "/state"),
        ("/scope/kind", r#""MISSION""#, "/scope/kind"),
    ] {
        refused("hold", place, text, pointer);
    }
}

/// A control node has neither operation nor admission, an operation has both; each kind of assessment has its verdicts.
#[test]
fn members_that_must_fit_together() {
    for (name, place, text, pointer) in [
        ("consumption", "/operationId", "null", "/operationId"),
        ("consumption", "/admissionRef", "null", "/admissionRef"),
        (
            "consumption",
            "/entitlement",
            r#""CONTROL""#,
            "/operationId",
        ),
        ("assessment", "/kind", r#""ACCEPTANCE""#, "/verdict"),
        ("assessment", "/verdict", r#""REJECTED""#, "/verdict"),
        (
            "manifest",
            "/resume/requiredChecks",
            r#"["AUTHORITY","MATERIAL","LIMITS","OWNERSHIP"]"#,
            "/resume/requiredChecks",
        ),
        ("config", "/mappings/0/accepts", "[]", "/mappings/0/accepts"),
        ("config", "/restartPolicy", r#""MAYBE""#, "/restartPolicy"),
        ("config", "/rule", "null", "/rule"),
        ("config", "/recoveryWindowMs", r#""0""#, "/recoveryWindowMs"),
        ("config", "/joinPolicy", "{}", "/joinPolicy"),
    ] {
        refused(name, place, text, pointer);
    }
    let example = examples::config();
    for (list, pointer) in [
        ("/mappings", "/mappings/1"),
        ("/requiredSkip", "/requiredSkip/1"),
        ("/joinPolicy", "/joinPolicy/1"),
    ] {
        let value = example.value();
        let once = value.pointer(list).and_then(Value::as_array).expect(list)[0].clone();
        let twice = changed(&value, list, Some(Value::from(vec![once.clone(), once])));
        assert_eq!(
            (example.read)(&twice).expect_err(list).pointer.as_deref(),
            Some(pointer)
        );
    }
}

/// Proves HF-03.8: an outcome has its criteria, each with its evidence, and what is still open; none of these may be left
/// out, and no list may be something else.
#[test]
fn hf_03_8_an_outcome_lists_evidence_and_what_is_open() {
    let lists = [
        "/outcome/criteria",
        "/outcome/criteria/0/evidence",
        "/outcome/outstanding",
    ];
    for list in lists {
        refused("manifest", list, "null", list);
        refused("manifest", list, r#""none""#, list);
    }
    let members = [
        "/outcome/criteria/0/criterionId",
        "/outcome/criteria/0/status",
        "/outcome/outstanding/0/operationId",
        "/outcome/outstanding/0/attemptId",
        "/outcome/outstanding/0/status",
    ];
    // What is missing is reported where it should be.
    for place in lists.into_iter().chain(members) {
        let (parent, _) = place.rsplit_once('/').expect("a member");
        refused("manifest", place, "", parent);
    }
    accepted("manifest", "/outcome/criteria", "[]");
    accepted("manifest", "/outcome/outstanding", "[]");
}
