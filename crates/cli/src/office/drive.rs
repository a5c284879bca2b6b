//! Starting runs and letting them go on in this engine.
//! Invariant: nothing is started twice: what a kill left between mission and graph is done under the same requests.
//! Part of the office.

use std::collections::BTreeMap;

use aiws::error::{Code, Error};
use aiws::id::MissionId;
use aiws::json::Value;
use aiws::object;
use praxis_engine::Capability;
use praxis_model::stream::Subject;

use super::person::Said;
use super::{Office, Peer, blocking};
use crate::answer::{Answer, View};
use crate::coding::adapter::ALWAYS;
use crate::coding::contract::Job;
use crate::exit::Exit;
use crate::render::{json, program};
use crate::request::Given;
use crate::store::{self, is_live};

/// The variables that a job's agents and checks see, with their values in this process.
#[must_use]
pub fn environment_of(names: &[String]) -> BTreeMap<String, String> {
    let always = ALWAYS.iter().map(|name| (*name).to_owned());
    always
        .chain(names.iter().cloned())
        .filter_map(|name| {
            let value = std::env::var(&name).ok()?;
            Some((name, value))
        })
        .collect()
}

impl Office {
    /// Opens the mission of a job, admits its run and drives it.
    pub(super) async fn start(
        &self,
        job: Job,
        environment: BTreeMap<String, String>,
        view: View,
        peer: &Peer,
    ) -> Result<Answer, Error> {
        job.check()?;
        require_set(&job, &environment)?;
        let person = self.starter(&job, "code", peer).await?;
        let workspace = self.session.coding.workspace(&job);
        let repository = job.repository();
        blocking(move || workspace.prepare(&repository)).await?;
        self.session.start(&job, &person).await?;
        self.session.coding.drive(&job.run_id, environment);
        let subject = Subject::run(job.mission_id.clone(), job.run_id.clone());
        self.keeper.keep(&subject).await?;
        let value = json::object("started", object! { "run": job.run_id.as_str() });
        Ok(Answer::done(value, view, |_| {
            format!("run {} is under way\n", job.run_id)
        }))
    }

    /// Drives live runs again: one, or all.
    pub(super) async fn resume(
        &self,
        named: Option<&str>,
        environment: BTreeMap<String, String>,
        view: View,
        peer: &Peer,
    ) -> Result<Answer, Error> {
        // What goes on does so with the variables of whoever asks, and an agent's are no person's.
        self.require_person(peer).await?;
        let mut resumed = Resumed::default();
        self.finish_starts(named, &environment, peer, &mut resumed)
            .await?;
        for subject in self.live_runs(named).await? {
            match self.drive_again(&subject, &environment).await {
                Ok(Some(run)) => resumed.runs.push(run),
                Ok(None) => {}
                Err(error) if named.is_some() => return Err(error),
                Err(error) => resumed.skipped.push(error),
            }
        }
        for (_, result) in self.keeper.publish_left().await? {
            match result {
                Ok(branch) => resumed.published.extend(branch),
                Err(error) => resumed.failures.push(error),
            }
        }
        let errors = |errors: &[Error]| errors.iter().map(Error::to_value).collect::<Vec<Value>>();
        let value = json::object(
            "resumed",
            object! {
                "runs": resumed.runs.clone(),
                "published": resumed.published.clone(),
                "skipped": errors(&resumed.skipped),
                "failures": errors(&resumed.failures),
            },
        );
        let exits = resumed
            .failures
            .iter()
            .map(|error| Exit::after_start(error.code()));
        let mut exit = exits.fold(Exit::Done, Exit::worse);
        if !resumed.skipped.is_empty() {
            exit = exit.worse(Exit::Waits);
        }
        let answer = Answer::done(value, view, |_| {
            let published = resumed.published.iter();
            let lines = published.map(|branch| format!("published {branch}\n"));
            lines.collect()
        });
        Ok(answer.with_exit(exit))
    }

    /// The live runs that are meant; a run that has ended is none of them.
    async fn live_runs(&self, named: Option<&str>) -> Result<Vec<Subject>, Error> {
        let (reader, named) = (self.reader(), named.map(str::to_owned));
        blocking(move || {
            let mut runs = match &named {
                Some(named) => vec![reader.find(Some(named))?],
                None => reader.runs()?,
            };
            runs.retain(|run| is_live(&reader.journal, run));
            Ok(runs)
        })
        .await
    }

    /// Drives a run that was stopped; none where it is no coding run.
    async fn drive_again(
        &self,
        subject: &Subject,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<String>, Error> {
        let state = self.session.state(subject).await?;
        if Job::named_in(&state.contract).is_none() {
            return Ok(None);
        }
        let job = self.session.coding.job(&state)?;
        if self.keeper.find(&job.run_id).is_none() {
            require_set(&job, environment)?;
            let lent = only(&job, environment);
            self.session.coding.drive(&job.run_id, lent);
        }
        self.keeper.keep(subject).await?;
        Ok(Some(job.run_id.to_string()))
    }

    /// Admits runs and pins graphs where a kill came before that.
    async fn finish_starts(
        &self,
        named: Option<&str>,
        environment: &BTreeMap<String, String>,
        peer: &Peer,
        resumed: &mut Resumed,
    ) -> Result<(), Error> {
        for mission in self.unfinished().await? {
            let state = self.session.engine.mission_state(&mission).await?;
            if Job::named_in(&state.contract).is_none() {
                continue;
            }
            let job = match Job::load(&state.contract, self.session.artifacts.as_ref()) {
                Ok(job) => job,
                // Only the job says which run it is; one that is named was found by its name.
                Err(error) => {
                    if named.is_none() {
                        resumed.failures.push(error);
                    }
                    continue;
                }
            };
            if named.is_some_and(|named| !job.run_id.as_str().starts_with(named)) {
                continue;
            }
            if let Err(error) = require_set(&job, environment) {
                match named {
                    Some(_) => return Err(error),
                    None => resumed.skipped.push(error),
                }
                continue;
            }
            let person = self.starter(&job, "resume", peer).await?;
            self.session.start(&job, &person).await?;
        }
        Ok(())
    }

    /// Missions whose run was not admitted, or has no graph yet.
    async fn unfinished(&self) -> Result<Vec<MissionId>, Error> {
        let mut missions = store::unstarted_missions(self.session.host.journal());
        for run in self.session.engine.runs() {
            if run.live {
                let subject = Subject::run(run.mission_id.clone(), run.run_id.clone());
                if self.session.state(&subject).await?.graph.is_none() {
                    missions.push(run.mission_id);
                }
            }
        }
        Ok(missions)
    }

    /// Who starts a run: the one that the job names, as it was begun in that name.
    async fn starter(&self, job: &Job, verb: &str, peer: &Peer) -> Result<Capability, Error> {
        let said = Said {
            verb,
            about: object! { "run": job.run_id.as_str() },
            reason: None,
            grants: false,
        };
        self.person_called(peer, Given::ByVerb, job.started_by.clone(), said)
            .await
    }
}

/// What came of resuming.
#[derive(Default)]
struct Resumed {
    runs: Vec<String>,
    published: Vec<String>,
    /// Runs that do not go on, as a variable that they let through is not set.
    skipped: Vec<Error>,
    /// What kept single runs from going on or from their branch; it keeps no other run.
    failures: Vec<Error>,
}

/// The variables of an environment that a job's agents and checks see.
fn only(job: &Job, environment: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let wanted = |name: &str| {
        ALWAYS.contains(&name) || job.environment.iter().any(|known| known.as_str() == name)
    };
    let lent = environment.iter().filter(|(name, _)| wanted(name));
    lent.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The same work in another environment is other work.
fn require_set(job: &Job, environment: &BTreeMap<String, String>) -> Result<(), Error> {
    let mut names = job.environment.iter();
    let Some(name) = names.find(|name| !environment.contains_key(name.as_str())) else {
        return Ok(());
    };
    Err(not_set(job.run_id.as_str(), name))
}

/// That a run lets a variable through which is not set.
#[must_use]
pub fn not_set(run: &str, name: &str) -> Error {
    let praxis = program();
    let message = format!(
        "run {run} lets the variable {name} through, and it is not set here, so it does not go on: {name}=... {praxis} resume {run}"
    );
    Error::new(Code::Usage, message)
}
