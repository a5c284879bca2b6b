//! The published schemas and the record types say the same.
//! Invariant: every record, member and name of the code is in a schema, every definition of a schema is in the code.
//! Called by `cargo test`; what is sent, envelopes and commands, is compared in `tests/tests/schemas`.

use std::collections::{BTreeMap, BTreeSet};

use aiws::digest::sha256;
use aiws::json::Value;
use aiws::published::{PUBLISHED, Published, schema_of};
use aiws::record::*;

use crate::agree::{DIFFERENCES, Seen, Subject};
use crate::examples;
use crate::mutants::changed;

const FINITE: &str = "finite-v1";
pub const HANDOFF: &str = "aiws-handoff-1";

pub fn schema(name: &str) -> &'static Published {
    schema_of(name).expect(name)
}

/// The sources of the records, each with the schemas that have what it declares.
const SOURCES: &[(&str, &[&str])] = &[
    (
        include_str!("../../src/record/contract.rs"),
        &[FINITE, HANDOFF],
    ),
    (include_str!("../../src/record/graph.rs"), &[FINITE]),
    (include_str!("../../src/record/work.rs"), &[FINITE]),
    (include_str!("../../src/record/artifact.rs"), &[HANDOFF]),
    (include_str!("../../src/record/config.rs"), &[HANDOFF]),
    (include_str!("../../src/record/delivery.rs"), &[HANDOFF]),
    (include_str!("../../src/record/hold.rs"), &[HANDOFF]),
    (include_str!("../../src/record/invalidation.rs"), &[HANDOFF]),
    (include_str!("../../src/record/manifest.rs"), &[HANDOFF]),
    (include_str!("../../src/record/mod.rs"), &[HANDOFF]),
    (include_str!("../../src/record/summary.rs"), &[HANDOFF]),
];

/// What a schema defines beside the types of its own sources: kinds of text, types of another source that it needs,
/// and what is sent, which `tests/tests/schemas` holds to the types of the commands.
const BESIDE: &[(&str, &[&str])] = &[
    (
        FINITE,
        &[
            "Id",
            "Name",
            "SomeText",
            "Dec",
            "DecPlus",
            "Ms",
            "U64",
            "Positive",
            "Digest",
            "Json",
            "Object",
            "Ref",
            "EmptyConfig",
            "Request",
            "Command",
        ],
    ),
    (
        HANDOFF,
        &[
            "Id",
            "Name",
            "Text",
            "SomeText",
            "Dec",
            "DecPlus",
            "Ms",
            "U64",
            "Positive",
            "Digest",
            "ClaimToken",
            "Json",
            "Object",
            "PlainName",
            "JoinMode",
            "AttemptStatus",
            "Request",
            "EnvelopeRequest",
            "OpenMissionRequest",
            "Envelope",
            "Body",
            "HoldProposal",
            "HoldName",
            "SummaryProposal",
        ],
    ),
];

/// The public types that a source declares; `Checked` is a wrapper and no record.
fn declared(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut in_names = false;
    for line in source.lines() {
        in_names = line == "names! {" || in_names && line != "}";
        let rest = line
            .strip_prefix("pub struct ")
            .or_else(|| line.strip_prefix("pub enum "))
            .or_else(|| {
                line.strip_prefix("    ")
                    .filter(|rest| in_names && rest.ends_with(" {"))
            });
        let name: String = rest
            .unwrap_or_default()
            .chars()
            .take_while(|char| char.is_ascii_alphanumeric())
            .collect();
        if name.starts_with(|first: char| first.is_ascii_uppercase()) && name != "Checked" {
            found.insert(name);
        }
    }
    found
}

/// The closed sets of names, as the code has them.
pub fn sets() -> BTreeMap<&'static str, Vec<&'static str>> {
    macro_rules! sets {
        ($($name:ident)*) => { [$((stringify!($name), $name::ALL.iter().map(|one| one.name()).collect()),)*
            ("NodeKind", NodeKind::NAMES.to_vec())] };
    }
    let sets: [(&str, Vec<&str>); 30] = sets! {
        Edition ExecutionKind JoinMode Lifecycle OperationStatus AttemptStatus SettledOutcome EffectClass
        ApprovalDecision AssessmentKind VerificationVerdict AcceptanceVerdict AssessmentVerdict SkipAction RestartPolicy
        DeliveryState ClaimEndCause ConsumptionState Entitlement HoldState HoldReason HoldScopeKind HoldDecision
        StopAction Protocol OutcomeStatus CriterionStatus ActorKind AuthorKind
    };
    BTreeMap::from(sets)
}

/// Proves HF-01.1: a published schema and the reader give the same answer to every example of a record and to every
/// mutant of it, except for what no schema can say; and the members that they know are the same at every place.
#[test]
fn hf_01_1_schema_and_reader_agree() {
    let sets = sets();
    let names: BTreeSet<&str> = sets.values().flatten().copied().collect();
    let names: Vec<&str> = names.into_iter().collect();
    let mut seen = Seen::default();
    for example in examples::all() {
        let definition = definition(example.name);
        for published in PUBLISHED {
            if !published
                .definitions()
                .expect(FINITE)
                .iter()
                .any(|one| one == definition)
            {
                continue;
            }
            let read = |value: &Value| (example.read)(value).map(drop);
            let subject = Subject {
                name: example.name,
                schema: published,
                definition,
                value: example.value(),
                read: &read,
                open: example.open,
            };
            seen.judge(&subject, &names);
        }
    }
    seen.finish(false);
    assert!(seen.judged > 20_000, "{}", seen.judged);
}

/// The definition that an example is an instance of.
pub fn definition(example: &str) -> &'static str {
    match example {
        "contract" => "Contract",
        "graph" => "Graph",
        "manifest" => "Manifest",
        "delivery" | "pending" | "claimed" => "Delivery",
        "consumption" => "Consumption",
        "hold" => "Hold",
        "invalidation" => "Invalidation",
        "summary" => "Summary",
        "config" => "HandoffConfig",
        "operation" => "Operation",
        "attempt" => "Attempt",
        "approval" => "Approval",
        "assessment" => "Assessment",
        "admission" => "AdmissionProposal",
        "grant" => "Grant",
        other => panic!("{other} is an example of no definition"),
    }
}

/// Nodes of kinds that the example of a graph lacks.
#[test]
fn nodes_of_every_kind_agree() {
    let compiled = schema(FINITE).definition("Node").expect("Node");
    let configs = [
        r#"{"executionKind":"TOOL"}"#,
        r#"{"mode":"ANY"}"#,
        r#"{"maxIterations":"3"}"#,
        r#"{"maxIterations":"0"}"#,
        r#"{"field":"f","equals":null,"then":"a","else":"b"}"#,
        r#"{"field":"f","equals":[1,{"a":2}],"then":"a","else":"b"}"#,
        "{}",
        "null",
        r#"{"x":1}"#,
    ];
    for kind in NodeKind::NAMES.iter().chain(&["WAIT", "task"]) {
        for config in configs {
            let text = format!(r#"{{"id":"n","kind":"{kind}","dependsOn":[],"config":{config}}}"#);
            let node = aiws::strict::parse(text.as_bytes()).expect(&text);
            assert_eq!(
                compiled.validate(&node).is_ok(),
                examples::read::<Node>(&node).is_ok(),
                "{text}"
            );
        }
    }
}

/// The definitions of each schema are the record types and closed sets of its sources, the commands, and what
/// `BESIDE` names; nothing else. (Commands begin with a small letter.)
#[test]
fn definitions_are_the_types() {
    for published in PUBLISHED {
        let mut types = BTreeSet::new();
        for (source, schemas) in SOURCES {
            if schemas.contains(&published.name) {
                types.extend(declared(source));
            }
        }
        let beside = BESIDE.iter().find(|(name, _)| *name == published.name);
        types.extend(
            beside
                .expect("a row")
                .1
                .iter()
                .map(|name| (*name).to_owned()),
        );
        let defined = published.definitions().expect(published.name);
        let defined: BTreeSet<String> = defined
            .into_iter()
            .filter(|name| name.starts_with(|first: char| first.is_ascii_uppercase()))
            .collect();
        assert_eq!(defined, types, "{}", published.name);
    }
}

/// Every file of records is a source above.
#[test]
fn sources_are_all_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/record");
    let files = std::fs::read_dir(folder).expect(folder).count();
    // fields.rs declares no record.
    assert_eq!(files, SOURCES.len() + 1);
}

/// Every name of every closed set is in its definition, in the same order, and no other.
#[test]
fn closed_sets_are_the_enums() {
    let sets = sets();
    for published in PUBLISHED {
        let document = published.document().expect(published.name);
        for (name, schema) in document
            .get("$defs")
            .and_then(Value::as_object)
            .expect("$defs")
        {
            let listed = schema.get("enum").and_then(Value::as_array);
            let listed: Option<Vec<&str>> =
                listed.map(|names| names.iter().filter_map(Value::as_str).collect());
            assert_eq!(
                listed.as_ref(),
                sets.get(name.as_str()),
                "{}: {name}",
                published.name
            );
        }
    }
    let mut unseen: BTreeSet<&str> = sets.keys().copied().collect();
    for published in PUBLISHED {
        let defined = published.definitions().expect(published.name);
        unseen.retain(|name| !defined.iter().any(|one| one == name));
    }
    assert!(unseen.is_empty(), "{unseen:?}");
    let required = schema(HANDOFF).document().expect(HANDOFF);
    let required = required
        .pointer("/$defs/Resume/properties/requiredChecks/allOf")
        .and_then(Value::as_array)
        .expect("allOf");
    let asked: Vec<Option<&str>> = required
        .iter()
        .map(|one| one.pointer("/contains/const").and_then(Value::as_str))
        .collect();
    let checks: Vec<Option<&str>> = RequiredCheck::ALL
        .iter()
        .map(|one| Some(one.name()))
        .collect();
    assert_eq!(asked, checks);
    let contract = schema(FINITE).document().expect(FINITE);
    for (member, names) in [("features", FEATURES), ("extensions", EXTENSIONS)] {
        let place = format!("/$defs/Contract/properties/{member}/items/enum");
        assert_eq!(contract.pointer(&place), Some(&Value::from(names.to_vec())));
    }
}

/// Proves HF-01.1: each schema is a closed document of Draft 2020-12 that stands alone: all its references are
/// inside, and no object of it allows members that it does not name.
#[test]
fn hf_01_1_schemas_stand_alone() {
    for published in PUBLISHED {
        let document = published.document().expect(published.name);
        assert_eq!(
            document.get("$schema").and_then(Value::as_str),
            Some("https://json-schema.org/draft/2020-12/schema")
        );
        let mut open = Vec::new();
        walk(&document, "", &mut |place, schema| {
            if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
                let inside = target
                    .strip_prefix('#')
                    .and_then(|target| document.pointer(target));
                assert!(inside.is_some(), "{place}: {target}");
            }
            for keyword in ["$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "format"] {
                assert!(
                    place.contains("properties") || schema.get(keyword).is_none(),
                    "{place}/{keyword}"
                );
            }
            let object = schema.get("type").and_then(Value::as_str) == Some("object");
            let closed = schema.get("additionalProperties").and_then(Value::as_bool) == Some(false);
            // A condition or a part narrows an object that is closed where it is defined.
            if object && !closed && schema.as_object().is_some_and(|members| members.len() > 1) {
                open.push(place.to_owned());
            }
        });
        assert_eq!(open, ["/$defs/Object"], "{}", published.name);
    }
}

fn walk(value: &Value, place: &str, visit: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(members) => {
            visit(place, value);
            for (name, member) in members {
                walk(member, &format!("{place}/{name}"), visit);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{place}/{index}"), visit);
            }
        }
        _ => {}
    }
}

/// Proves HM-01.4: the digest of each published schema is pinned, so that no shape changes unnoticed: a change that
/// breaks a released shape has to be another ID, and a candidate is known by its commit and this digest.
#[test]
fn hm_01_4_digests_are_pinned() {
    for published in PUBLISHED {
        assert_eq!(
            published.digest().to_string(),
            published.pinned,
            "{} has changed: see docs/SCHEMAS.md before this digest is pinned anew",
            published.name
        );
        assert_eq!(published.digest(), sha256(published.text.as_bytes()));
    }
}

/// Proves HF-01.2: the schema of the hand-off protocol leaves that of finite-v1 as it is: it is another document,
/// refers to nothing in it, gives no definition that both have another meaning, and finite-v1 has its pinned digest in
/// this build, where hand-off is always enabled, and knows no record or command of hand-off.
#[test]
fn hf_01_2_finite_v1_is_left_as_it_is() {
    let (finite, handoff) = (schema(FINITE), schema(HANDOFF));
    assert_eq!(finite.digest().to_string(), finite.pinned);
    let (one, other) = (
        finite.document().expect(FINITE),
        handoff.document().expect(HANDOFF),
    );
    let defined = |document: &Value| {
        document
            .get("$defs")
            .and_then(Value::as_object)
            .cloned()
            .expect("$defs")
    };
    let (one, other) = (defined(&one), defined(&other));
    let shared: BTreeSet<&str> = one
        .keys()
        .filter(|name| other.contains_key(*name))
        .map(String::as_str)
        .collect();
    for name in &shared {
        // What is sent differs: it is bare in one and enveloped in the other.
        if *name != "Request" {
            assert_eq!(one.get(*name), other.get(*name), "{name}");
        }
    }
    let handed = SOURCES.iter().filter(|(_, schemas)| *schemas == [HANDOFF]);
    let mut handed: BTreeSet<String> = handed.flat_map(|(source, _)| declared(source)).collect();
    handed.remove("Ref");
    for name in handed {
        assert!(
            !one.contains_key(&name) && other.contains_key(&name),
            "{name}"
        );
    }
}

/// A definition that is not there is refused, and a refusal says where and does not repeat the value.
#[test]
fn definitions_are_asked_for_by_name() {
    let finite = schema(FINITE);
    assert!(finite.definition("Manifest").is_err());
    assert!(schema_of("finite-v2").is_none());
    let grant = finite.definition("Grant").expect("Grant");
    let example = examples::all()
        .into_iter()
        .find(|one| one.name == "grant")
        .expect("grant");
    let mutant = changed(
        &example.value(),
        "/subject",
        Some(Value::from("hunter2".repeat(100))),
    );
    let error = grant.validate(&mutant).expect_err("too long");
    assert_eq!(error.pointer.as_deref(), Some("/subject"));
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

/// The page has the digests, and every row of what a schema cannot say.
#[test]
fn the_page_says_what_the_table_says() {
    let page = include_str!("../../../../docs/SCHEMAS.md");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for row in DIFFERENCES {
        assert!(page.contains(row.why), "docs/SCHEMAS.md lacks: {}", row.why);
    }
    for published in PUBLISHED {
        assert!(
            page.contains(published.pinned),
            "docs/SCHEMAS.md lacks the digest of {}",
            published.name
        );
    }
}
