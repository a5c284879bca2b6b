//! One valid example of every record, with what in it is open, optional or nullable.
//! Invariant: each example has every member of its record, so that leaving out or changing any one is a case.
//! Called by the tests of the records.

use aiws::canonical::to_value;
use aiws::error::Error;
use aiws::json::Value;
use aiws::record::*;

/// A valid record and what its mutations may do.
pub struct Example {
    pub name: &'static str,
    pub text: String,
    pub read: fn(&Value) -> Result<Value, Error>,
    /// Members whose content belongs to somebody else: any JSON, or any object.
    pub open: &'static [&'static str],
    /// Members that may be left out.
    pub optional: &'static [&'static str],
    /// Members that may be null.
    pub nullable: &'static [&'static str],
}

impl Example {
    pub fn value(&self) -> Value {
        aiws::strict::parse(self.text.as_bytes())
            .unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

/// Reads a record and writes it again.
pub fn read<T: Record>(value: &Value) -> Result<Value, Error> {
    Checked::<T>::from_value(value).and_then(|checked| to_value(checked.get()))
}

pub fn sha(digit: char) -> String {
    digit.to_string().repeat(64)
}

fn example<T: Record>(name: &'static str, text: String) -> Example {
    Example {
        name,
        text,
        read: read::<T>,
        open: &[],
        optional: &[],
        nullable: &[],
    }
}

const GRANT: &str = r#"{"grantId":"g1","parentGrantId":null,"subject":"agent","actions":["check","implement"],
    "scopes":["repo"],"maxAmount":"5","notAfterMs":"2000"}"#;

fn contract() -> Example {
    let text = format!(
        r#"{{"edition":"0.4","features":["finite-v1"],"missionId":"m","contractId":"c","revision":"1","budget":"10",
        "deadlineMs":"9000","maxAttempts":"3","authority":{{"rootGrants":[{GRANT}]}},
        "lostReads":{{"rule":{{"id":"r","revision":"1"}},"approvedBy":"ann","decisionRef":"d"}},
        "extensions":["aiws-handoff/1"]}}"#
    );
    Example {
        optional: &["/lostReads", "/extensions"],
        nullable: &["/authority/rootGrants/0/parentGrantId"],
        ..example::<Contract>("contract", text)
    }
}

fn graph() -> Example {
    let text = r#"{"graphId":"g","revision":"1","planRevision":"1","nodes":[
        {"id":"plan","kind":"TASK","dependsOn":[],"config":{"executionKind":"AGENT"},
         "inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"deadlineMs":"5000"},
        {"id":"pick","kind":"DECISION","dependsOn":["plan"],
         "config":{"field":"ok","equals":true,"then":"join","else":"look"}},
        {"id":"look","kind":"APPROVAL","dependsOn":["pick"],"config":{}},
        {"id":"join","kind":"JOIN","dependsOn":["pick","look"],"config":{"mode":"ALL"}},
        {"id":"verify","kind":"VERIFICATION","dependsOn":["join"],"config":{}},
        {"id":"accept","kind":"ACCEPTANCE","dependsOn":["verify"],"config":{}},
        {"id":"end","kind":"END","dependsOn":["accept"],"config":{}}]}"#;
    Example {
        open: &[
            "/nodes/0/inputSchema",
            "/nodes/0/outputSchema",
            "/nodes/1/config/equals",
        ],
        optional: &[
            "/nodes/0/inputSchema",
            "/nodes/0/outputSchema",
            "/nodes/0/deadlineMs",
        ],
        nullable: &["/nodes/1/config/equals"],
        ..example::<Graph>("graph", text.to_owned())
    }
}

pub fn manifest() -> Example {
    let (a, b) = (sha('a'), sha('b'));
    let text = format!(
        r#"{{"protocol":"aiws-handoff/1","handoffId":"h1",
        "producer":{{"missionId":"m","runId":"r","graph":{{"id":"g","revision":"1"}},"planRevision":"1","nodeId":"plan",
            "activationId":"a1","checkpointId":"k1","operations":[{{"operationId":"o1","attemptIds":["t1"]}}],
            "workerId":"w"}},
        "basis":{{"revision":"7","eventHash":"{a}"}},
        "outcome":{{"status":"FAILED","criteria":[{{"criterionId":"tests","status":"NOT_MET","evidence":["e1"]}}],
            "outstanding":[{{"operationId":"o1","attemptId":"t1","status":"UNKNOWN"}}],
            "cause":{{"code":"EXIT","detail":"status 1"}}}},
        "inputs":[{{"deliveryId":"d0","handoff":{{"handoffId":"h0","digest":"{a}"}}}}],
        "recipients":[{{"deliveryId":"d1","nodeId":"pick","activationId":"a2","inputPort":"plan"}}],
        "artifacts":[{{"locator":{{"store":"local","key":"plan.md","version":"1"}},"digest":"{b}","sizeBytes":"12",
            "mediaType":"text/markdown","schemaDigest":"{b}","retentionOwner":"engine","retainUntilMs":"99999"}}],
        "result":{{"ok":true}},
        "controls":{{"policy":{{"id":"p","revision":"1"}},"approvals":[{{"id":"ap","revision":"1"}}],
            "accounting":{{"revision":"7","spent":"1","reserved":"2","attempts":"1"}}}},
        "context":{{"intent":"plan it","decisions":["x"],"assumptions":["y"],"limitations":["z"]}},
        "resume":{{"eligibleNodeIds":["pick"],
            "blockers":[{{"kind":"UNCERTAIN_EFFECT","subjectId":"t1","evidence":["e2"]}}],
            "requiredChecks":["AUTHORITY","MATERIAL","LIMITS","OWNERSHIP","HOLDS"]}},
        "lineage":{{"replaces":{{"handoffId":"h0","digest":"{a}"}},"reason":"corrected"}}}}"#
    );
    Example {
        open: &["/result"],
        optional: &[
            "/producer/workerId",
            "/outcome/cause",
            "/artifacts/0/schemaDigest",
            "/lineage",
        ],
        nullable: &["/result"],
        ..example::<Manifest>("manifest", text)
    }
}

fn delivery() -> Example {
    let (a, b) = (sha('a'), sha('b'));
    let text = format!(
        r#"{{"deliveryId":"d1","handoff":{{"handoffId":"h1","digest":"{a}"}},
        "recipient":{{"deliveryId":"d1","nodeId":"pick","activationId":"a2","inputPort":"plan"}},"missionId":"m",
        "runId":"r","state":"ACKNOWLEDGED","generation":"1",
        "claim":{{"claimant":"w","tokenHash":"{b}","generation":"1","ownerEpoch":"1","claimedAtMs":"10",
            "expiresAtMs":"20","end":{{"cause":"EXPIRED","atMs":"20"}}}},
        "acknowledgement":{{"deliveryId":"d1","handoff":{{"handoffId":"h1","digest":"{a}"}},"claimant":"w",
            "generation":"1","tokenHash":"{b}","ownerEpoch":"1","atMs":"15","revision":"9",
            "materials":[{{"digest":"{b}","sizeBytes":"12","schemaDigest":"{a}"}}]}},
        "revision":"9","createdAtMs":"5"}}"#
    );
    Example {
        optional: &["/acknowledgement/materials/0/schemaDigest"],
        nullable: &["/claim/end"],
        ..example::<Delivery>("delivery", text)
    }
}

/// A delivery that nobody claimed yet.
pub fn pending() -> Example {
    let text = format!(
        r#"{{"deliveryId":"d1","handoff":{{"handoffId":"h1","digest":"{}"}},
        "recipient":{{"deliveryId":"d1","nodeId":"pick","activationId":"a2","inputPort":"plan"}},"missionId":"m",
        "runId":"r","state":"PENDING","generation":"0","claim":null,"acknowledgement":null,"revision":"9",
        "createdAtMs":"5"}}"#,
        sha('a')
    );
    Example {
        nullable: &["/claim", "/acknowledgement"],
        ..example::<Delivery>("pending", text)
    }
}

/// A delivery whose claim is live.
pub fn claimed() -> Example {
    let (a, b) = (sha('a'), sha('b'));
    let text = format!(
        r#"{{"deliveryId":"d1","handoff":{{"handoffId":"h1","digest":"{a}"}},
        "recipient":{{"deliveryId":"d1","nodeId":"pick","activationId":"a2","inputPort":"plan"}},"missionId":"m",
        "runId":"r","state":"CLAIMED","generation":"2",
        "claim":{{"claimant":"w","tokenHash":"{b}","generation":"2","ownerEpoch":"1","claimedAtMs":"10",
            "expiresAtMs":"20","end":null}},"acknowledgement":null,"revision":"9","createdAtMs":"5"}}"#
    );
    Example {
        nullable: &["/claim/end", "/acknowledgement"],
        ..example::<Delivery>("claimed", text)
    }
}

pub fn consumption() -> Example {
    let text = format!(
        r#"{{"missionId":"m","runId":"r","nodeId":"pick","activationId":"a2","operationId":"o2","admissionRef":"ad",
        "inputs":[{{"deliveryId":"d1","handoff":{{"handoffId":"h1","digest":"{}"}}}}],"ownerEpoch":"1","revision":"10",
        "join":{{"mode":"ALL","selected":["d1"],"excluded":["d2"],"unselectedAcknowledged":["d3"]}},
        "state":"VALID","entitlement":"OPERATION"}}"#,
        sha('a')
    );
    example::<Consumption>("consumption", text)
}

pub fn hold() -> Example {
    let text = r#"{"holdId":"x","state":"RELEASED","reason":"OPERATOR","owner":"ann",
        "scope":{"kind":"RUN","ref":{"id":"r","revision":"1"},"resolverRevision":"1"},
        "members":[{"missionId":"m","runId":"r","nodeIds":"ALL"},{"missionId":"m","runId":"r2","nodeIds":["a"]}],
        "blockers":[{"kind":"OPERATOR","subjectId":"x","evidence":[]}],"allowedDecisions":["RECHECK","CANCEL"],
        "stopDisposition":[{"operationId":"o","attemptId":"t","action":"DRAIN"}],"openedBy":"ann","openedAtMs":"5",
        "openedRevision":"3","resolution":{"decision":"RECHECK","actorId":"ann","actorKind":"HUMAN","decisionRef":"d",
            "evidence":["e"],"policy":{"id":"p","revision":"1"},"rule":{"id":"q","revision":"2"},"atMs":"9",
            "revision":"4"}}"#;
    Example {
        optional: &["/resolution/rule"],
        ..example::<Hold>("hold", text.to_owned())
    }
}

fn invalidation() -> Example {
    let text = format!(
        r#"{{"invalidationId":"i","handoff":{{"handoffId":"h1","digest":"{}"}},"reason":"wrong","evidence":["e"],
        "actorId":"ann","affectedDeliveries":["d1"],"affectedConsumptions":["a2"],"affectedAssessments":["v"],
        "holdId":"x","atMs":"9","revision":"4"}}"#,
        sha('a')
    );
    Example {
        nullable: &["/holdId"],
        ..example::<Invalidation>("invalidation", text)
    }
}

fn summary() -> Example {
    let text = format!(
        r#"{{"summaryId":"s","handoff":{{"handoffId":"h1","digest":"{}"}},
        "author":{{"kind":"MODEL","actorId":"w","operationId":"o"}},"text":"the plan, in short","createdAtMs":"9",
        "revision":"4"}}"#,
        sha('a')
    );
    example::<Summary>("summary", text)
}

pub fn config() -> Example {
    let text = r#"{"optionalInputs":[{"nodeId":"join","inputPort":"look"}],
        "mappings":[{"nodeId":"join","inputPort":"look","fromNodeId":"look","accepts":["COMPLETED","SKIPPED"],
            "schema":{"type":"object"}}],
        "joinPolicy":[{"nodeId":"first","excludeLosers":true}],
        "requiredSkip":[{"nodeId":"join","action":"PROPAGATE"}],"restartPolicy":"AUTO",
        "rule":{"id":"look-again","revision":"3"},"leaseMs":"30000",
        "defaultStop":"DRAIN","recoveryWindowMs":"60000","maxRecipients":"64",
        "scopeBindings":[{"ref":{"id":"r","revision":"1"},"kind":"RUN","resolverRevision":"1"}]}"#;
    Example {
        open: &["/mappings/0/schema"],
        optional: &[
            "/mappings/0/schema",
            "/joinPolicy",
            "/rule",
            "/recoveryWindowMs",
        ],
        ..example::<HandoffConfig>("config", text.to_owned())
    }
}

fn work() -> Vec<Example> {
    let a = sha('a');
    let operation = format!(
        r#"{{"operationId":"o","runId":"r","nodeId":"n","activationId":"a","fingerprint":"{a}","action":{{"run":"x"}},"effect":"READ",
        "grantId":"g","approvalId":"p","amount":"1","attempts":["t"],"status":"OPEN"}}"#
    );
    let attempt = r#"{"id":"t","operationId":"o","epoch":"1","status":"DISPATCHED","reserved":"1","actual":"0",
        "evidence":["e"]}"#;
    let approval = format!(
        r#"{{"approvalId":"p","runId":"r","fingerprint":"{a}","approver":"ann","decision":"APPROVED",
        "grantedAtMs":"5","expiresAtMs":"50","policy":{{"id":"p","revision":"1"}},"revoked":false,"operationId":"o"}}"#
    );
    let assessment = r#"{"assessmentId":"v","runId":"r","kind":"VERIFICATION","revision":"1","verdict":"PASS",
        "subject":"h1","evidence":["e"],"assessor":"ann","invalidated":{"reason":"wrong","evidence":["e"]}}"#;
    let admission = format!(
        r#"{{"operationId":"o","attemptId":"t","action":{{"run":"x"}},"fingerprint":"{a}","effect":"EXTERNAL","grantId":"g",
        "approvalId":"p","amount":"1"}}"#
    );
    vec![
        Example {
            open: &["/action"],
            nullable: &["/nodeId", "/activationId", "/approvalId"],
            ..example::<Operation>("operation", operation)
        },
        Example {
            nullable: &["/actual"],
            ..example::<Attempt>("attempt", attempt.to_owned())
        },
        Example {
            nullable: &["/operationId"],
            ..example::<Approval>("approval", approval)
        },
        Example {
            nullable: &["/invalidated"],
            ..example::<Assessment>("assessment", assessment.to_owned())
        },
        Example {
            open: &["/action"],
            nullable: &["/approvalId"],
            ..example::<AdmissionProposal>("admission", admission)
        },
        Example {
            nullable: &["/parentGrantId"],
            ..example::<Grant>("grant", GRANT.to_owned())
        },
    ]
}

/// All examples.
pub fn all() -> Vec<Example> {
    let mut examples = vec![
        contract(),
        graph(),
        manifest(),
        delivery(),
        pending(),
        claimed(),
        consumption(),
        hold(),
        invalidation(),
        summary(),
        config(),
    ];
    examples.extend(work());
    examples
}
