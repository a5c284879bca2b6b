//! The two effects of a coding run: an agent's command line and a check's, each in a tree of its own.
//! Invariant: a tree is built from verified inputs alone, the environment is the approved one, and what is reported was stored before.
//! Called by the engine's effect workers after DISPATCHED is durable.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use aiws::decimal::Dec;
use aiws::error::{Code, Error};
use aiws::json::Value;
use aiws::record::{Artifact, EffectClass, Manifest};
use praxis_engine::process::{Exit, Finished, Process};
use praxis_engine::{Adapter, BoxFuture, EffectCall, EffectOutcome, EffectReport, Input};

use super::attempt::{AttemptFiles, plan, put, transcript, usage};
use super::contract::Job;
use super::graph::Stage;
use super::outcome::{CHECK_FILE, Ended, Outcome, PATCH_FILE, PLAN_FILE, TRANSCRIPT_FILE, counts};
use super::program::Coding;
use super::workspace::{Workspace, private_dir, remove};
use crate::limits;
use crate::store::write_private;

/// The name of the adapter that runs agents.
pub const AGENT: &str = "agent";
/// The name of the adapter that runs checks.
pub const CHECK: &str = "check";

/// Variables that agents and checks always see.
const ALWAYS: &[&str] = &["PATH", "HOME", "LANG"];

/// Runs agents: nobody can tell from outside what a lost one did.
pub struct AgentAdapter(pub Arc<Coding>);

/// Runs checks, which only read: a lost one may run again.
pub struct CheckAdapter(pub Arc<Coding>);

impl Adapter for AgentAdapter {
    fn class(&self) -> EffectClass {
        EffectClass::External
    }

    fn call(&self, call: EffectCall) -> BoxFuture<'_, EffectReport> {
        let coding = Arc::clone(&self.0);
        Box::pin(async move { run(coding, call, Kind::Agent).await })
    }
}

impl Adapter for CheckAdapter {
    fn class(&self) -> EffectClass {
        EffectClass::Read
    }

    fn call(&self, call: EffectCall) -> BoxFuture<'_, EffectReport> {
        let coding = Arc::clone(&self.0);
        Box::pin(async move { run(coding, call, Kind::Check).await })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Agent,
    Check,
}

/// One call, prepared.
struct Prepared {
    process: Process,
    files: AttemptFiles,
}

/// One call in hand.
struct Hand {
    job: Arc<Job>,
    stage: Stage,
    workspace: Workspace,
    call: EffectCall,
}

async fn run(coding: Arc<Coding>, call: EffectCall, kind: Kind) -> EffectReport {
    let Some((job, stage)) = coding.known(&call.mission_id).zip(Stage::of(&call.node_id)) else {
        return not_started("the run's job is not known to this engine");
    };
    let workspace = coding.workspace(&job);
    let hand = Arc::new(Hand {
        job,
        stage,
        workspace,
        call,
    });
    let prepared = match blocking(&hand, |hand| hand.prepare()).await {
        Ok(prepared) => prepared,
        Err(error) => return troubled(&coding, error).await,
    };
    let files = prepared.files;
    let ended = match prepared.process.run().await {
        Ok(finished) => ended(&finished),
        // The one error of a process says that it was not started.
        Err(error) => {
            let message = format!("the command could not be started: {error}");
            return troubled(&coding, Error::new(Code::StoreIo, message)).await;
        }
    };
    let Some(ended) = ended else {
        return uncertain("it was started, and the system did not say how it ended");
    };
    let reported = blocking(&hand, move |hand| match kind {
        Kind::Agent => hand.agent_report(&files, ended),
        Kind::Check => hand.check_report(&files, ended),
    });
    match reported.await {
        Ok(report) => report,
        // It ran; what it did could not be stored, so nobody can say from here.
        Err(error) => uncertain(&error.to_string()),
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

fn not_started(why: &str) -> EffectReport {
    let outcome = Outcome {
        ended: Ended::NotStarted,
        failure: Some(why.to_owned()),
        artifacts: Vec::new(),
    };
    EffectReport {
        outcome: EffectOutcome::NotApplied,
        evidence: outcome.to_value().unwrap_or_default(),
    }
}

impl Hand {
    /// Builds the tree and the files, and the process that will run in it.
    fn prepare(&self) -> Result<Prepared, Error> {
        let tree = match self.stage {
            Stage::Check(number) => format!("check-{number}"),
            _ => "clone".to_owned(),
        };
        self.workspace.prepare(&self.job.repository())?;
        let directory = self
            .workspace
            .materialize(&tree, &self.input_bytes(PATCH_FILE))?;
        let files = AttemptFiles::of(
            &self.workspace,
            &self.call.node_id,
            self.call.attempt_number,
        );
        remove(&files.folder)?;
        private_dir(&files.output())?;
        let mut process = Process::new(self.payload_text("/command")?, directory);
        process.pass = ALWAYS
            .iter()
            .map(|name| (*name).to_owned())
            .chain(self.environment())
            .collect();
        process.wall_ms = self
            .payload_text("/bounds/timeoutSeconds")?
            .parse::<u64>()
            .unwrap_or(0)
            .saturating_mul(1_000);
        process.transcript = Some(files.transcript());
        process.transcript_bytes = limits::TRANSCRIPT_BYTES;
        if let Some(stage) = self.stage.agent() {
            process.set = self.agent_environment(stage, &files)?;
        }
        Ok(Prepared { process, files })
    }

    /// What an agent finds in its environment beside the names that were let through.
    fn agent_environment(
        &self,
        stage: &str,
        files: &AttemptFiles,
    ) -> Result<BTreeMap<String, String>, Error> {
        let mut set = BTreeMap::new();
        let mut say =
            |name: &str, value: &str| drop(set.insert(format!("PRAXIS_{name}"), value.to_owned()));
        say("STAGE", stage);
        say("OPERATION_ID", self.call.operation_id.as_str());
        say("ATTEMPT_ID", self.call.attempt_id.as_str());
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
        for (variable, name) in [("PLAN_FILE", PLAN_FILE), ("FEEDBACK_FILE", CHECK_FILE)] {
            if let Some(bytes) = self.input(name) {
                let path = files.folder.join(if variable == "PLAN_FILE" {
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

    fn agent_report(&self, files: &AttemptFiles, ended: Ended) -> Result<EffectReport, Error> {
        let (actual, usage_note) = usage(files);
        let mut transcript = transcript(files);
        if let Some(note) = usage_note {
            transcript.push_str(&format!("\n[praxis: {note}]\n"));
        }
        let mut artifacts = vec![self.put(TRANSCRIPT_FILE, transcript.as_bytes())?];
        if ended.is_refusal() {
            let failure = Some("the agent said that it did nothing (exit 75)".to_owned());
            let evidence = Outcome {
                ended,
                failure,
                artifacts,
            }
            .to_value()?;
            return Ok(EffectReport {
                outcome: EffectOutcome::NotApplied,
                evidence,
            });
        }
        let mut failure = (!ended.is_success()).then(|| format!("the agent {}", ended.sentence()));
        match self.stage {
            Stage::Plan => match plan(files) {
                Ok(plan) => artifacts.push(self.put(PLAN_FILE, &plan)?),
                Err(error) => failure = failure.or(Some(error.message)),
            },
            _ => {
                // An agent may have removed the engine's repository, too.
                let prepared = self.workspace.prepare(&self.job.repository());
                let patch = match prepared.and_then(|()| self.workspace.capture()) {
                    Ok(captured) => captured.patch,
                    Err(error) => {
                        failure = failure.or(Some(error.message));
                        self.input_bytes(PATCH_FILE)
                    }
                };
                artifacts.push(self.put(PATCH_FILE, &patch)?);
            }
        }
        let evidence = Outcome {
            ended,
            failure,
            artifacts,
        }
        .to_value()?;
        Ok(EffectReport {
            outcome: EffectOutcome::Applied { actual },
            evidence,
        })
    }

    fn check_report(&self, files: &AttemptFiles, ended: Ended) -> Result<EffectReport, Error> {
        let producer = self
            .call
            .inputs
            .iter()
            .map(|input| &input.manifest)
            .find_map(|manifest| failure_of(manifest));
        let said = format!(
            "The check `{}` {}.\n{}\n{}",
            crate::render::escape::line(&self.payload_text("/command")?),
            ended.sentence(),
            producer
                .as_ref()
                .map(|failure| format!("It counts as failed whatever it says: {failure}.\n"))
                .unwrap_or_default(),
            transcript(files)
        );
        let failure = producer
            .or_else(|| (!ended.is_success()).then(|| format!("the check {}", ended.sentence())));
        let artifacts = vec![self.put(CHECK_FILE, said.as_bytes())?];
        let evidence = Outcome {
            ended,
            failure,
            artifacts,
        }
        .to_value()?;
        if let Stage::Check(number) = self.stage {
            // The check is over and its word is kept. A tree that stays is removed before the next one is built.
            drop(self.workspace.discard(&format!("check-{number}")));
        }
        Ok(EffectReport {
            outcome: EffectOutcome::Applied { actual: Dec::ZERO },
            evidence,
        })
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<Artifact, Error> {
        put(self.call.artifacts.as_ref(), &self.job, name, bytes)
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

    fn environment(&self) -> Vec<String> {
        let names = self
            .call
            .action
            .pointer("/payload/environment")
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

/// How it ended; none where nobody saw that.
fn ended(finished: &Finished) -> Option<Ended> {
    match finished.exit {
        Exit::Unseen => None,
        _ if finished.timed_out => Some(Ended::TimedOut),
        Exit::Code(code) => Some(Ended::Exit { code }),
        Exit::Signal(number) => Some(Ended::Signal { number }),
    }
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
