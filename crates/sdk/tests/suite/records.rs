//! Every record of the SDK through one pattern: valid, closed, detached.
//! Invariant: each case is a whole valid record, so that every refusal has one reason alone.
//! Called by `cargo test`.

use aiws::canonical::digest_of;
use aiws::digest::{Digest, sha256};
use aiws::error::{Code, Error};
use aiws::json::Value;
use aiws::strict::parse;
use aiws_sdk::handoff::sha;
use aiws_sdk::handoff_records::{
    HandoffConsumption, HandoffDelivery, HandoffHold, HandoffManifest,
};

/// A record's public surface, the same for all of them.
struct Case {
    name: &'static str,
    text: String,
    /// A member whose removal is refused.
    required: &'static str,
    /// Reads the record; gives its copy, its digest and the digest of what `get` shows.
    read: fn(&Value) -> Result<Read, Error>,
}

/// A record that was read, behind one type.
struct Read {
    as_value: Box<dyn Fn() -> Value>,
    digest: Box<dyn Fn() -> Digest>,
    typed: Digest,
}

/// One function per record over the same calls: it compiles only while all of them have the one pattern.
macro_rules! reads {
    ($($name:ident: $record:ident,)*) => {$(
        fn $name(value: &Value) -> Result<Read, Error> {
            let record = $record::from_value(value)?;
            let again = record.clone();
            assert_eq!(record, again);
            let typed = digest_of(record.get())?;
            Ok(Read {
                as_value: Box::new(move || record.as_value()),
                digest: Box::new(move || again.digest()),
                typed,
            })
        }
    )*};
}

reads! {
    manifest: HandoffManifest,
    delivery: HandoffDelivery,
    consumption: HandoffConsumption,
    hold: HandoffHold,
}

const MANIFEST: &str = r#"{"protocol":"aiws-handoff/1","handoffId":"h1",
    "producer":{"missionId":"m","runId":"r","graph":{"id":"g","revision":"1"},"planRevision":"1","nodeId":"plan",
        "activationId":"a1","checkpointId":"k1","operations":[{"operationId":"o1","attemptIds":["t1"]}]},
    "basis":{"revision":"7","eventHash":"SHA"},
    "outcome":{"status":"COMPLETED","criteria":[],"outstanding":[]},
    "inputs":[{"deliveryId":"d0","handoff":{"handoffId":"h0","digest":"SHA"}}],
    "recipients":[{"deliveryId":"d1","nodeId":"next","activationId":"a2","inputPort":"plan"}],
    "artifacts":[{"locator":{"store":"local","key":"plan.md","version":"1"},"digest":"SHA","sizeBytes":"12",
        "mediaType":"text/markdown","retentionOwner":"ann","retainUntilMs":"99999"}],
    "result":{"list":[{"ok":true}]},
    "controls":{"policy":{"id":"p","revision":"1"},"approvals":[],
        "accounting":{"revision":"7","spent":"1","reserved":"2","attempts":"1"}},
    "context":{"intent":"plan it","decisions":[],"assumptions":[],"limitations":[]},
    "resume":{"eligibleNodeIds":["next"],"blockers":[],
        "requiredChecks":["AUTHORITY","MATERIAL","LIMITS","OWNERSHIP","HOLDS"]}}"#;

const DELIVERY: &str = r#"{"deliveryId":"d1","handoff":{"handoffId":"h1","digest":"SHA"},
    "recipient":{"deliveryId":"d1","nodeId":"next","activationId":"a2","inputPort":"plan"},"missionId":"m",
    "runId":"r","state":"ACKNOWLEDGED","generation":"1",
    "claim":{"claimant":"w","tokenHash":"SHA","generation":"1","ownerEpoch":"1","claimedAtMs":"10",
        "expiresAtMs":"20","end":null},
    "acknowledgement":{"deliveryId":"d1","handoff":{"handoffId":"h1","digest":"SHA"},"claimant":"w",
        "generation":"1","tokenHash":"SHA","ownerEpoch":"1","atMs":"15","revision":"9",
        "materials":[{"digest":"SHA","sizeBytes":"12"}]},
    "revision":"9","createdAtMs":"5"}"#;

const CONSUMPTION: &str = r#"{"missionId":"m","runId":"r","nodeId":"next","activationId":"a2","operationId":"o2",
    "admissionRef":"ad","inputs":[{"deliveryId":"d1","handoff":{"handoffId":"h1","digest":"SHA"}}],
    "ownerEpoch":"1","revision":"10",
    "join":{"mode":"ALL","selected":["d1"],"excluded":[],"unselectedAcknowledged":[]},
    "state":"VALID","entitlement":"OPERATION"}"#;

const HOLD: &str = r#"{"holdId":"x","state":"OPEN","reason":"OPERATOR","owner":"ann",
    "scope":{"kind":"RUN","ref":{"id":"r","revision":"1"},"resolverRevision":"1"},
    "members":[{"missionId":"m","runId":"r","nodeIds":"ALL"}],
    "blockers":[{"kind":"OPERATOR","subjectId":"x","evidence":[]}],"allowedDecisions":["RECHECK"],
    "stopDisposition":[],"openedBy":"ann","openedAtMs":"5","openedRevision":"3","resolution":null}"#;

fn cases() -> Vec<Case> {
    let case = |name, text: &str, required, read| Case {
        name,
        text: text.replace("SHA", &"a".repeat(64)),
        required,
        read,
    };
    vec![
        case("manifest", MANIFEST, "basis", manifest as fn(&Value) -> _),
        case("delivery", DELIVERY, "claim", delivery),
        case("consumption", CONSUMPTION, "join", consumption),
        case("hold", HOLD, "resolution", hold),
    ]
}

impl Case {
    fn value(&self) -> Value {
        parse(self.text.as_bytes()).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn read(&self, value: &Value) -> Read {
        (self.read)(value).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn refuse(&self, value: &Value) -> (Code, Option<String>) {
        match (self.read)(value) {
            Ok(_) => panic!("{}: read what it should refuse: {value}", self.name),
            Err(error) => (error.code, error.pointer),
        }
    }
}

/// Changes every part of a value: members and items of any depth go, scalars become others.
fn wreck(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(wreck);
            members.insert("changed".to_owned(), true.into());
        }
        Value::Array(items) => {
            items.iter_mut().for_each(wreck);
            items.push(Value::Null);
        }
        Value::String(text) => text.push('!'),
        Value::Int(number) => *number = number.wrapping_add(1),
        Value::Bool(truth) => *truth = !*truth,
        Value::Null => *value = true.into(),
    }
}

#[test]
fn a_valid_record_gives_back_its_value_and_the_digest_of_its_canonical_bytes() {
    for case in cases() {
        let source = case.value();
        let record = case.read(&source);
        assert_eq!((record.as_value)(), source, "{}", case.name);
        let digest = sha256(source.to_string().as_bytes());
        assert_eq!((record.digest)(), digest, "{}", case.name);
        assert_eq!(sha(&source), digest, "{}", case.name);
        assert_eq!(record.typed, digest, "{}: get() shows the same", case.name);
    }
}

/// An unknown member, a missing one and another kind of value are refused.
#[test]
fn every_record_is_closed() {
    for case in cases() {
        let change = |change: &dyn Fn(&mut aiws::json::Object)| match case.value() {
            Value::Object(mut members) => {
                change(&mut members);
                Value::Object(members)
            }
            other => panic!("{}: {}", case.name, other.kind()),
        };
        let unknown = change(&|members| {
            members.insert("unknownField".to_owned(), true.into());
        });
        let place = Some("/unknownField".to_owned());
        assert_eq!(
            case.refuse(&unknown),
            (Code::SchemaInvalid, place),
            "{}",
            case.name
        );
        let missing = change(&|members| {
            members.remove(case.required).expect("a member of the case");
        });
        assert_eq!(
            case.refuse(&missing).0,
            Code::SchemaInvalid,
            "{}",
            case.name
        );
        for other in [
            Value::Null,
            Value::Array(vec![case.value()]),
            case.text.as_str().into(),
        ] {
            assert_eq!(case.refuse(&other).0, Code::SchemaInvalid, "{}", case.name);
        }
    }
}

/// Proves CJ-4: neither the value a record was read from nor a copy of it reaches the record afterwards.
#[test]
fn every_record_is_detached() {
    for case in cases() {
        let mut source = case.value();
        let record = case.read(&source);
        let (before, digest) = (source.clone(), (record.digest)());
        wreck(&mut source);
        let mut copy = (record.as_value)();
        wreck(&mut copy);
        assert_eq!(source, copy, "both were changed alike");
        assert_ne!(
            sha(&source),
            digest,
            "{}: the change is a change",
            case.name
        );
        assert_eq!((record.as_value)(), before, "{}", case.name);
        assert_eq!((record.digest)(), digest, "{}", case.name);
        assert_eq!(sha(&(record.as_value)()), digest, "{}", case.name);
    }
}

#[test]
fn a_manifest_of_another_protocol_is_unsupported_before_it_is_malformed() {
    let case = &cases()[0];
    let text = case.text.replace("aiws-handoff/1", "aiws-handoff/2");
    let text = text.replacen('{', r#"{"unknownField":true,"#, 1);
    let value = parse(text.as_bytes()).expect("JSON");
    let place = Some("/protocol".to_owned());
    assert_eq!(case.refuse(&value), (Code::UnsupportedProtocol, place));
}
