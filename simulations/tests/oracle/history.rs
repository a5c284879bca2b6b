//! A history written by hand, event by event, for the oracle to judge.
//!
//! Invariant: every draft is right as it comes; a test changes the one thing that it is about. Part of the oracle's tests.

use std::collections::BTreeMap;

use aiws::digest::{sha256, tagged};
use aiws::json::{Object, Value};
use aiws::object;
use praxis_simulations::invariant::Broken;
use praxis_simulations::oracle::{Answer, Handed, Oracle, Request, Response, Row, WorldEntry};

/// An event in the making.
#[derive(Clone, Debug)]
pub struct Draft {
    pub run: Option<&'static str>,
    pub kind: &'static str,
    pub actor: &'static str,
    pub actor_kind: &'static str,
    pub class: &'static str,
    pub decision_ref: Option<&'static str>,
    pub at: u64,
    pub epoch: Option<u64>,
    pub request: Option<(&'static str, &'static str)>,
    pub command: Object,
    pub materials: Object,
    pub evidence: Vec<&'static str>,
    pub reads: Vec<Value>,
    pub transitions: Vec<Value>,
    pub registers: Vec<Value>,
    pub accounts: Vec<Value>,
    pub identities: Vec<Value>,
    pub gates: Vec<Value>,
    pub opens: Vec<String>,
    pub owner: Option<Value>,
    pub due: Vec<Value>,
    pub writer: u32,
    pub claims: Option<u64>,
}

impl Draft {
    pub fn new(run: Option<&'static str>, kind: &'static str) -> Self {
        Self {
            run,
            kind,
            actor: "engine",
            actor_kind: "SYSTEM",
            class: "POLICY",
            decision_ref: None,
            at: 1_000,
            epoch: run.map(|_| 1),
            request: None,
            command: Object::new(),
            materials: Object::new(),
            evidence: Vec::new(),
            reads: Vec::new(),
            transitions: Vec::new(),
            registers: Vec::new(),
            accounts: Vec::new(),
            identities: Vec::new(),
            gates: Vec::new(),
            opens: Vec::new(),
            owner: None,
            due: Vec::new(),
            writer: if run.is_some() { 1 } else { 0 },
            claims: run.map(|_| 1),
        }
    }

    pub fn says(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.command.insert(name.to_owned(), value.into());
        self
    }

    pub fn moves(mut self, transition: Value) -> Self {
        self.transitions.push(transition);
        self
    }

    pub fn posts(mut self, posting: Value) -> Self {
        self.accounts.push(posting);
        self
    }

    pub fn asked(mut self, request: &'static str, digest: &'static str) -> Self {
        self.request = Some((request, digest));
        self
    }

    pub fn at(mut self, at: u64) -> Self {
        self.at = at;
        self
    }

    pub fn human(mut self) -> Self {
        (self.actor, self.actor_kind, self.decision_ref) = ("ann", "HUMAN", Some("ann-decided"));
        self
    }

    pub fn by(mut self, writer: u32, epoch: u64) -> Self {
        (self.writer, self.epoch, self.claims) = (writer, Some(epoch), Some(epoch));
        self
    }
}

/// A store by hand.
pub struct History {
    pub oracle: Oracle,
    pub heads: BTreeMap<String, (u64, [u8; 32])>,
    pub log: Vec<Row>,
}

pub const R1: Option<&str> = Some("r1");
pub const R2: Option<&str> = Some("r2");

pub fn stream(run: Option<&str>) -> String {
    let list = Value::Array(vec!["m".into(), run.map(str::to_owned).into()]);
    tagged("aiws-stream", &aiws::canonical::to_bytes(&list)).to_string()
}

pub fn account() -> Value {
    object! { "dimension": "COST", "missionId": "m", "scopeId": "m" }
}

pub fn scope(run: Option<&str>) -> Value {
    object! { "missionId": "m", "runId": run.map(str::to_owned) }
}

pub fn reserve(amount: u64) -> Value {
    object! { "op": "RESERVE", "account": account(), "amount": amount.to_string() }
}

pub fn release(amount: u64) -> Value {
    object! { "op": "RELEASE", "account": account(), "reserved": amount.to_string() }
}

pub fn spend(reserved: u64, actual: u64) -> Value {
    object! { "op": "SETTLE", "account": account(), "reserved": reserved.to_string(), "actual": actual.to_string() }
}

pub fn hex(hash: [u8; 32]) -> String {
    aiws::digest::Digest(hash).to_string()
}

pub fn material() -> [u8; 32] {
    sha256(b"made").0
}

impl History {
    pub fn of(oracle: Oracle) -> Self {
        Self {
            oracle,
            heads: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    /// Links and seals; the heads go on.
    pub fn seal(&mut self, draft: &Draft) -> Handed {
        let stream = stream(draft.run);
        let (revision, prev) = self.heads.get(&stream).copied().unwrap_or((0, [0; 32]));
        let digest = draft.request.map_or("", |(_, digest)| digest);
        let digest = sha256(digest.as_bytes()).to_string();
        let mut command = draft.command.clone();
        command.insert("type".to_owned(), draft.kind.into());
        let value = object! {
            "stream": stream.as_str(),
            "revision": (revision + 1).to_string(),
            "prevHash": hex(prev),
            "subject": scope(draft.run),
            "type": draft.kind,
            "requestId": draft.request.map(|(id, _)| id),
            "requestDigest": digest.as_str(),
            "part": object! { "k": "1", "of": "1" },
            "actorId": draft.actor,
            "actorKind": draft.actor_kind,
            "policy": object! { "id": "policy", "revision": "1" },
            "decisionClass": draft.class,
            "decisionRef": draft.decision_ref,
            "atMs": draft.at.to_string(),
            "ownerEpoch": draft.epoch.map(|epoch| epoch.to_string()),
            "command": command,
            "facts": object! {
                "account": Value::Null, "admissions": Object::new(), "authorizedAtMs": "0", "claimFingerprint": Value::Null,
                "clearEvidence": draft.evidence.clone(), "materialErrors": Object::new(), "materials": draft.materials.clone(),
                "recoveryAuthority": false, "registers": draft.reads.clone(), "restartAllowed": false,
            },
            "outcome": object! {
                "accounts": draft.accounts.clone(), "due": draft.due.clone(), "gates": draft.gates.clone(),
                "identities": draft.identities.clone(), "opens": draft.opens.clone(), "owner": draft.owner.clone(),
                "registers": draft.registers.clone(), "transitions": draft.transitions.clone(),
            },
            "result": object! {},
            "codec": object! { "profile": "aiws-handoff/1", "version": "0" },
        };
        let row = row(&value);
        for opened in &draft.opens {
            self.heads.insert(opened.clone(), (0, row.hash));
        }
        self.heads.insert(stream, (revision + 1, row.hash));
        Handed {
            writer: draft.writer,
            claims_epoch: draft.claims,
            request: draft.request.map(|(id, _)| Request {
                actor: draft.actor.to_owned(),
                request: id.to_owned(),
                digest,
            }),
            rows: vec![row],
        }
    }

    /// Hands in what is sealed, and is answered that it is stored.
    pub fn commit(&mut self, batch: &[Handed]) -> Result<(), Broken> {
        let mut answers = Vec::new();
        for handed in batch {
            let sequence = self.log.len() as u64 + 1;
            let hash = handed.rows.last().unwrap().hash;
            answers.push(Answer::Stored { sequence, hash });
            self.log.extend(handed.rows.iter().cloned());
        }
        self.oracle.hand_in(batch);
        self.oracle.answered(&answers)
    }

    pub fn store(&mut self, draft: &Draft) -> Result<(), Broken> {
        let handed = self.seal(draft);
        self.commit(&[handed])
    }

    /// Hands something in that is answered otherwise; the heads stay.
    pub fn answered(&mut self, draft: &Draft, answer: Answer) -> Result<(), Broken> {
        let heads = self.heads.clone();
        let handed = self.seal(draft);
        self.heads = heads;
        self.oracle.hand_in(&[handed]);
        self.oracle.answered(&[answer])
    }

    pub fn reopen(&mut self) -> Result<(), Broken> {
        self.oracle.power_lost();
        let log = self.log.clone();
        self.oracle.reopened(&log)
    }

    /// A mission with a bound of 100, a grant of up to 40, at most two tries, and two runs under way.
    pub fn begun(oracle: Oracle) -> Self {
        let mut history = Self::of(oracle);
        history.store(&open_mission()).unwrap();
        for run in [R1, R2] {
            history.store(&start(run)).unwrap();
            history.store(&Draft::new(run, "activateGraph")).unwrap();
        }
        history
    }

    /// An attempt of an operation is under way: admitted, dispatched, called.
    pub fn working(
        &mut self,
        operation: &'static str,
        attempt: &'static str,
        effect: &str,
    ) -> Result<(), Broken> {
        self.store(&admit(operation, attempt, 10, effect))?;
        self.store(&moved("dispatch", attempt, "PREPARED", "DISPATCHED"))?;
        self.oracle.called(1, attempt)
    }

    /// The provider applies it.
    pub fn applied(&mut self, operation: &str, attempt: &str) {
        self.oracle.world(WorldEntry {
            operation: operation.to_owned(),
            attempt: attempt.to_owned(),
            cost: 10,
            forgot: false,
        });
    }

    /// Nobody knows what became of it.
    pub fn lost(&mut self, attempt: &'static str) -> Result<(), Broken> {
        self.oracle.response(attempt, Response::Lost);
        self.store(&moved("settle", attempt, "DISPATCHED", "UNKNOWN"))
    }

    /// A manifest with one artifact is delivered as `d1`.
    pub fn delivered(&mut self) -> Result<(), Broken> {
        self.oracle.put(material(), true);
        self.store(&boundary("h1", "d1"))
    }
}

pub fn row(value: &Value) -> Row {
    let bytes = aiws::canonical::to_bytes(value);
    Row {
        hash: tagged("aiws-event", &bytes).0,
        bytes,
    }
}

pub fn open_mission() -> Draft {
    let grant = object! { "grantId": "g", "maxAmount": "40", "notAfterMs": "1000000" };
    let contract = object! {
        "budget": "100", "maxAttempts": "2", "lostReads": object! { "decisionRef": "ann-rules" },
    };
    let mut draft = Draft::new(None, "openMission")
        .says("contract", contract)
        .says("config", object! { "restartPolicy": "AUTO" })
        .posts(object! { "op": "OPEN", "account": account(), "bound": "100" });
    draft.registers = vec![object! { "register": register("GRANT", "g"), "value": grant }];
    draft
}

pub fn register(kind: &str, key: &str) -> Value {
    object! { "missionId": "m", "kind": kind, "key": key }
}

pub fn start(run: Option<&'static str>) -> Draft {
    let mut draft = Draft::new(None, "startRun");
    draft.opens = vec![stream(run)];
    draft.owner = Some(object! { "stream": stream(run), "epoch": "1" });
    draft.due = vec![object! { "stream": stream(run), "kind": "LIVE", "atMs": "1000" }];
    draft.identities = vec![object! { "kind": "RUN", "key": run, "digest": hex([0; 32]) }];
    draft
}

pub fn take_over(run: Option<&'static str>, writer: u32, from: u64) -> Draft {
    let mut draft = Draft::new(run, "recoverOwnership");
    (draft.writer, draft.epoch, draft.claims) = (writer, Some(from), Some(from + 1));
    draft.owner = Some(object! { "stream": stream(run), "epoch": (from + 1).to_string() });
    draft
}

pub fn admit(operation: &str, attempt: &str, amount: u64, effect: &str) -> Draft {
    let mut draft = Draft::new(R1, "admitConsumer")
        .moves(object! { "kind": "CONSUMPTION_RECORDED", "consumption": object! { "activationId": format!("of-{operation}"), "inputs": Vec::<Value>::new() } })
        .moves(object! {
            "kind": "OPERATION_ADMITTED",
            "operation": object! { "operationId": operation, "effect": effect, "grantId": "g" },
            "attempt": attempt_of(operation, attempt, amount),
        })
        .posts(reserve(amount));
    draft.reads =
        vec![object! { "register": register("GRANT", "g"), "revision": "1", "value": Value::Null }];
    draft
}

pub fn attempt_of(operation: &str, attempt: &str, amount: u64) -> Value {
    object! {
        "id": attempt, "operationId": operation, "epoch": "1", "status": "PREPARED", "reserved": amount.to_string(),
        "actual": Value::Null,
    }
}

pub fn retry(operation: &str, attempt: &str, amount: u64) -> Draft {
    Draft::new(R1, "retry")
        .moves(object! { "kind": "ATTEMPT_PREPARED", "attempt": attempt_of(operation, attempt, amount) })
        .posts(reserve(amount))
}

pub fn moved(kind: &'static str, attempt: &str, from: &str, to: &str) -> Draft {
    Draft::new(R1, kind).moves(object! {
        "kind": "ATTEMPT_MOVED", "attemptId": attempt, "from": from, "to": to, "actual": Value::Null,
    })
}

/// A confirmed outcome with evidence that is there; 10 were reserved.
pub fn confirm(kind: &'static str, attempt: &str, from: &str, actual: Option<u64>) -> Draft {
    let to = if actual.is_some() {
        "CONFIRMED_APPLIED"
    } else {
        "CONFIRMED_NOT_APPLIED"
    };
    let mut draft = Draft::new(R1, kind)
        .says("evidence", vec!["seen"])
        .posts(actual.map_or(release(10), |actual| spend(10, actual)))
        .moves(object! {
            "kind": "ATTEMPT_MOVED", "attemptId": attempt, "from": from, "to": to,
            "actual": actual.unwrap_or(0).to_string(),
        });
    draft.evidence = vec!["seen"];
    draft
}

pub fn handoff(id: &str) -> Value {
    object! { "handoffId": id, "digest": hex([7; 32]) }
}

pub fn boundary(id: &str, delivery: &str) -> Draft {
    let artifact = object! { "digest": hex(material()), "sizeBytes": "4" };
    Draft::new(R1, "commitBoundary")
        .says("manifest", object! { "artifacts": vec![artifact] })
        .moves(object! { "kind": "MANIFEST_COMMITTED", "handoff": handoff(id), "skipped": Value::Null })
        .moves(object! { "kind": "DELIVERY_OPENED", "delivery": object! {
            "deliveryId": delivery, "handoff": handoff(id), "state": "PENDING", "generation": "0",
        } })
}

pub fn claim(delivery: &str, generation: u64, at: u64) -> Draft {
    let claim = object! {
        "claimant": "engine", "tokenHash": hex([1; 32]), "generation": generation.to_string(), "ownerEpoch": "1",
        "expiresAtMs": (at + 100).to_string(),
    };
    Draft::new(R1, "claimDelivery").at(at).moves(object! {
        "kind": "DELIVERY_MOVED", "deliveryId": delivery, "from": "PENDING", "to": "CLAIMED", "claim": claim,
    })
}

/// A receipt of `d1`, or of another delivery, on the only material.
pub fn acknowledge(delivery: &str, generation: u64, at: u64) -> Draft {
    let size = object! { "sizeBytes": "4" };
    let listed = object! { "digest": hex(material()), "sizeBytes": "4" };
    let mut draft = Draft::new(R1, "acknowledgeDelivery")
        .at(at)
        .says("handoff", handoff("h1"))
        .says("claimToken", hex([1; 32]))
        .says("generation", generation.to_string())
        .moves(object! {
            "kind": "DELIVERY_MOVED", "deliveryId": delivery, "from": "CLAIMED", "to": "ACKNOWLEDGED",
            "acknowledgement": object! { "materials": vec![listed] },
        });
    draft.materials.insert(hex(material()), size);
    draft
}

pub fn gate(run: Option<&str>, hold: &str, closed: bool) -> Value {
    object! { "scope": scope(run), "gate": object! { "kind": "HOLD", "holdId": hold }, "closed": closed }
}

pub fn hold(id: &str, reason: &str) -> Draft {
    let mut draft = Draft::new(R1, "placeHold").moves(object! {
        "kind": "HOLD_OPENED", "hold": object! { "holdId": id, "reason": reason, "blockers": Vec::<Value>::new() },
    });
    draft.gates = vec![gate(R1, id, true)];
    draft
}

pub fn resolve(id: &str) -> Draft {
    let mut draft = Draft::new(R1, "resolveHold")
        .moves(object! { "kind": "HOLD_CLOSED", "holdId": id, "to": "RELEASED" });
    draft.gates = vec![gate(R1, id, false)];
    draft
}

pub fn ended(to: &str) -> Value {
    object! { "kind": "LIFECYCLE_MOVED", "from": "RUNNING", "to": to, "cause": Value::Null }
}
