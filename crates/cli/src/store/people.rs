//! What people decide on, and what their decisions must not come from.
//! Invariant: what cannot be read refuses; nothing is taken for settled that is not recorded.
//! Part of the reader of the store.

use aiws::digest::{Digest, sha256};
use aiws::error::{Code, Error};
use aiws::json::Value;
use aiws::record::{Hold, HoldState};
use praxis_journal_format::Sealed;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;

use super::{Reader, Run, is_live, shims};
use crate::coding::graph;
use crate::coding::outcome::{PLAN_FILE, named};
use crate::coding::pending::manifest_of;
use crate::human::{Caller, LOOKS, Way, Work, is_outdated, prove};
use crate::limits::DECISION_BYTES;
use crate::render::escape;
use crate::session::now_ms;

impl Reader {
    /// What a person's decision must not come from.
    ///
    /// # Errors
    ///
    /// A store code when a run cannot be read: what its agents are is not known then.
    pub fn work(&self) -> Result<Work, Error> {
        let mut work = Work {
            store: self.path.clone(),
            engine: None,
            shims: Vec::new(),
            lost: false,
        };
        if self.owned {
            work.engine = Some(Caller::this_process()?.id());
        }
        for subject in self.runs()? {
            if is_live(&self.journal, &subject) {
                let (state, _) = self.state(&subject)?;
                work.shims.extend(shims::living(&self.path, &state));
                work.lost |= shims::is_lost(&self.path, &state, self.owned);
            }
        }
        Ok(work)
    }

    /// Refuses this process where it descends from the work, and nothing is decided.
    ///
    /// # Errors
    ///
    /// `HUMAN_REQUIRED`, and a store code.
    pub fn require_person(&self) -> Result<(), Error> {
        let mut looks = 0;
        loop {
            let work = Work {
                lost: false,
                ..self.work()?
            };
            let proven = prove(&Caller::this_process()?, Way::Verb, &work, now_ms());
            looks += 1;
            if looks == LOOKS || !proven.as_ref().is_err_and(is_outdated) {
                return proven.map(drop);
            }
        }
    }

    /// Asks what runs under a shim to stop, and whether an outcome is still to come of it.
    #[must_use]
    pub fn stop_shims(&self, state: &RunState) -> bool {
        shims::stop(&self.path, state, self.owned)
    }

    /// The open hold of this name or of an unambiguous beginning of it.
    ///
    /// # Errors
    ///
    /// `HOLD_STATE` where it is closed; `NOT_FOUND` where there is none, or several begin so.
    pub fn find_hold(&self, named: &str) -> Result<(Subject, Hold), Error> {
        let (mut open, mut closed) = (Vec::new(), None);
        for subject in self.runs()? {
            let (state, _) = self.state(&subject)?;
            let named =
                |hold: &&Hold| !named.is_empty() && hold.hold_id.as_str().starts_with(named);
            for hold in state.holds.values().filter(named) {
                match hold.state {
                    HoldState::Open => open.push((subject.clone(), hold.clone())),
                    other => closed = Some(other),
                }
            }
        }
        let shown = escape::line(named);
        match (open.len(), open.pop(), closed) {
            (1, Some(found), _) => Ok(found),
            (0, _, Some(state)) => Err(Error::new(
                Code::HoldState,
                format!(
                    "expected hold {shown} to be open, found it {}",
                    state.name()
                ),
            )),
            (0, _, None) => Err(Error::new(
                Code::NotFound,
                format!(
                    "expected an open hold, found none that begins with {shown}; praxis holds lists them"
                ),
            )),
            (several, _, _) => Err(Error::new(
                Code::NotFound,
                format!("{shown} is the beginning of {several} open holds; write more of it"),
            )),
        }
    }

    /// The plan of a run as text; none where there is none yet, or it cannot be read.
    #[must_use]
    pub fn plan(&self, run: &Run) -> Option<String> {
        let manifest = manifest_of(&run.state, graph::PLAN)?;
        let plan = named(&manifest.artifacts, PLAN_FILE)?;
        let bytes = self.artifact(plan).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What a decision's record says, where its event names one.
    #[must_use]
    pub fn decision(&self, sealed: &Sealed) -> Option<Value> {
        let named = sealed.event.decision_ref.as_ref()?;
        let digest: Digest = named.as_str().strip_prefix("sha256:")?.parse().ok()?;
        let bytes = self
            .artifacts
            .read_digest(&digest, DECISION_BYTES)
            .ok()
            .filter(|bytes| sha256(bytes) == digest)?;
        aiws::strict::parse(&bytes).ok()
    }
}
