//! A valid request of every command, and the ways of these tests to change one.
//!
//! Invariant: every request here is read by the wire as it stands. Used by the tests of forms.

use aiws::error::{Code, Error};
use aiws::json::Value;
use aiws::strict;
use praxis_model::command::CommandType;
use praxis_model::table::{Family, row};
use praxis_model::wire;

pub(crate) const SHA: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

pub(crate) const MANIFEST: &str = r#"{"protocol":"aiws-handoff/1","handoffId":"h","producer":{"missionId":"m","runId":"r",
    "graph":{"id":"g","revision":"1"},"planRevision":"1","nodeId":"n","activationId":"a","checkpointId":"k",
    "operations":[]},"basis":{"revision":"1","eventHash":"SHA"},
    "outcome":{"status":"BLOCKED","criteria":[],"outstanding":[]},"inputs":[],"recipients":[],
    "artifacts":[{"locator":{"store":"s","key":"k","version":"v"},"digest":"SHA","sizeBytes":"1","mediaType":"x/y",
        "retentionOwner":"o","retainUntilMs":"1"}],
    "result":{},"controls":{"policy":{"id":"p","revision":"1"},"approvals":[{"id":"ap","revision":"1"}],
        "accounting":{"revision":"1","spent":"1","reserved":"1","attempts":"1"}},
    "context":{"intent":"","decisions":[],"assumptions":[],"limitations":[]},
    "resume":{"eligibleNodeIds":[],"blockers":[],
        "requiredChecks":["AUTHORITY","MATERIAL","LIMITS","OWNERSHIP","HOLDS"]}}"#;

pub(crate) const HOLD: &str = r#"{"holdId":"x","scope":{"kind":"RUN","ref":{"id":"r","revision":"1"},"resolverRevision":"1"},
    "reason":"OPERATOR","owner":"o","blockers":[{"kind":"OPERATOR","subjectId":"x","evidence":[]}],
    "allowedDecisions":["RECHECK"],"stopDisposition":[{"operationId":"o","attemptId":"t","action":"DRAIN"}]}"#;

pub(crate) const GRANT: &str = r#"{"grantId":"g","parentGrantId":null,"subject":"s","actions":["a"],"scopes":["b"],
    "maxAmount":"1","notAfterMs":"1"}"#;

pub(crate) const CONTRACT: &str = r#"{"edition":"0.4","features":["finite-v1"],"missionId":"m","contractId":"c","revision":"1",
    "budget":"1","deadlineMs":"1","maxAttempts":"1","authority":{"rootGrants":[GRANT]},
    "lostReads":{"rule":{"id":"r","revision":"1"},"approvedBy":"o","decisionRef":"d"},
    "extensions":["aiws-handoff/1"]}"#;

/// One valid request per command.
pub(crate) fn all() -> Vec<(CommandType, Value)> {
    CommandType::ALL
        .iter()
        .map(|kind| (*kind, request(*kind, members(*kind))))
        .collect()
}

/// The members of a body beside its type.
pub(crate) fn members(kind: CommandType) -> &'static str {
    match kind {
        CommandType::OpenMission => {
            r#""contract":CONTRACT,"config":{"optionalInputs":[],"mappings":[],"requiredSkip":[],
            "restartPolicy":"AUTO","leaseMs":"1","defaultStop":"DRAIN","maxRecipients":"1",
            "scopeBindings":[{"ref":{"id":"r","revision":"1"},"kind":"RUN","resolverRevision":"1"}]}"#
        }
        CommandType::StartRun => r#""runId":"r""#,
        CommandType::GrantCommand => r#""grant":GRANT"#,
        CommandType::ActivateGraph => {
            r#""runId":"r","ownerEpoch":"1","graph":{"graphId":"g","revision":"1","planRevision":"1","nodes":[
            {"id":"end","kind":"END","dependsOn":[],"config":{},"deadlineMs":"1"}]}"#
        }
        CommandType::Approve => {
            r#""approvalId":"p","runId":"r","fingerprint":"SHA","decision":"APPROVED","expiresAtMs":"1""#
        }
        CommandType::RevokeApproval => r#""approvalId":"p","runId":"r","reason":"x""#,
        CommandType::Dispatch => {
            r#""runId":"r","ownerEpoch":"1","nodeId":"n","operationId":"o","attemptId":"t",
            "policy":{"id":"p","revision":"1"}"#
        }
        CommandType::Settle | CommandType::Reconcile => {
            r#""runId":"r","attemptId":"t","outcome":"CONFIRMED_APPLIED","actual":"1","evidence":["e"]"#
        }
        CommandType::Retry => {
            r#""runId":"r","ownerEpoch":"1","operationId":"o","attemptId":"t","amount":"1",
            "policy":{"id":"p","revision":"1"}"#
        }
        CommandType::Verify => {
            r#""assessmentId":"v","runId":"r","subject":"h","verdict":"PASS","evidence":["e"]"#
        }
        CommandType::Accept => {
            r#""assessmentId":"v","runId":"r","subject":"h","verdict":"ACCEPTED","evidence":["e"]"#
        }
        CommandType::CompleteRun => r#""runId":"r","ownerEpoch":"1""#,
        CommandType::CancelRun | CommandType::FinishCancelRun => {
            r#""runId":"r","reason":"x","decisionRef":"d""#
        }
        CommandType::CommitBoundary => r#""manifest":MANIFEST,"hold":HOLD,"skipped":[MANIFEST]"#,
        CommandType::ClaimDelivery => r#""deliveryId":"d","leaseMs":"1""#,
        CommandType::AcknowledgeDelivery => {
            r#""deliveryId":"d","handoff":{"handoffId":"h","digest":"SHA"},"claimToken":"TOKEN","generation":"1""#
        }
        CommandType::ReleaseDelivery => r#""deliveryId":"d","claimToken":"TOKEN","generation":"1""#,
        CommandType::AdmitConsumer => {
            r#""consumption":{"missionId":"m","runId":"r","nodeId":"n","activationId":"a","operationId":null,
            "admissionRef":null,"inputs":[],"ownerEpoch":"1","revision":"1",
            "join":{"mode":"ALL","selected":[],"excluded":[],"unselectedAcknowledged":[]},"state":"VALID",
            "entitlement":"CONTROL"}"#
        }
        CommandType::PlaceHold => r#""hold":HOLD"#,
        CommandType::ResolveHold => {
            r#""holdId":"x","decision":"RECHECK","decisionRef":"d","evidence":["e"],"rule":{"id":"q","revision":"1"}"#
        }
        CommandType::InvalidateHandoff => {
            r#""handoff":{"handoffId":"h","digest":"SHA"},"reason":"x","evidence":["e"],
            "hold":{"holdId":"x","owner":"o"}"#
        }
        CommandType::RecoverOwnership => r#""expectedEpoch":"1","reason":"x","decisionRef":null"#,
        CommandType::RecordSummary => {
            r#""summary":{"summaryId":"s","handoff":{"handoffId":"h","digest":"SHA"},
            "author":{"kind":"MODEL","actorId":"a","operationId":"o"},"text":"x"}"#
        }
    }
}

pub(crate) fn request(kind: CommandType, members: &str) -> Value {
    let body = format!("{{\"type\":{:?},{members}}}", kind.name());
    let outer = r#""requestId":"q","expectedRevision":"1","ownerEpoch":"1","missionId":"m""#;
    let command = if row(kind).family == Family::Handoff {
        let head = r#""protocol":"aiws-handoff/1","requestId":"q","expectedRevision":"1","ownerEpoch":"1""#;
        format!(r#"{{{head},"missionId":"m","runId":"r","body":{body}}}"#)
    } else {
        body
    };
    let text = format!("{{{outer},\"command\":{command}}}");
    let text = text
        .replace("MANIFEST", MANIFEST)
        .replace(":HOLD", &format!(":{HOLD}"));
    let text = text
        .replace("CONTRACT", CONTRACT)
        .replace("[GRANT]", &format!("[{GRANT}]"));
    let text = text
        .replace(":GRANT", &format!(":{GRANT}"))
        .replace("SHA", SHA);
    let text = text.replace("TOKEN", &crate::world::raw_token(1).expose());
    strict::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{}: {error}", kind.name()))
}

pub(crate) fn parse(value: &Value) -> Result<wire::Request, Error> {
    wire::parse(value.to_string().as_bytes())
}

/// The value with this member at a pointer, or without it.
pub(crate) fn with(value: &Value, pointer: &str, member: Option<Value>) -> Value {
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        return member.unwrap_or_default();
    };
    let mut inside = value.pointer(parent).expect(pointer).clone();
    match (&mut inside, member) {
        (Value::Object(members), Some(member)) => drop(members.insert(last.to_owned(), member)),
        (Value::Object(members), None) => drop(members.remove(last)),
        (Value::Array(items), Some(item)) => items[last.parse::<usize>().expect(pointer)] = item,
        _ => panic!("{pointer} leads nowhere"),
    }
    with(value, parent, Some(inside))
}

pub(crate) fn one(kind: CommandType) -> Value {
    request(kind, members(kind))
}

/// The request with one place changed; the text is JSON.
pub(crate) fn changed(kind: CommandType, pointer: &str, text: &str) -> Value {
    let member = strict::parse(text.as_bytes()).expect(text);
    with(&one(kind), pointer, Some(member))
}

pub(crate) fn is(error: &Error, code: Code, pointer: &str) {
    let found = (error.code(), error.pointer.as_deref());
    assert_eq!(found, (code, Some(pointer)), "{error}");
}
