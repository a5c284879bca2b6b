//! Who a person is, as far as that is proven, and the record of it that a decision names.
//! Invariant: no capability of a person is made without a proof that the caller does not descend from the work; what
//! was proven is stored before the decision that names it. Called by everything that decides.

use aiws::error::Error;
use aiws::id::ActorId;
use aiws::json::Value;
use aiws::object;
use aiws::record::ActorKind;
use praxis_engine::Capability;

use super::{Office, Peer, blocking};
use crate::human::{self, Caller, Proof, Way};
use crate::limits::RETENTION_MS;
use crate::request::Given;
use crate::session::{login, named, now_ms};

/// What a person decides, for the record.
pub(super) struct Said<'a> {
    /// The verb, such as `approve`.
    pub verb: &'a str,
    /// What it is about: a run, a digest, an attempt.
    pub about: Value,
    /// Why, in the person's words.
    pub reason: Option<&'a str>,
    /// Whether it lets something happen: while an attempt has neither lock nor record, that takes a terminal.
    pub grants: bool,
}

impl Office {
    /// The capability of the person behind a request, with the stored record of what was proven.
    pub(super) async fn person(
        &self,
        peer: &Peer,
        given: Given,
        name: Option<&str>,
        said: Said<'_>,
    ) -> Result<Capability, Error> {
        let actor = match name {
            Some(name) => named("--as", name)?,
            None => login()?,
        };
        self.person_called(peer, given, actor, said).await
    }

    /// Refuses whoever descends from the work, where nothing is decided.
    ///
    /// # Errors
    ///
    /// `HUMAN_REQUIRED`.
    pub async fn require_person(&self, peer: &Peer) -> Result<(), Error> {
        self.prove(peer, Way::Verb, false).await.map(drop)
    }

    async fn prove(&self, peer: &Peer, way: Way, grants: bool) -> Result<Proof, Error> {
        let mut looks = 0;
        loop {
            let reader = self.reader();
            let mut work = blocking(move || reader.work()).await?;
            work.lost &= grants;
            let proven = match peer {
                Peer::Own => human::prove(&Caller::this_process()?, way, &work, now_ms()),
                Peer::Socket(Ok(caller)) => human::prove(caller, way, &work, now_ms()),
                Peer::Socket(Err(error)) => Err(error.clone()),
            };
            looks += 1;
            if looks == human::LOOKS || !proven.as_ref().is_err_and(human::is_outdated) {
                return proven;
            }
        }
    }

    /// As [`Office::person`], in a name that is known.
    pub(super) async fn person_called(
        &self,
        peer: &Peer,
        given: Given,
        actor: ActorId,
        said: Said<'_>,
    ) -> Result<Capability, Error> {
        let way = match given {
            Given::AtTerminal => Way::Typed,
            Given::ByVerb => Way::Verb,
            Given::InAdvance => Way::InAdvance,
        };
        let proof = self.prove(peer, way, said.grants).await?;
        let record = object! {
            "format": "praxis-decision",
            "version": 0,
            "verb": said.verb,
            "about": said.about,
            "reason": said.reason,
            "name": actor.as_str(),
            "proof": proof.to_value(),
        };
        let kept = self.session.artifacts.put(
            &aiws::canonical::to_bytes(&record),
            "decision.json",
            "application/json",
            &actor,
            now_ms().saturating_add(RETENTION_MS),
        );
        let kept = kept.map_err(|error| Error::new(error.code(), error.to_string()))?;
        let class = match given {
            Given::AtTerminal => crate::authority::AT_TERMINAL,
            Given::InAdvance => crate::authority::IN_ADVANCE,
            Given::ByVerb => crate::authority::TYPED,
        };
        let evidence = object! { "decision": format!("sha256:{}", kept.digest) };
        Ok(self
            .session
            .host
            .capability(actor, ActorKind::Human, class, evidence))
    }
}

/// The reference of the decision that a capability names.
pub(super) fn decision_ref(person: &Capability) -> Result<aiws::id::Id, Error> {
    let named = person.evidence().get("decision").and_then(Value::as_str);
    aiws::id::Id::new(named.unwrap_or("decision"))
}
