//! An open engine of this command line, with its program, its adapters and its policy.
//! Invariant: the one place that opens an engine; only the runs that a verb names are driven.
//! Called by the verbs `code`, `resume` and `reconcile`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiws::decimal::Dec;
use aiws::error::{Code, Error};
use aiws::id::{ActorId, MissionId, RequestId, RunId};
use aiws::json::Value;
use aiws::record::ActorKind;
use praxis_artifacts::ArtifactProvider;
use praxis_engine::{
    Adapter, Capability, Engine, EngineError, Host, IntentRequest, Options, Ports, Program,
    Response, Shutdown, SystemClock, SystemEntropy,
};
use praxis_model::command::{ActivateGraph, Body, Intent};
use praxis_model::run::RunState;
use praxis_model::stream::Subject;

use crate::authority::{CHECK_PASSED, Policy};
use crate::coding::adapter::{AGENT, AgentAdapter, CHECK, CheckAdapter};
use crate::coding::contract::Job;
use crate::coding::graph::graph;
use crate::coding::pending::verification;
use crate::coding::program::Coding;
use crate::store;

/// An open engine.
pub struct Session {
    /// The engine.
    pub engine: Engine,
    /// The host's side of it.
    pub host: Host,
    /// The coding workflow.
    pub coding: Arc<Coding>,
    /// The artifacts of the store.
    pub artifacts: Arc<dyn ArtifactProvider>,
    path: PathBuf,
}

impl Session {
    /// Opens the engine on an existing store.
    ///
    /// # Errors
    ///
    /// A store code where the store refuses.
    pub async fn open(path: &Path) -> Result<Self, Error> {
        // Whether it is a store at all is for the journal to say, before anything is made in the directory.
        if !path.join("praxis-store.json").exists() {
            store::open_for_reading(path)?
                .close()
                .map_err(|error| store::of_store(path, &error))?;
        }
        let artifacts = store::artifacts(path)?;
        let coding = Arc::new(Coding::new(path.to_owned(), Arc::clone(&artifacts)));
        let mut adapters: BTreeMap<String, Arc<dyn Adapter>> = BTreeMap::new();
        adapters.insert(
            AGENT.to_owned(),
            Arc::new(AgentAdapter(Arc::clone(&coding))),
        );
        adapters.insert(
            CHECK.to_owned(),
            Arc::new(CheckAdapter(Arc::clone(&coding))),
        );
        let program: Arc<dyn Program> = Arc::clone(&coding) as Arc<dyn Program>;
        let options = Options {
            adapters,
            program: Some(program),
            hold_lost_material: true,
            ..Options::default()
        };
        let ports = Ports {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            authorizer: Arc::new(Policy::new(Arc::clone(&artifacts))?),
            artifacts: Arc::clone(&artifacts),
        };
        let opened = Engine::open(path, options, ports).await;
        let (engine, host) = opened.map_err(|error| of_engine(path, &error))?;
        let session = Self {
            engine,
            host,
            coding,
            artifacts,
            path: path.to_owned(),
        };
        session.require_writable()?;
        Ok(session)
    }

    /// Refuses to go on with a store that went read-only.
    ///
    /// # Errors
    ///
    /// The store's reason.
    pub fn require_writable(&self) -> Result<(), Error> {
        match &self.host.journal().view().read_only {
            Some(error) => Err(store::of_store(&self.path, error)),
            None => Ok(()),
        }
    }

    /// The store directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the job's mission, admits its run and pins its graph, in the name of who started the job; what a kill left
    /// undone of that is done.
    ///
    /// # Errors
    ///
    /// The code of the step that was refused.
    pub async fn start(&self, job: &Job, person: &Capability) -> Result<(), Error> {
        let (mission, run) = (&job.mission_id, &job.run_id);
        job.store(self.artifacts.as_ref())?;
        // Fixed request ids: what was done before is answered with its first result.
        self.engine
            .open_mission(
                person,
                &RequestId::new("open")?,
                job.contract()?,
                job.config()?,
            )
            .await?;
        self.engine
            .start_run(person, mission, &RequestId::new("start")?, run.clone())
            .await?;
        let body = Body::ActivateGraph(ActivateGraph {
            run_id: run.clone(),
            owner_epoch: Dec::ZERO,
            graph: graph(job.corrections())?,
        });
        self.submit(person, mission, run, "activate", Intent::Command { body })
            .await?;
        Ok(())
    }

    /// Submits an intent under a request id.
    ///
    /// # Errors
    ///
    /// The code of the stage that refuses.
    pub async fn submit(
        &self,
        capability: &Capability,
        mission: &MissionId,
        run: &RunId,
        request: &str,
        intent: Intent,
    ) -> Result<Response, Error> {
        let request = IntentRequest {
            mission_id: mission.clone(),
            run_id: run.clone(),
            request_id: RequestId::new(request)?,
            intent,
        };
        self.engine.submit(capability, &request).await
    }

    /// Records the passing check as a verification where a run has come so far: a rule's decision, not a person's.
    ///
    /// # Errors
    ///
    /// The code of the stage that refuses.
    pub async fn record_verification(&self, state: &RunState) -> Result<(), Error> {
        let Some(body) = verification(state)? else {
            return Ok(());
        };
        let (mission, run) = (state.subject.mission_id.clone(), body.run_id.clone());
        let request = format!("verify:{}", body.assessment_id);
        let rule = self.host.capability(
            ActorId::new("rule:check-passed")?,
            ActorKind::Rule,
            CHECK_PASSED,
            Value::Null,
        );
        self.submit(
            &rule,
            &mission,
            &run,
            &request,
            Intent::Command {
                body: Body::Verify(body),
            },
        )
        .await
        .map(drop)
    }

    /// A run's current state.
    ///
    /// # Errors
    ///
    /// As the engine's.
    pub async fn state(&self, subject: &Subject) -> Result<Arc<RunState>, Error> {
        let run = subject
            .run_id
            .as_ref()
            .ok_or_else(|| Error::new(Code::RunNotFound, "expected a run, found a mission"))?;
        self.engine.run_state(&subject.mission_id, run).await
    }

    /// Shuts the engine down; an agent in flight may finish unless a second signal comes.
    ///
    /// # Errors
    ///
    /// A store code where the store could not be closed cleanly.
    pub async fn close(&self, how: Shutdown) -> Result<(), Error> {
        self.engine
            .shutdown(how)
            .await
            .map_err(|error| of_engine(&self.path, &error))
    }
}

/// An engine's failure in the protocol's own form.
fn of_engine(path: &Path, error: &EngineError) -> Error {
    Error::new(error.code(), error.to_string()).with("store", path.display().to_string())
}

/// The login that this process runs under, as a principal.
///
/// # Errors
///
/// None in practice; an id that is refused.
pub fn login() -> Result<ActorId, Error> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    // A login that the machine has no name for is still one login.
    let name = name
        .filter(|name| !name.is_empty() && name.len() <= 64)
        .unwrap_or_else(|| format!("uid-{uid}"));
    ActorId::new(name)
}

/// The principal that a person named on the command line.
///
/// # Errors
///
/// `USAGE` for an empty or overlong name, one with controls, or one that only the engine bears.
pub fn named(option: &str, name: &str) -> Result<ActorId, Error> {
    let plain = !name.trim().is_empty()
        && name.chars().count() <= 128
        && crate::render::escape::line(name) == name;
    let of_no_person = ["system:", "rule:", "agent:"];
    if plain && !of_no_person.iter().any(|prefix| name.starts_with(prefix)) {
        return ActorId::new(name);
    }
    let message = format!(
        "{option}: expected a person's name of 1 to 128 plain characters; system:, rule: and agent: name no person"
    );
    Err(Error::new(Code::Usage, message))
}

/// Random bytes as a short name of easily told letters and digits.
///
/// # Errors
///
/// `STORE_IO` when the system gives no entropy.
pub fn random_name() -> Result<String, Error> {
    use praxis_engine::Entropy;
    const LETTERS: &[u8] = b"23456789abcdefghjkmnpqrstuvwxyz";
    let mut bytes = [0u8; 8];
    let failed = |error: std::io::Error| {
        Error::new(Code::StoreIo, format!("no entropy for a new name: {error}"))
    };
    SystemEntropy.fill(&mut bytes).map_err(failed)?;
    let letter = |byte: &u8| {
        LETTERS
            .get(usize::from(*byte) % LETTERS.len())
            .copied()
            .map_or('x', char::from)
    };
    Ok(bytes.iter().map(letter).collect())
}

/// Now, in UTC milliseconds.
#[must_use]
pub fn now_ms() -> u64 {
    use praxis_engine::Clock;
    SystemClock.now_ms()
}

/// A canonical value for people, on several lines.
#[must_use]
pub fn pretty(value: &Value, indent: usize) -> String {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(members) if !members.is_empty() => {
            let lines: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("{pad}  {key}: {}", pretty(value, indent + 2)))
                .collect();
            format!("\n{}", lines.join("\n"))
        }
        Value::String(text) => crate::render::escape::line(text),
        other => crate::render::escape::line(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_people_are_plain_and_not_the_engines() {
        assert_eq!(named("--as", "alice").unwrap().as_str(), "alice");
        for bad in [
            "",
            " ",
            "a\nb",
            "\u{202e}a",
            "system:engine",
            "rule:check-passed",
        ] {
            assert_eq!(
                named("--as", bad).unwrap_err().code(),
                Code::Usage,
                "{bad:?}"
            );
        }
        assert!(named("--as", &"x".repeat(129)).is_err());
    }

    #[test]
    fn random_names_differ_and_are_file_safe() {
        let (one, two) = (random_name().unwrap(), random_name().unwrap());
        assert_ne!(one, two);
        assert!(one.len() == 8 && one.chars().all(|char| char.is_ascii_alphanumeric()));
    }
}
