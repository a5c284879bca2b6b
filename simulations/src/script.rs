//! Small linked events for driving the journal without the model: one mission, its runs, and what they post.
//!
//! Invariant: the same calls give the same bytes; every event continues the stream where the script left it.
//! Called by crash scenarios, by the journal's tests (which include this file) and by its benchmark.

use std::collections::BTreeMap;

use aiws::decimal::{Dec, U64};
use aiws::digest::{Digest, sha256};
use aiws::error::Error;
use aiws::id::{ActorId, ApprovalId, Id, MissionId, RequestId, RunId, ScopeId, StreamId};
use aiws::json::Value;
use aiws::record::{ActorKind, Ref};
use praxis_journal::{Append, Conditions, RequestKey};
use praxis_journal_format::{FormatError, Sealed, seal};
use praxis_model::account::{AccountKey, Dimension, Posting};
use praxis_model::command::{Body, CompleteRun, RevokeApproval, StartRun};
use praxis_model::event::{
    CODEC_VERSION, Codec, DueChange, DueKind, Event, Head, Identity, IdentityKind, Outcome, Owner,
    Part,
};
use praxis_model::facts::RecordedFacts;
use praxis_model::register::{RegisterKey, RegisterKind, RegisterWrite};
use praxis_model::stream::Subject;

/// Why a script could not be written: an id that is none, an event that cannot be sealed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// A record of the protocol was refused.
    #[error(transparent)]
    Record(#[from] Error),
    /// An event was refused.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// A mission that is being told.
#[derive(Clone, Debug)]
pub struct Script {
    mission: MissionId,
    heads: BTreeMap<StreamId, Head>,
    told: u64,
    /// Bytes of filling in each event's result.
    pub filling: usize,
}

impl Script {
    /// A mission without events.
    ///
    /// # Errors
    /// [`ScriptError::Record`] for a name that is no id.
    pub fn new(mission: &str) -> Result<Self, ScriptError> {
        Ok(Self {
            mission: MissionId::new(mission)?,
            heads: BTreeMap::new(),
            told: 0,
            filling: 0,
        })
    }

    /// The mission's account.
    ///
    /// # Errors
    /// [`ScriptError::Record`] never occurs for a mission's id.
    pub fn account(&self) -> Result<AccountKey, ScriptError> {
        let scope_id = ScopeId::new(self.mission.as_str())?;
        Ok(AccountKey {
            mission_id: self.mission.clone(),
            scope_id,
            dimension: Dimension::Cost,
        })
    }

    /// A run's subject.
    ///
    /// # Errors
    /// [`ScriptError::Record`] for a name that is no id.
    pub fn run(&self, run: &str) -> Result<Subject, ScriptError> {
        Ok(Subject::run(self.mission.clone(), RunId::new(run)?))
    }

    /// The mission's subject.
    pub fn mission(&self) -> Subject {
        Subject::mission(self.mission.clone())
    }

    /// The register of a run's admission.
    ///
    /// # Errors
    /// [`ScriptError::Record`] for a name that is no id.
    pub fn admission(&self, run: &str) -> Result<RegisterKey, ScriptError> {
        Ok(RegisterKey {
            mission_id: self.mission.clone(),
            kind: RegisterKind::RunAdmission,
            key: Id::new(run)?,
        })
    }

    /// Admits a run: opens its stream, its owner, a register, an identity, a due time; the first one opens the
    /// mission's account with a bound of 100.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn start_run(&mut self, run: &str) -> Result<Append, ScriptError> {
        let subject = self.run(run)?;
        let mut outcome = Outcome {
            registers: vec![RegisterWrite {
                register: self.admission(run)?,
                value: Value::from(run),
            }],
            identities: vec![Identity {
                kind: IdentityKind::Run,
                key: Id::new(run)?,
                digest: sha256(run.as_bytes()),
            }],
            opens: vec![subject.stream()],
            owner: Some(Owner {
                stream: subject.stream(),
                epoch: U64(1),
            }),
            due: vec![DueChange {
                stream: subject.stream(),
                kind: DueKind::Live,
                at_ms: Some(U64(1_000)),
            }],
            ..Outcome::default()
        };
        if self.told == 0 {
            outcome.accounts.push(Posting::Open {
                account: self.account()?,
                bound: Dec::from_u64(100),
            });
        }
        let body = Body::StartRun(StartRun {
            run_id: RunId::new(run)?,
        });
        let mission = self.mission();
        let mut append = self.append(&mission, vec![(body, outcome)])?;
        append.conditions.head = true;
        append.conditions.gates = Some(vec![mission]);
        Ok(append)
    }

    /// A run reserves an amount and settles it, in two parts of one append.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn spend(&mut self, run: &str, amount: u64) -> Result<Append, ScriptError> {
        let (subject, account, amount) = (self.run(run)?, self.account()?, Dec::from_u64(amount));
        let reserve = Posting::Reserve {
            account: account.clone(),
            amount,
        };
        let settle = Posting::Settle {
            account,
            reserved: amount,
            actual: amount,
        };
        let parts = [reserve, settle].map(|posting| Outcome {
            accounts: vec![posting],
            ..Outcome::default()
        });
        let parts: Result<Vec<_>, ScriptError> = parts
            .into_iter()
            .map(|outcome| Ok((self.revocation(run)?, outcome)))
            .collect();
        self.append(&subject, parts?)
    }

    /// A run's event without any outcome.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn note(&mut self, run: &str) -> Result<Append, ScriptError> {
        let parts = vec![(self.revocation(run)?, Outcome::default())];
        let subject = self.run(run)?;
        self.append(&subject, parts)
    }

    /// A run completes: a launching event, with its conditions.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn complete(&mut self, run: &str, epoch: u64) -> Result<Append, ScriptError> {
        let subject = self.run(run)?;
        let body = Body::CompleteRun(CompleteRun {
            run_id: RunId::new(run)?,
            owner_epoch: Dec::from_u64(epoch),
        });
        let outcome = Outcome {
            due: vec![DueChange {
                stream: subject.stream(),
                kind: DueKind::Live,
                at_ms: None,
            }],
            ..Outcome::default()
        };
        let mut append = self.append(&subject, vec![(body, outcome)])?;
        append.conditions.head = true;
        append.conditions.fence = Some((subject.stream(), epoch));
        append.conditions.gates = Some(vec![subject, self.mission()]);
        Ok(append)
    }

    /// Any events of one subject as the parts of one append under the script's next request.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn append(
        &mut self,
        subject: &Subject,
        parts: Vec<(Body, Outcome)>,
    ) -> Result<Append, ScriptError> {
        self.told += 1;
        let request_id = RequestId::new(format!("request-{}", self.told))?;
        let of = U64(parts.len() as u64);
        let mut sealed = Vec::with_capacity(parts.len());
        for (k, (body, outcome)) in (1..).zip(parts) {
            let event = self.event(subject, &request_id, Part { k: U64(k), of }, body, outcome)?;
            sealed.push(self.tell(event)?);
        }
        let request = sealed
            .first()
            .and_then(|sealed| RequestKey::of(&sealed.event));
        Ok(Append {
            sealed,
            conditions: Conditions {
                request,
                head: true,
                ..Conditions::default()
            },
        })
    }

    fn tell(&mut self, event: Event) -> Result<Sealed, ScriptError> {
        let sealed = seal(event)?;
        for opened in &sealed.event.outcome.opens {
            self.heads.insert(
                opened.clone(),
                Head {
                    revision: U64(0),
                    hash: sealed.hash,
                },
            );
        }
        self.heads
            .insert(sealed.event.stream.clone(), sealed.head());
        Ok(sealed)
    }

    fn event(
        &self,
        subject: &Subject,
        request_id: &RequestId,
        part: Part,
        command: Body,
        outcome: Outcome,
    ) -> Result<Event, ScriptError> {
        let start = Head {
            revision: U64(0),
            hash: Digest::ZERO,
        };
        let head = self.heads.get(&subject.stream()).copied().unwrap_or(start);
        Ok(Event {
            stream: subject.stream(),
            revision: U64(head.revision.0 + 1),
            prev_hash: head.hash,
            subject: subject.clone(),
            kind: command.kind(),
            request_id: Some(request_id.clone()),
            request_digest: sha256(request_id.as_str().as_bytes()),
            part,
            actor_id: ActorId::new("operator")?,
            actor_kind: ActorKind::System,
            policy: aiws::canonical::from_value::<Ref>(
                &aiws::object! { "id": "policy", "revision": "1" },
            )?,
            decision_class: "POLICY".to_owned(),
            decision_ref: None,
            at_ms: U64(1_000 + self.told),
            owner_epoch: subject.run_id.as_ref().map(|_| U64(1)),
            command,
            facts: RecordedFacts::default(),
            outcome,
            result: aiws::object! { "filling": "x".repeat(self.filling) },
            codec: Codec {
                profile: "aiws-handoff/1".to_owned(),
                version: U64(CODEC_VERSION),
            },
        })
    }

    fn revocation(&self, run: &str) -> Result<Body, ScriptError> {
        let approval_id = ApprovalId::new(format!("approval-{}", self.told))?;
        Ok(Body::RevokeApproval(RevokeApproval {
            approval_id,
            run_id: RunId::new(run)?,
            reason: "told".to_owned(),
        }))
    }
}
