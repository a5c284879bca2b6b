//! Pure questions about hand-off material and a run's committed state.
//! Invariant: every answer is a function of the arguments alone; none of them changes anything.
//! Called by applications, with values they hold and states that the engine gives out.
//!
//! ```
//! # use std::error::Error;
//! # use aiws::decimal::U64;
//! # use aiws::digest::Digest;
//! # use aiws::id::{ActorId, Id, MissionId, RunId};
//! # use aiws::record::{ActorKind, Ref};
//! # use praxis_journal_format::{link, seal};
//! # use praxis_model::command::{Body, Command};
//! # use praxis_model::event::Head;
//! # use praxis_model::facts::Facts;
//! # use praxis_model::run::RunState;
//! # use praxis_model::stream::Subject;
//! # use praxis_model::{decide, evolve};
//! # fn facts() -> Result<Facts, Box<dyn Error>> {
//! #     Ok(Facts {
//! #         allowed: true,
//! #         actor_id: ActorId::new("engine")?,
//! #         actor_kind: ActorKind::System,
//! #         policy: Ref { id: Id::new("policy")?, revision: Dec::from_u64(1) },
//! #         decision_class: "POLICY".to_owned(),
//! #         decision_ref: None,
//! #         authorized_at_ms: 1,
//! #         now_ms: 1,
//! #         materials: Default::default(),
//! #         material_errors: Default::default(),
//! #         admissions: Default::default(),
//! #         registers: Vec::new(),
//! #         account: None,
//! #         outer_gates: Vec::new(),
//! #         clear_evidence: Default::default(),
//! #         restart_allowed: false,
//! #         claim_fingerprint: None,
//! #         recovery_authority: false,
//! #         clock_stepped: false,
//! #     })
//! # }
//! # fn command(text: &str, head: Option<Head>, run: Option<&str>) -> Result<Command, Box<dyn Error>> {
//! #     Ok(Command {
//! #         mission_id: MissionId::new("m")?,
//! #         run_id: run.map(RunId::new).transpose()?,
//! #         request_id: None,
//! #         request_digest: Digest::ZERO,
//! #         expected_revision: head.map(|head| head.revision.into()),
//! #         owner_epoch: run.map(|_| Dec::from_u64(1)),
//! #         body: aiws::canonical::from_value::<Body>(&aiws::strict::parse(text.as_bytes())?)?,
//! #     })
//! # }
//! # fn started() -> Result<RunState, Box<dyn Error>> {
//! #     let open = r#"{"type":"openMission","contract":{"edition":"0.4","features":[],"missionId":"m","contractId":"c",
//! #         "revision":"1","budget":"10","deadlineMs":"9000","maxAttempts":"3","authority":{"rootGrants":[]},
//! #         "extensions":["aiws-handoff/1"]},"config":{"optionalInputs":[],"mappings":[],"requiredSkip":[],
//! #         "restartPolicy":"HUMAN","leaseMs":"100","defaultStop":"DRAIN","maxRecipients":"8",
//! #         "scopeBindings":[]}}"#;
//! #     let graph = r#"{"type":"activateGraph","runId":"r","ownerEpoch":"1","graph":{"graphId":"g","revision":"1",
//! #         "planRevision":"1","nodes":[{"id":"plan","kind":"TASK","dependsOn":[],"config":{"executionKind":"AGENT"}},
//! #         {"id":"end","kind":"END","dependsOn":["plan"],"config":{}}]}}"#;
//! #     let facts = facts()?;
//! #     let mut mission = None;
//! #     let mut head = Head { revision: U64(0), hash: Digest::ZERO };
//! #     let mut admitted = None;
//! #     for text in [open, r#"{"type":"startRun","runId":"r"}"#] {
//! #         let command = command(text, mission.is_some().then_some(head), None)?;
//! #         let decision = decide::mission(mission.as_ref(), &command, &facts)?;
//! #         let subject = Subject::mission(MissionId::new("m")?);
//! #         let sealed = seal(link(subject, head, &command, &decision, &facts, 1, None))?;
//! #         head = sealed.head();
//! #         mission = Some(evolve::mission(mission, &sealed.event, &sealed.hash)?);
//! #         admitted = RunState::admitted(&sealed.event, &sealed.hash).ok();
//! #     }
//! #     let run = admitted.ok_or("no run was admitted")?;
//! #     let command = command(graph, Some(run.head), Some("r"))?;
//! #     let decision = decide::run(&run, &command, &facts)?;
//! #     let epoch = Some(run.epoch);
//! #     let sealed = seal(link(run.subject.clone(), run.head, &command, &decision, &facts, 1, epoch))?;
//! #     Ok(evolve::run(run, &sealed.event, &sealed.hash)?)
//! # }
//! use aiws::decimal::Dec;
//! use aiws::id::NodeId;
//! use aiws::record::Lifecycle;
//! use aiws_sdk::handoff::{activation, report};
//!
//! let state = started()?; // a run whose graph is `plan` (a TASK), then `end`
//! let plan = NodeId::new("plan")?;
//! assert!(activation(&state, &plan).is_some());
//! assert_eq!(activation(&state, &NodeId::new("elsewhere")?), None);
//!
//! let report = report(&state);
//! assert_eq!((report.lifecycle, report.spent), (Lifecycle::Running, Dec::ZERO));
//! assert_eq!(report.ready, [plan]);
//! # Ok::<(), Box<dyn Error>>(())
//! ```

use aiws::canonical;
use aiws::digest::{Digest, sha256};
use aiws::id::{ActivationId, NodeId};
use aiws::json::Value;
pub use praxis_model::report::Report;
pub use praxis_model::run::RunState;

/// SHA-256 of a value's canonical bytes (CJ-1): the digest that references to it carry. It identifies the value and
/// proves neither who wrote it nor that anybody may act on it (CJ-3).
///
/// ```
/// use aiws_sdk::handoff::sha;
/// let one = aiws::strict::parse(br#"{ "b": 1, "a": [true] }"#)?;
/// let same = aiws::strict::parse(br#"{"a":[true],"b":1}"#)?;
/// assert_eq!(sha(&one), sha(&same));
/// assert_eq!(sha(&one), aiws::digest::sha256(br#"{"a":[true],"b":1}"#));
/// # Ok::<(), aiws::error::Error>(())
/// ```
pub fn sha(value: &Value) -> Digest {
    sha256(&canonical::to_bytes(value))
}

/// The activation of a node that is current in this state (API-7): what a manifest's producer, a recipient and a
/// consumption of that node must name. `None` for a node that the pinned graph does not have, and before there is a
/// graph. A node keeps its activation however often its operation is retried.
///
/// An example stands at the head of this module.
pub fn activation(state: &RunState, node: &NodeId) -> Option<ActivationId> {
    state.nodes.get(node).map(|node| node.activation_id.clone())
}

/// How a run stands as of its last event, from its committed state alone (REP-1): lifecycle, nodes with their
/// operations and attempts, holds, uncertain effects, deliveries per state, the numbers of manifests and
/// consumptions, and what the run spent and has reserved, in units (REP-2). Lifecycle and holds stand side by side:
/// a run that is held is still RUNNING.
///
/// An example stands at the head of this module.
pub fn report(state: &RunState) -> Report {
    praxis_model::report::of(state)
}
