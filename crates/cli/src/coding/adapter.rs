//! The two effects of a coding run: an agent's command line and a check's, each in a tree of its own, under a shim.
//! Invariant: a tree is built from verified inputs alone, the environment is the approved one, and what is reported was stored before.
//! Called by the engine's effect workers after DISPATCHED is durable.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiws::error::{Code, Error};
use aiws::json::Value;
use aiws::record::{EffectClass, Manifest};
use praxis_engine::process::Process;
use praxis_engine::shim::{self, ExitRecord, Probe, Ran, Shim, looks_secret};
use praxis_engine::{Adapter, BoxFuture, EffectCall, EffectOutcome, EffectReport, Input, Lookup};

use super::attempt::AttemptFiles;
use super::contract::Job;
use super::graph::Stage;
use super::outcome::{CHECK_FILE, PATCH_FILE, PLAN_FILE, counts};
use super::program::Coding;
use super::report::{Recorded, not_started};
use super::shimmed::{BEFORE_FILE, Part};
use super::workspace::{Workspace, private_dir, remove};
use crate::limits;
use crate::store::write_private;

/// The name of the adapter that runs agents.
pub const AGENT: &str = "agent";
/// The name of the adapter that runs checks.
pub const CHECK: &str = "check";

/// The variable that names the attempt, for agents and checks.
const ATTEMPT: &str = "PRAXIS_ATTEMPT_ID";

/// Variables that agents and checks always see.
pub const ALWAYS: &[&str] = &["PATH", "HOME", "LANG"];

/// Runs agents: what one did without a shim that saw its end, nobody can tell from outside.
pub struct AgentAdapter(pub Arc<Coding>);

/// Runs checks, which only read: one whose end no shim saw may run again.
pub struct CheckAdapter(pub Arc<Coding>);

impl Adapter for AgentAdapter {
    fn class(&self) -> EffectClass {
        EffectClass::External
    }

    fn call(&self, call: EffectCall) -> BoxFuture<'_, EffectReport> {
        Box::pin(run(Arc::clone(&self.0), call))
    }

    fn lookup<'a>(&'a self, call: &'a EffectCall) -> BoxFuture<'a, Lookup> {
        Box::pin(attach(Arc::clone(&self.0), call.clone()))
    }
}

impl Adapter for CheckAdapter {
    fn class(&self) -> EffectClass {
        EffectClass::Read
    }

    fn call(&self, call: EffectCall) -> BoxFuture<'_, EffectReport> {
        Box::pin(run(Arc::clone(&self.0), call))
    }

    fn lookup<'a>(&'a self, call: &'a EffectCall) -> BoxFuture<'a, Lookup> {
        Box::pin(attach(Arc::clone(&self.0), call.clone()))
    }
}

/// One call, prepared.
struct Prepared {
    shim: Shim,
    files: AttemptFiles,
}

/// One call in hand.
struct Hand {
    job: Arc<Job>,
    stage: Stage,
    workspace: Workspace,
    lent: BTreeMap<String, String>,
    call: EffectCall,
}

fn hand(coding: &Coding, call: EffectCall) -> Option<Arc<Hand>> {
    let (job, stage) = coding
        .known(&call.mission_id)
        .zip(Stage::of(&call.node_id))?;
    let workspace = coding.workspace(&job);
    let lent = coding.environment(&job.run_id);
    Some(Arc::new(Hand {
        job,
        stage,
        workspace,
        lent,
        call,
    }))
}

const NO_JOB: &str = "the run's job is not known to this engine";

async fn run(coding: Arc<Coding>, call: EffectCall) -> EffectReport {
    let Some(hand) = hand(&coding, call) else {
        return not_started(NO_JOB);
    };
    let Prepared { shim, files } = match blocking(&hand, |hand| hand.prepare()).await {
        Ok(prepared) => prepared,
        Err(error) => return troubled(&coding, error).await,
    };
    let started = |why: &dyn std::fmt::Display| {
        Error::new(
            Code::StoreIo,
            format!("the command could not be started: {why}"),
        )
    };
    let record = match shim.run().await {
        Ok(Ran::Ended(record)) => record,
        Ok(Ran::NotStarted(why)) => return troubled(&coding, started(&why)).await,
        Ok(Ran::Lost(why)) => return uncertain(&why),
        Err(error) => return troubled(&coding, started(&error)).await,
    };
    match blocking(&hand, move |hand| hand.report(&files, &record)).await {
        Ok(report) => report,
        // It ran; what it did could not be stored, so nobody can say from here.
        Err(error) => uncertain(&error.message),
    }
}

/// Waits for the shim of an attempt that another engine started, and reports what it recorded. Nothing is started.
async fn attach(coding: Arc<Coding>, call: EffectCall) -> Lookup {
    let inconclusive = |why: String| Lookup::Inconclusive { why };
    let Some(hand) = hand(&coding, call) else {
        return inconclusive(NO_JOB.to_owned());
    };
    let files = hand.files();
    let lived = matches!(files.probe(), Probe::Running(_));
    match shim::wait(files.folder()).await {
        Ok(Probe::Ended(record)) => {
            match blocking(&hand, move |hand| hand.report(&files, &record)).await {
                Ok(report) => Lookup::Conclusive(report),
                Err(error) => inconclusive(error.message),
            }
        }
        Ok(Probe::Lost(_)) => {
            // Seen while it lived, it is as if this engine had started it; and a check runs again by itself.
            if lived || matches!(hand.stage, Stage::Check(_)) {
                let ended = blocking(&hand, move |hand| {
                    shim::end_left(files.folder(), &hand.marker(), lived);
                    Ok(())
                });
                drop(ended.await);
            }
            inconclusive("its shim is gone, and left no record of how it ended".to_owned())
        }
        Ok(Probe::Running(_)) => inconclusive("another shim runs in its folder".to_owned()),
        Ok(Probe::NotStarted) => inconclusive("no shim was started for it".to_owned()),
        Err(why) => inconclusive(why),
    }
}

fn uncertain(why: &str) -> EffectReport {
    EffectReport {
        outcome: EffectOutcome::Uncertain {
            why: why.to_owned(),
        },
        evidence: Value::Null,
    }
}

async fn blocking<T: Send + 'static>(
    hand: &Arc<Hand>,
    work: impl FnOnce(&Hand) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let hand = Arc::clone(hand);
    let done = tokio::task::spawn_blocking(move || work(&hand)).await;
    done.unwrap_or_else(|_| {
        Err(Error::new(
            Code::ActorLost,
            "the preparation of a tree stopped before it was done",
        ))
    })
}

/// Nothing was started, and another try would meet the same: the program stops before it is made.
async fn troubled(coding: &Coding, error: Error) -> EffectReport {
    let report = not_started(&error.to_string());
    coding.wait_out(error).await;
    report
}

impl Hand {
    fn files(&self) -> AttemptFiles {
        AttemptFiles::of(
            &self.workspace,
            &self.call.node_id,
            self.call.attempt_number,
        )
    }

    /// The entry of the environment that this attempt alone has.
    fn marker(&self) -> String {
        format!("{ATTEMPT}={}", self.call.attempt_id)
    }

    /// Builds the tree and the files, and the shim whose command will run in it.
    fn prepare(&self) -> Result<Prepared, Error> {
        let tree = match self.stage {
            Stage::Check(number) => format!("check-{number}"),
            _ => "clone".to_owned(),
        };
        self.workspace.prepare(&self.job.repository())?;
        let directory = self
            .workspace
            .materialize(&tree, &self.input_bytes(PATCH_FILE))?;
        let files = self.files();
        remove(&files.folder)?;
        private_dir(&files.output())?;
        let mut process = Process::new(self.payload_text("/command")?, directory);
        let seen = ALWAYS.iter().map(|name| (*name).to_owned());
        process.pass = seen.chain(self.names("/payload/environment")).collect();
        if !self.lent.is_empty() {
            // The environment of whoever handed the run in, not that of the process that has the store.
            process.set.clone_from(&self.lent);
            let names = std::mem::take(&mut process.pass);
            process.set.retain(|name, _| names.contains(name));
        }
        process.wall_ms = self
            .payload_text("/bounds/timeoutSeconds")?
            .parse::<u64>()
            .unwrap_or(0)
            .saturating_mul(1_000);
        process.transcript_bytes = limits::TRANSCRIPT_BYTES;
        let attempt = self.call.attempt_id.to_string();
        process.set.insert(ATTEMPT.to_owned(), attempt);
        if let Some(stage) = self.stage.agent() {
            process.set.extend(self.agent_environment(stage, &files)?);
            let before = self.input_bytes(PATCH_FILE);
            write_private(&files.folder.join(BEFORE_FILE), &before, true)?;
        }
        process.mask_names = self.secrets();
        let shim = Shim {
            // Also after an upgrade it is this very program, not the one that has its name by now.
            program: PathBuf::from("/proc/self/exe"),
            folder: files.folder.clone(),
            operation_id: self.call.operation_id.clone(),
            attempt_id: self.call.attempt_id.clone(),
            process,
            host: aiws::canonical::to_value(&self.part()?)?,
        };
        Ok(Prepared { shim, files })
    }

    /// What the shim has to know beside the command.
    fn part(&self) -> Result<Part, Error> {
        let mut manifests = self.call.inputs.iter().map(|input| &input.manifest);
        let is_check = matches!(self.stage, Stage::Check(_));
        // A run's files stand two levels below the store.
        let root = self.workspace.root();
        let store = root.ancestors().nth(2).unwrap_or(root);
        Ok(Part {
            node: self.call.node_id.clone(),
            store: text(store)?.to_owned(),
            run: self.job.run_id.to_string(),
            base: self.job.base_commit.clone(),
            repository: self.job.repository.clone(),
            failure: manifests
                .find_map(|manifest| failure_of(manifest))
                .filter(|_| is_check),
        })
    }

    /// The variables whose values are kept nowhere: those that were declared so, and those that look so.
    fn secrets(&self) -> Vec<String> {
        let mut names = self.names("/payload/secrets");
        let let_through = self.names("/payload/environment").into_iter();
        names.extend(let_through.filter(|name| looks_secret(name)));
        names
    }

    /// What is reported of the attempt, from its shim's record alone.
    fn report(&self, files: &AttemptFiles, record: &ExitRecord) -> Result<EffectReport, Error> {
        let recorded = Recorded {
            job: &self.job,
            stage: self.stage,
            call: &self.call,
            files,
            record,
        };
        let report = recorded.report()?;
        if let Stage::Check(number) = self.stage {
            // The check is over and its word is kept. A tree that stays is removed before the next one is built.
            drop(self.workspace.discard(&format!("check-{number}")));
        }
        Ok(report)
    }

    /// What an agent finds in its environment beside the names that were let through.
    fn agent_environment(
        &self,
        stage: &str,
        files: &AttemptFiles,
    ) -> Result<BTreeMap<String, String>, Error> {
        let (mut set, folder) = (BTreeMap::new(), &files.folder);
        let mut say =
            |name: &str, value: &str| drop(set.insert(format!("PRAXIS_{name}"), value.to_owned()));
        say("STAGE", stage);
        say("OPERATION_ID", self.call.operation_id.as_str());
        say("OUTPUT_DIR", text(&files.output())?);
        say("USAGE_FILE", text(&files.usage())?);
        let task = files.folder.join("task.md");
        write_private(
            &task,
            format!("{}\n", self.job.task.trim_end()).as_bytes(),
            true,
        )?;
        say("TASK_FILE", text(&task)?);
        let inputs = files.folder.join("inputs");
        private_dir(&inputs)?;
        say("INPUTS_DIR", text(&inputs)?);
        for input in &self.call.inputs {
            write_input(&inputs, input)?;
        }
        let told = match (self.stage, &self.job.from) {
            // A plan has no check to be told of, but an earlier run's end.
            (Stage::Plan, Some(from)) => Some(from.feedback.as_bytes()),
            _ => self.input(CHECK_FILE),
        };
        let files = [
            ("PLAN_FILE", self.input(PLAN_FILE)),
            ("FEEDBACK_FILE", told),
        ];
        for (variable, bytes) in files {
            if let Some(bytes) = bytes {
                let path = folder.join(if variable == "PLAN_FILE" {
                    "plan.md"
                } else {
                    "feedback.txt"
                });
                write_private(&path, bytes, true)?;
                say(variable, text(&path)?);
            }
        }
        Ok(set)
    }

    fn input(&self, name: &str) -> Option<&[u8]> {
        let mut all = self.call.inputs.iter().flat_map(|input| &input.artifacts);
        all.find(|(artifact, _)| artifact.locator.key.as_str() == name)
            .map(|(_, bytes)| bytes.as_ref())
    }

    fn input_bytes(&self, name: &str) -> Vec<u8> {
        self.input(name).map(<[u8]>::to_vec).unwrap_or_default()
    }

    /// A text of the approved action's payload.
    fn payload_text(&self, pointer: &str) -> Result<String, Error> {
        let found = self
            .call
            .action
            .pointer(&format!("/payload{pointer}"))
            .and_then(Value::as_str);
        found.map(str::to_owned).ok_or_else(|| {
            Error::new(
                Code::InputIncompatible,
                format!("expected a text at {pointer} of the action's payload, found none"),
            )
        })
    }

    /// A list of names of the approved action's payload.
    fn names(&self, pointer: &str) -> Vec<String> {
        let names = self
            .call
            .action
            .pointer(pointer)
            .and_then(Value::as_array)
            .unwrap_or_default();
        names
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    }
}

/// One folder per input port, with a copy of each artifact.
fn write_input(inputs: &Path, input: &Input) -> Result<(), Error> {
    // Ports and names of this workflow are plain; anything else is data and never becomes a path.
    let plain = |name: &str| {
        name.chars()
            .all(|char| char.is_ascii_alphanumeric() || "-.".contains(char))
            && !name.starts_with('.')
    };
    if !plain(input.port.as_str()) {
        return Ok(());
    }
    let folder = inputs.join(input.port.as_str());
    private_dir(&folder)?;
    for (artifact, bytes) in &input.artifacts {
        if plain(artifact.locator.key.as_str()) {
            write_private(&folder.join(artifact.locator.key.as_str()), bytes, true)?;
        }
    }
    Ok(())
}

/// Why the producer's own work does not count, if it does not.
fn failure_of(manifest: &Manifest) -> Option<String> {
    if counts(manifest) {
        return None;
    }
    let said = manifest.result.get("failure").and_then(Value::as_str);
    Some(said.unwrap_or("the agent's work does not count").to_owned())
}

fn text(path: &Path) -> Result<&str, Error> {
    path.to_str().ok_or_else(|| {
        Error::new(
            Code::Usage,
            format!("the store's path {} is not UTF-8", path.display()),
        )
    })
}
