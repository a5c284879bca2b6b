//! One valid request for every command, with every member that it may have.
//! Invariant: whatever is optional is there, so that each member can be left out or changed.
//! Called by the tests of the published schemas.

use aiws::json::Value;
use aiws::object;
use praxis_model::command::CommandType;
use praxis_model::table::{Family, row};

/// Records inside commands: `crates/aiws/tests/suite/schemas.rs` compares them at every place within, here it is seen
/// that they are asked for.
pub const OPEN: &[&str] = &[
    "/command/body/manifest",
    "/command/body/skipped/0",
    "/command/body/consumption",
    "/command/contract",
    "/command/config",
    "/command/graph",
    "/command/grant",
];

/// A request with the command of a type.
pub fn request(kind: CommandType) -> Value {
    in_layer_of(kind, body(kind))
}

/// A body in the layers that a type needs.
pub fn in_layer_of(kind: CommandType, body: Value) -> Value {
    if row(kind).family != Family::Handoff {
        return object! {
            "requestId": "q1", "expectedRevision": "7", "ownerEpoch": "1", "missionId": "m", "command": body,
        };
    }
    object! {
        "requestId": "q1",
        "expectedRevision": "7",
        "ownerEpoch": "1",
        "missionId": "m",
        "command": object! {
            "protocol": "aiws-handoff/1",
            "requestId": "q1",
            "expectedRevision": "7",
            "missionId": "m",
            "runId": "r",
            "ownerEpoch": "1",
            "body": body,
        },
    }
}

/// The body of a type.
pub fn body(kind: CommandType) -> Value {
    let text = format!(r#"{{"type":"{}",{}}}"#, kind.name(), members(kind));
    aiws::strict::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

const GRANT: &str = r#"{"grantId":"g1","parentGrantId":null,"subject":"agent","actions":["check","implement"],
    "scopes":["repo"],"maxAmount":"5","notAfterMs":"2000"}"#;
const REF: &str = r#"{"id":"p","revision":"1"}"#;
const SHA: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const TOKEN: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn handoff() -> String {
    format!(r#"{{"handoffId":"h0","digest":"{SHA}"}}"#)
}

fn members(kind: CommandType) -> String {
    use CommandType as C;
    let handoff = handoff();
    match kind {
        C::OpenMission => format!(r#""contract":{},"config":{}"#, contract(), CONFIG),
        C::StartRun => r#""runId":"r""#.to_owned(),
        C::GrantCommand => format!(r#""grant":{GRANT}"#),
        C::ActivateGraph => format!(r#""runId":"r","ownerEpoch":"1","graph":{GRAPH}"#),
        C::Approve => format!(
            r#""approvalId":"p","runId":"r","fingerprint":"{SHA}","decision":"APPROVED","expiresAtMs":"50""#
        ),
        C::RevokeApproval => r#""approvalId":"p","runId":"r","reason":"wrong""#.to_owned(),
        C::Dispatch => format!(
            r#""runId":"r","ownerEpoch":"1","nodeId":"n","operationId":"o","attemptId":"t","policy":{REF}"#
        ),
        C::Settle | C::Reconcile => {
            r#""runId":"r","attemptId":"t","outcome":"CONFIRMED_APPLIED","actual":"1","evidence":["e"]"#.to_owned()
        }
        C::Retry => format!(
            r#""runId":"r","ownerEpoch":"1","operationId":"o","attemptId":"t","amount":"1","policy":{REF}"#
        ),
        C::Verify => r#""assessmentId":"v","runId":"r","subject":"h","verdict":"PASS","evidence":["e"]"#.to_owned(),
        C::Accept => {
            r#""assessmentId":"v","runId":"r","subject":"h","verdict":"ACCEPTED","evidence":["e"]"#.to_owned()
        }
        C::CompleteRun => r#""runId":"r","ownerEpoch":"1""#.to_owned(),
        C::CancelRun | C::FinishCancelRun => r#""runId":"r","reason":"enough","decisionRef":"d""#.to_owned(),
        C::CommitBoundary => format!(
            r#""manifest":{0},"hold":{HOLD},"skipped":[{0}]"#,
            manifest()
        ),
        C::ClaimDelivery => r#""deliveryId":"d1","leaseMs":"1000""#.to_owned(),
        C::AcknowledgeDelivery => {
            format!(r#""deliveryId":"d1","handoff":{handoff},"claimToken":"{TOKEN}","generation":"1""#)
        }
        C::ReleaseDelivery => format!(r#""deliveryId":"d1","claimToken":"{TOKEN}","generation":"1""#),
        C::AdmitConsumer => format!(r#""consumption":{},"skipped":[{}]"#, consumption(), manifest()),
        C::PlaceHold => format!(r#""hold":{HOLD}"#),
        C::ResolveHold => {
            format!(r#""holdId":"x","decision":"RECHECK","decisionRef":"d","evidence":["e"],"rule":{REF}"#)
        }
        C::InvalidateHandoff => format!(
            r#""handoff":{handoff},"reason":"wrong","evidence":["e"],"hold":{{"holdId":"x","owner":"ann"}}"#
        ),
        C::RecoverOwnership => r#""expectedEpoch":"1","reason":"lost","decisionRef":"d""#.to_owned(),
        C::RecordSummary => format!(
            r#""summary":{{"summaryId":"s","handoff":{handoff},
            "author":{{"kind":"MODEL","actorId":"w","operationId":"o"}},"text":"in short"}}"#
        ),
    }
}

fn contract() -> String {
    format!(
        r#"{{"edition":"0.4","features":["finite-v1"],"missionId":"m","contractId":"c","revision":"1","budget":"10",
        "deadlineMs":"9000","maxAttempts":"3","authority":{{"rootGrants":[{GRANT}]}},
        "lostReads":{{"rule":{REF},"approvedBy":"ann","decisionRef":"d"}},"extensions":["aiws-handoff/1"]}}"#
    )
}

const CONFIG: &str = r#"{"optionalInputs":[{"nodeId":"join","inputPort":"look"}],
    "mappings":[{"nodeId":"join","inputPort":"look","fromNodeId":"look","accepts":["COMPLETED","SKIPPED"],
        "schema":{"type":"object"}}],
    "joinPolicy":[{"nodeId":"first","excludeLosers":true}],
    "requiredSkip":[{"nodeId":"join","action":"PROPAGATE"}],"restartPolicy":"RULE","rule":{"id":"q","revision":"3"},
    "leaseMs":"30000","defaultStop":"DRAIN","recoveryWindowMs":"60000","maxRecipients":"64",
    "scopeBindings":[{"ref":{"id":"r","revision":"1"},"kind":"RUN","resolverRevision":"1"}]}"#;

const GRAPH: &str = r#"{"graphId":"g","revision":"1","planRevision":"1","nodes":[
    {"id":"plan","kind":"TASK","dependsOn":[],"config":{"executionKind":"AGENT"},
     "inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"deadlineMs":"5000"},
    {"id":"pick","kind":"DECISION","dependsOn":["plan"],
     "config":{"field":"ok","equals":true,"then":"join","else":"again"}},
    {"id":"again","kind":"LOOP","dependsOn":["pick"],"config":{"maxIterations":"3"}},
    {"id":"join","kind":"JOIN","dependsOn":["pick","again"],"config":{"mode":"ANY"}},
    {"id":"end","kind":"END","dependsOn":["join"],"config":{}}]}"#;

const HOLD: &str = r#"{"holdId":"x","scope":{"kind":"RUN","ref":{"id":"r","revision":"1"},"resolverRevision":"1"},
    "reason":"OPERATOR","owner":"ann","blockers":[{"kind":"OPERATOR","subjectId":"x","evidence":["e"]}],
    "allowedDecisions":["RECHECK"],"stopDisposition":[{"operationId":"o","attemptId":"t","action":"DRAIN"}]}"#;

fn consumption() -> String {
    format!(
        r#"{{"missionId":"m","runId":"r","nodeId":"pick","activationId":"a2","operationId":"o2","admissionRef":"ad",
        "inputs":[{{"deliveryId":"d1","handoff":{}}}],"ownerEpoch":"1","revision":"10",
        "join":{{"mode":"ANY","selected":["d1"],"excluded":["d2"],"unselectedAcknowledged":["d3"]}},
        "state":"VALID","entitlement":"OPERATION"}}"#,
        handoff()
    )
}

fn manifest() -> String {
    let handoff = handoff();
    format!(
        r#"{{"protocol":"aiws-handoff/1","handoffId":"h1",
        "producer":{{"missionId":"m","runId":"r","graph":{REF},"planRevision":"1","nodeId":"plan","activationId":"a1",
            "checkpointId":"k1","operations":[{{"operationId":"o1","attemptIds":["t1"]}}],"workerId":"w"}},
        "basis":{{"revision":"7","eventHash":"{SHA}"}},
        "outcome":{{"status":"FAILED","criteria":[{{"criterionId":"tests","status":"NOT_MET","evidence":["e1"]}}],
            "outstanding":[{{"operationId":"o1","attemptId":"t1","status":"UNKNOWN"}}],
            "cause":{{"code":"EXIT","detail":"status 1"}}}},
        "inputs":[{{"deliveryId":"d0","handoff":{handoff}}}],
        "recipients":[{{"deliveryId":"d1","nodeId":"pick","activationId":"a2","inputPort":"plan"}}],
        "artifacts":[{{"locator":{{"store":"local","key":"plan.md","version":"1"}},"digest":"{SHA}","sizeBytes":"12",
            "mediaType":"text/markdown","schemaDigest":"{SHA}","retentionOwner":"engine","retainUntilMs":"99999"}}],
        "result":{{"ok":true}},
        "controls":{{"policy":{REF},"approvals":[{REF}],
            "accounting":{{"revision":"7","spent":"1","reserved":"2","attempts":"1"}}}},
        "context":{{"intent":"plan it","decisions":["x"],"assumptions":["y"],"limitations":["z"]}},
        "resume":{{"eligibleNodeIds":["pick"],
            "blockers":[{{"kind":"UNCERTAIN_EFFECT","subjectId":"t1","evidence":["e2"]}}],
            "requiredChecks":["AUTHORITY","MATERIAL","LIMITS","OWNERSHIP","HOLDS"]}},
        "lineage":{{"replaces":{handoff},"reason":"corrected"}}}}"#
    )
}
