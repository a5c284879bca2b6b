//! The job of a coding run, and the contract, grants and hand-off configuration that follow from it.
//! Invariant: the contract's id names the digest of the job, so that nothing of the job can change after the mission was opened.
//! Called by the verb `code` once and by `program` whenever a run is looked at.

use std::path::PathBuf;

use aiws::canonical;
use aiws::decimal::{Dec, DecPlus, Ms, U64};
use aiws::digest::{Digest, sha256};
use aiws::error::{Code, Error};
use aiws::id::{ActorId, ContractId, GrantId, Id, MissionId, RunId};
use aiws::record::{
    Artifact, Authority, Contract, Edition, Grant, HandoffConfig, HoldScopeKind, Locator,
    LostReads, OptionalInput, Ref, RestartPolicy, ScopeBinding, StopAction,
};
use praxis_artifacts::{ArtifactProvider, read_verified};
use serde::{Deserialize, Serialize};

use super::actions::{Actions, Grants};
use super::graph;
use crate::limits;

mod check;
mod choices;

pub use choices::{Choices, From, Origin};

/// The format name of a stored job.
const FORMAT: &str = "praxis-coding-job";
/// What the contract's id begins with; the digest of the job follows.
const CONTRACT_PREFIX: &str = "coding:";
/// The engine's own principal, for whom the grants stand.
pub const EXECUTOR: &str = "system:engine";
/// The media type of a stored job.
pub const JOB_MEDIA_TYPE: &str = "application/json";

/// What `praxis code` was asked to do: everything that a resumed run needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Job {
    /// Always `praxis-coding-job`.
    pub format: String,
    /// Always 0 (T-85).
    pub version: U64,
    /// The run.
    pub run_id: RunId,
    /// The mission.
    pub mission_id: MissionId,
    /// The task, in the words of the person.
    pub task: String,
    /// The agent's command line, for `sh -c`.
    pub agent: String,
    /// The check's command line, for `sh -c`.
    pub check: String,
    /// The user's repository: its canonical top directory.
    pub repository: String,
    /// The commit that work starts from, in full hex.
    pub base_commit: String,
    /// Names of environment variables that agent and check may see, sorted.
    pub environment: Vec<String>,
    /// Names of those among them whose values are masked in transcripts, sorted; others may look secret by their name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The run that this one begins again, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<From>,
    /// How many corrections may follow the implementation.
    pub max_corrections: U64,
    /// What the whole run may cost, in units.
    pub budget: Dec,
    /// Wall-clock bound of one agent run or check, in seconds.
    pub timeout_seconds: U64,
    /// Who typed the command.
    pub started_by: ActorId,
    /// When, UTC milliseconds.
    pub started_at_ms: U64,
}

impl Job {
    /// The job that follows from the choices.
    ///
    /// # Errors
    ///
    /// `USAGE` where a choice is empty, too long or out of its bound.
    pub fn new(
        choices: Choices,
        repository: &str,
        base_commit: &str,
        origin: Origin,
    ) -> Result<Self, Error> {
        let mut environment = choices.environment;
        environment.sort_unstable();
        environment.dedup();
        check_text("--task", &choices.task, limits::TASK_BYTES)?;
        check_text("--agent", &choices.agent, limits::COMMAND_BYTES)?;
        check_text("--check", &choices.check, limits::COMMAND_BYTES)?;
        check_names(&environment)?;
        let mut secrets = choices.secrets;
        secrets.sort_unstable();
        secrets.dedup();
        if let Some(name) = secrets.iter().find(|name| !environment.contains(name)) {
            let name = crate::render::escape::line(name);
            let message = format!(
                "--secret {name}: expected a variable that --env lets through; give --env {name}, too"
            );
            return Err(Error::new(Code::Usage, message));
        }
        let runs_of_the_agent = 2 + u64::from(choices.max_corrections);
        Ok(Self {
            format: FORMAT.to_owned(),
            version: U64(0),
            run_id: RunId::new(format!("r-{}", origin.name))?,
            mission_id: MissionId::new(format!("m-{}", origin.name))?,
            task: choices.task,
            agent: choices.agent,
            check: choices.check,
            repository: repository.to_owned(),
            base_commit: base_commit.to_owned(),
            environment,
            secrets,
            from: choices.from,
            max_corrections: U64(u64::from(choices.max_corrections)),
            budget: choices
                .budget
                .unwrap_or_else(|| Dec::from_u64(runs_of_the_agent)),
            timeout_seconds: U64(choices.timeout_seconds),
            started_by: origin.started_by,
            started_at_ms: U64(origin.started_at_ms),
        })
    }

    /// The canonical bytes under which the job is stored.
    ///
    /// # Errors
    ///
    /// None in practice; the codec's own where a member cannot be written.
    pub fn bytes(&self) -> Result<Vec<u8>, Error> {
        canonical::bytes_of(self)
    }

    /// The id of the contract: kind, digest and size of the job.
    fn name(&self) -> Result<String, Error> {
        let bytes = self.bytes()?;
        Ok(format!(
            "{CONTRACT_PREFIX}{}:{}",
            sha256(&bytes),
            bytes.len()
        ))
    }

    /// The job in stored bytes.
    ///
    /// # Errors
    ///
    /// `STORE_CORRUPT` when the bytes are no job of this version, or name a run that is no plain file name.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let corrupt = |why: &str| {
            Error::new(
                Code::StoreCorrupt,
                format!("the stored job of the run {why}"),
            )
        };
        let value = aiws::strict::parse(bytes).map_err(|error| corrupt(&error.message))?;
        let job: Self = canonical::from_value(&value).map_err(|error| corrupt(&error.message))?;
        let plain = |char: char| char.is_ascii_alphanumeric() || char == '-';
        if job.format != FORMAT || job.version != U64(0) || !job.run_id.as_str().chars().all(plain)
        {
            return Err(corrupt("is of another format"));
        }
        Ok(job)
    }

    /// Digest and size of the job that a contract's id names; none for a mission that is no coding run.
    #[must_use]
    pub fn named_in(contract: &Contract) -> Option<(Digest, u64)> {
        let (digest, size_bytes) = contract
            .contract_id
            .as_str()
            .strip_prefix(CONTRACT_PREFIX)?
            .split_once(':')?;
        Some((digest.parse().ok()?, size_bytes.parse().ok()?))
    }

    /// The job that a contract names, read from the artifacts and checked against digest and size.
    ///
    /// # Errors
    ///
    /// `ARTIFACT_UNAVAILABLE`, `ARTIFACT_MISMATCH` or `STORE_CORRUPT`; `NOT_FOUND` for a mission of another kind.
    pub fn load(contract: &Contract, artifacts: &dyn ArtifactProvider) -> Result<Self, Error> {
        let Some((digest, size_bytes)) = Self::named_in(contract) else {
            let message = format!("the mission {} is no coding run", contract.mission_id);
            return Err(Error::new(Code::NotFound, message));
        };
        let artifact = Artifact {
            locator: Locator {
                store: Id::new("directory")?,
                key: Id::new("job")?,
                version: Id::new("1")?,
            },
            digest,
            size_bytes: Dec::from_u64(size_bytes),
            media_type: JOB_MEDIA_TYPE.to_owned(),
            schema_digest: None,
            retention_owner: ActorId::new(EXECUTOR)?,
            retain_until_ms: Ms::from_u64(u64::MAX),
        };
        let bytes = read_verified(artifacts, &artifact, 0)
            .map_err(|error| Error::new(error.code(), error.to_string()))?;
        Self::from_bytes(&bytes)
    }

    /// Stores the job, so that a contract may name it.
    ///
    /// # Errors
    ///
    /// The artifact store's.
    pub fn store(&self, artifacts: &dyn ArtifactProvider) -> Result<(), Error> {
        artifacts
            .put(
                &self.bytes()?,
                "job",
                JOB_MEDIA_TYPE,
                &ActorId::new(EXECUTOR)?,
                self.retain_until_ms(),
            )
            .map(drop)
            .map_err(|error| Error::new(error.code(), error.to_string()))
    }

    /// Until when artifacts of the run are kept at least, UTC milliseconds.
    #[must_use]
    pub fn retain_until_ms(&self) -> u64 {
        self.started_at_ms.0.saturating_add(limits::RETENTION_MS)
    }

    /// The correction bound as a count of nodes.
    #[must_use]
    pub fn corrections(&self) -> u32 {
        u32::try_from(self.max_corrections.0)
            .unwrap_or(limits::MAX_CORRECTIONS)
            .min(limits::MAX_CORRECTIONS)
    }

    /// Whether the budget is what follows from the correction bound, so that nobody may have typed it.
    #[must_use]
    pub fn has_default_budget(&self) -> bool {
        self.budget == Dec::from_u64(2 + self.max_corrections.0)
    }

    /// The user's repository.
    #[must_use]
    pub fn repository(&self) -> PathBuf {
        PathBuf::from(&self.repository)
    }

    /// The scope of every action of the run.
    #[must_use]
    pub fn scope(&self) -> String {
        format!("run:{}", self.run_id)
    }

    /// The contract of the run's mission.
    ///
    /// # Errors
    ///
    /// None in practice; an id that is refused.
    pub fn contract(&self) -> Result<Contract, Error> {
        let deadline_ms = self.started_at_ms.0.saturating_add(limits::DEADLINE_MS);
        let grant = |id: &str, action: &str, most: Dec| -> Result<Grant, Error> {
            Ok(Grant {
                grant_id: GrantId::new(id)?,
                parent_grant_id: None,
                subject: ActorId::new(EXECUTOR)?,
                actions: vec![action.to_owned()],
                scopes: vec![self.scope()],
                max_amount: most,
                not_after_ms: Ms::from_u64(deadline_ms),
            })
        };
        let unit = Dec::from_u64(1);
        let root_grants = vec![
            grant(Grants::PLAN, Actions::PLAN, unit)?,
            grant(Grants::IMPLEMENT, Actions::IMPLEMENT, unit)?,
            grant(Grants::CORRECT, Actions::CORRECT, unit)?,
            grant(Grants::CHECK, Actions::CHECK, Dec::ZERO)?,
        ];
        Ok(Contract {
            edition: Edition::V0_4,
            features: vec!["finite-v1".to_owned()],
            mission_id: self.mission_id.clone(),
            contract_id: ContractId::new(self.name()?)?,
            revision: Dec::from_u64(1),
            budget: self.budget,
            deadline_ms: Ms::from_u64(deadline_ms),
            max_attempts: DecPlus::new(Dec::from_u64(limits::MAX_ATTEMPTS))?,
            authority: Authority { root_grants },
            lost_reads: Some(LostReads {
                rule: Ref {
                    id: Id::new("a-lost-check-runs-again")?,
                    revision: Dec::from_u64(1),
                },
                approved_by: self.started_by.clone(),
                decision_ref: Id::new(format!("typed:{}", self.run_id))?,
            }),
            extensions: Some(vec!["aiws-handoff/1".to_owned()]),
        })
    }

    /// The hand-off configuration of the run.
    ///
    /// # Errors
    ///
    /// None in practice; an id that is refused.
    pub fn config(&self) -> Result<HandoffConfig, Error> {
        let mut optional_inputs = Vec::new();
        for producer in graph::optional_results(self.corrections()) {
            optional_inputs.push(OptionalInput {
                node_id: graph::node_id(graph::RESULT)?,
                input_port: Id::new(producer)?,
            });
        }
        Ok(HandoffConfig {
            optional_inputs,
            mappings: Vec::new(),
            join_policy: Vec::new(),
            required_skip: Vec::new(),
            restart_policy: RestartPolicy::Auto,
            rule: None,
            lease_ms: DecPlus::new(Dec::from_u64(limits::LEASE_MS))?,
            default_stop: StopAction::Drain,
            recovery_window_ms: None,
            max_recipients: DecPlus::new(Dec::from_u64(64))?,
            scope_bindings: vec![ScopeBinding {
                scope_ref: Ref {
                    id: self.run_id.as_id(),
                    revision: Dec::from_u64(1),
                },
                kind: HoldScopeKind::Run,
                resolver_revision: Dec::from_u64(1),
            }],
        })
    }

    /// The grant that corrections of an approved plan run under: it narrows the root grant and names the plan.
    ///
    /// # Errors
    ///
    /// None in practice; an id that is refused.
    pub fn correction_grant(&self, plan: &Digest) -> Result<Grant, Error> {
        let contract = self.contract()?;
        Ok(Grant {
            grant_id: Grants::correction(plan)?,
            parent_grant_id: Some(GrantId::new(Grants::CORRECT)?),
            subject: ActorId::new(EXECUTOR)?,
            actions: vec![Actions::CORRECT.to_owned()],
            scopes: vec![self.scope()],
            max_amount: Dec::from_u64(1),
            not_after_ms: contract.deadline_ms,
        })
    }
}

fn check_text(option: &str, text: &str, most: usize) -> Result<(), Error> {
    let found = match text {
        _ if text.trim().is_empty() => "an empty text".to_owned(),
        _ if text.contains('\0') => "a NUL character".to_owned(),
        _ if text.len() > most => format!("{} bytes", text.len()),
        _ => return Ok(()),
    };
    Err(Error::new(
        Code::Usage,
        format!("{option}: expected a text of 1 to {most} bytes, found {found}"),
    ))
}

fn check_names(names: &[String]) -> Result<(), Error> {
    if names.len() > limits::ENV_NAMES {
        let message = format!(
            "--env: expected at most {} names, found {}",
            limits::ENV_NAMES,
            names.len()
        );
        return Err(Error::new(Code::Usage, message));
    }
    let valid = |name: &String| {
        let mut chars = name.chars();
        let first = chars
            .next()
            .is_some_and(|char| char.is_ascii_alphabetic() || char == '_');
        first && name.len() <= 256 && chars.all(|char| char.is_ascii_alphanumeric() || char == '_')
    };
    match names
        .iter()
        .find(|name| !valid(name) || name.starts_with("PRAXIS_"))
    {
        None => Ok(()),
        Some(name) => {
            // What follows a sign of equality may be the secret itself.
            let (name, value) = name
                .split_once('=')
                .map_or((name.as_str(), false), |(name, _)| (name, true));
            let name = crate::render::escape::line(name);
            let message = match value {
                true => format!(
                    "--env {name}=...: expected the name alone; the value is what it is set to: --env {name}"
                ),
                false => format!(
                    "--env: expected the name of a variable, not one of Praxis's own, found {name}"
                ),
            };
            Err(Error::new(Code::Usage, message))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use aiws::record::{Checked, Record};

    pub fn job(corrections: u32) -> Job {
        job_of(corrections, 1)
    }

    pub fn job_of(corrections: u32, started_at_ms: u64) -> Job {
        let choices = Choices {
            task: "t".into(),
            agent: "a".into(),
            check: "c".into(),
            environment: vec!["B".into(), "A".into(), "B".into()],
            secrets: Vec::new(),
            from: None,
            max_corrections: corrections,
            budget: None,
            timeout_seconds: 5,
        };
        let origin = Origin {
            started_by: ActorId::new("p").unwrap(),
            started_at_ms,
            name: "abc".into(),
        };
        Job::new(choices, "/repo", "0123", origin).unwrap()
    }

    #[test]
    fn a_job_comes_back_from_its_bytes_and_its_contract_names_it() {
        let job = job(2);
        assert_eq!(Job::from_bytes(&job.bytes().unwrap()).unwrap(), job);
        assert_eq!(job.environment, ["A", "B"]);
        assert_eq!(job.budget, Dec::from_u64(4));
        let bytes = job.bytes().unwrap();
        assert_eq!(
            Job::named_in(&job.contract().unwrap()),
            Some((sha256(&bytes), bytes.len() as u64))
        );
    }

    #[test]
    fn contract_and_configuration_are_records_of_the_protocol() {
        for corrections in [0, 1, 20] {
            let job = job(corrections);
            checked(&job.contract().unwrap());
            checked(&job.config().unwrap());
            checked(&job.correction_grant(&sha256(b"plan")).unwrap());
        }
    }

    fn checked<T: Record>(record: &T) {
        Checked::new(record).unwrap();
    }

    #[test]
    fn a_job_that_names_a_path_as_its_run_is_refused() {
        let mut job = job(0);
        job.run_id = RunId::new("../../etc").unwrap();
        assert_eq!(
            Job::from_bytes(&job.bytes().unwrap()).unwrap_err().code(),
            Code::StoreCorrupt
        );
    }

    #[test]
    fn bad_choices_are_refused() {
        for name in ["", "1A", "A=B", "PRAXIS_STAGE", "A B"] {
            assert!(check_names(&[name.to_owned()]).is_err(), "{name}");
        }
        for text in ["", " \n", "a\0b"] {
            assert!(check_text("--task", text, 10).is_err());
        }
        assert!(check_text("--task", "12345678901", 10).is_err());
    }
}
