//! The files of one attempt beside its tree, and what is read from them.
//! Invariant: whatever a process left is bounded before it is kept, and said where it is not what it should be.
//! Called by `adapter` while an attempt runs, by `program` for one that a person settled, and by the verb `unknown`.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::contract::Job;
use super::graph::Stage;
use super::outcome::{Ended, Outcome, PATCH_FILE, PLAN_FILE, TRANSCRIPT_FILE};
use super::workspace::Workspace;
use crate::files::read_left;
use crate::limits;
use aiws::decimal::Dec;
use aiws::digest::{Digest, sha256};
use aiws::error::{Code, Error};
use aiws::id::{EvidenceId, NodeId};
use aiws::json::Value;
use aiws::record::{Artifact, Attempt};
use praxis_artifacts::ArtifactProvider;
use praxis_engine::shim::{self, Probe};
use praxis_model::run::RunState;

/// The files of one attempt beside its tree: `attempts/<node>-<number>/`.
#[derive(Clone, Debug)]
pub struct AttemptFiles {
    /// Where everything of the run stands.
    root: PathBuf,
    /// The attempt's own folder below it.
    pub(super) folder: PathBuf,
}

impl AttemptFiles {
    /// The files of an attempt; nothing is touched yet.
    #[must_use]
    pub fn of(workspace: &Workspace, node: &NodeId, number: u64) -> Self {
        let folder = format!("attempts/{node}-{number}");
        Self::at(workspace, &workspace.root().join(folder))
    }

    /// The files in a folder of the run.
    #[must_use]
    pub(super) fn at(workspace: &Workspace, folder: &Path) -> Self {
        Self {
            root: workspace.root().to_owned(),
            folder: folder.to_owned(),
        }
    }

    /// The files of an attempt of the run's state; none where it is not of a node.
    #[must_use]
    pub fn of_attempt(workspace: &Workspace, state: &RunState, attempt: &Attempt) -> Option<Self> {
        let operation = state.operations.get(&attempt.operation_id)?;
        let mut tries = operation.attempts.iter();
        let number = tries.position(|id| *id == attempt.attempt_id)?;
        let node = operation.node_id.as_ref()?;
        Some(Self::of(workspace, node, number as u64 + 1))
    }

    /// The attempt's own folder: its shim's.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What its shim says now.
    #[must_use]
    pub fn probe(&self) -> Probe {
        shim::probe(&self.folder)
    }

    /// What the process wrote, as it comes.
    #[must_use]
    pub fn transcript(&self) -> PathBuf {
        self.folder.join("transcript.txt")
    }

    /// The bytes of the transcript.
    ///
    /// # Errors
    ///
    /// `STORE_IO` when there is none, or it is no plain file any more.
    pub fn transcript_bytes(&self) -> Result<Vec<u8>, Error> {
        // The process writes at most the bound and a note.
        let bound = limits::TRANSCRIPT_BYTES + 4_096;
        read_left(&self.root, &self.transcript(), bound, Code::StoreIo)
    }

    /// Where the plan stage writes `plan.md`.
    #[must_use]
    pub fn output(&self) -> PathBuf {
        self.folder.join("output")
    }

    pub(super) fn usage(&self) -> PathBuf {
        self.folder.join("usage")
    }
}

/// One attempt of a stage, to be looked at again.
pub struct Settled<'a> {
    /// The job.
    pub job: &'a Job,
    /// The run's workspace.
    pub workspace: &'a Workspace,
    /// The node.
    pub node: &'a NodeId,
    /// The attempt's number, from 1.
    pub number: u64,
    /// Where results are stored.
    pub artifacts: &'a dyn ArtifactProvider,
}

impl Settled<'_> {
    /// The outcome of an agent run that a person says did its work: what stands in its tree and its files now.
    ///
    /// # Errors
    ///
    /// `REPO_UNUSABLE` or `EVIDENCE_UNREADABLE` when the tree or the plan is gone; an artifact store's code.
    pub fn capture(&self) -> Result<Outcome, Error> {
        let files = AttemptFiles::of(self.workspace, self.node, self.number);
        let put = |name: &str, bytes: &[u8]| put(self.artifacts, self.job, name, bytes);
        let made = match Stage::of(self.node) {
            Some(Stage::Plan) => put(PLAN_FILE, self.without_secrets(&plan(&files)?)?)?,
            Some(Stage::Implement | Stage::Correct(_)) => {
                self.workspace.prepare(&self.job.repository())?;
                let patch = self.workspace.capture()?.patch;
                put(PATCH_FILE, self.without_secrets(&patch)?)?
            }
            _ => {
                let message = "nobody saw what the check said; it can only run again";
                return Err(Error::new(Code::EvidenceUnreadable, message));
            }
        };
        let transcript = put(TRANSCRIPT_FILE, transcript(&files).as_bytes())?;
        Ok(Outcome {
            ended: Ended::Reconciled,
            failure: None,
            artifacts: vec![made, transcript],
        })
    }

    /// The bytes of a result, unless the value of a secret variable stands in them, as far as this process has it.
    fn without_secrets<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], Error> {
        let secret = |name: &&String| self.job.secrets.contains(name) || shim::looks_secret(name);
        let value = |name: &String| Some((name.clone(), std::env::var_os(name)?.into_vec()));
        let names = self.job.environment.iter().filter(secret);
        match shim::Mask::new(names.filter_map(value)).found_in(bytes) {
            None => Ok(bytes),
            Some(name) => Err(Error::new(
                Code::EvidenceUnreadable,
                format!("the result contains the value of {name}; take it out of the tree first"),
            )),
        }
    }

    /// The outcome where nothing was captured when it was settled. A tree that is gone by now is a failure of the
    /// work, not an end of the run: the check says the rest.
    ///
    /// # Errors
    ///
    /// An artifact store's code, or the system's.
    pub fn recapture(&self) -> Result<Outcome, Error> {
        let lost = match self.capture() {
            Err(error) if matches!(error.code(), Code::RepoUnusable | Code::EvidenceUnreadable) => {
                error
            }
            captured => return captured,
        };
        let mut artifacts = Vec::new();
        if Stage::of(self.node) == Some(Stage::Implement) {
            artifacts.push(put(self.artifacts, self.job, PATCH_FILE, b"")?);
        }
        Ok(Outcome {
            ended: Ended::Reconciled,
            failure: Some(lost.message),
            artifacts,
        })
    }
}

/// Why nobody knows what an attempt did, from its evidence: what the adapter said, or what it said and could not be
/// recorded. None where the engine ended before it said anything.
#[must_use]
pub fn why_uncertain(artifacts: &dyn ArtifactProvider, attempt: &Attempt) -> Option<String> {
    let newest = attempt.evidence.iter().rev();
    newest
        .filter_map(|id| record(artifacts, id))
        .find_map(|record| {
            let said = |name: &str| record.get(name).and_then(Value::as_str);
            match said("outcome")? {
                "UNCERTAIN" => said("why").map(str::to_owned),
                "APPLIED" => Some(format!(
                    "it reported its work as done at {} units, which could not be recorded",
                    said("actual")?
                )),
                _ => None,
            }
        })
}

/// An evidence record of the engine; none for anything else.
fn record(artifacts: &dyn ArtifactProvider, id: &EvidenceId) -> Option<Value> {
    let digest: Digest = id.as_str().strip_prefix("sha256:")?.parse().ok()?;
    let bytes = artifacts
        .read_digest(&digest, limits::EVIDENCE_BYTES)
        .ok()?;
    if sha256(&bytes) != digest {
        return None;
    }
    let record = aiws::strict::parse(&bytes).ok()?;
    (record.get("format")?.as_str()? == "praxis-evidence").then_some(record)
}

/// Stores bytes under a name of this workflow.
pub(super) fn put(
    artifacts: &dyn ArtifactProvider,
    job: &Job,
    name: &str,
    bytes: &[u8],
) -> Result<Artifact, Error> {
    let media_type = match name {
        PLAN_FILE => "text/markdown",
        PATCH_FILE => "text/x-diff",
        _ => "text/plain",
    };
    artifacts
        .put(
            bytes,
            name,
            media_type,
            &job.started_by,
            job.retain_until_ms(),
        )
        .map_err(|error| Error::new(error.code(), error.to_string()))
}

pub(super) fn transcript(files: &AttemptFiles) -> String {
    // A transcript that cannot be read says so instead of failing the work.
    match files.transcript_bytes() {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("[the transcript cannot be read: {}]\n", error.message),
    }
}

/// What the agent says it cost: 1 unit unless it wrote a number; what is no number is charged as 1 and said so.
pub(super) fn usage(files: &AttemptFiles) -> (Dec, Option<String>) {
    let one = Dec::from_u64(1);
    if std::fs::symlink_metadata(files.usage()).is_err() {
        return (one, None);
    }
    let read = read_left(
        &files.root,
        &files.usage(),
        limits::USAGE_BYTES,
        Code::EvidenceUnreadable,
    );
    let number = read
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .and_then(|text| {
            let digits = text.trim();
            // More would not be a cost, and sums of it have to stay in what an account can hold.
            (digits.len() <= limits::USAGE_DIGITS).then(|| digits.parse().ok())?
        });
    match number {
        Some(number) => (number, None),
        None => (
            one,
            Some(format!(
                "the usage file holds no plain number of at most {} digits; 1 unit is charged",
                limits::USAGE_DIGITS
            )),
        ),
    }
}

pub(super) fn plan(files: &AttemptFiles) -> Result<Vec<u8>, Error> {
    let path = files.output().join(PLAN_FILE);
    let unusable = |what: &str| {
        Error::new(
            Code::EvidenceUnreadable,
            format!("the plan stage has to write plan.md in PRAXIS_OUTPUT_DIR: {what}"),
        )
    };
    if std::fs::symlink_metadata(&path).is_err() {
        return Err(unusable("there is none"));
    }
    let plan = read_left(
        &files.root,
        &path,
        limits::PLAN_BYTES,
        Code::EvidenceUnreadable,
    )?;
    match std::str::from_utf8(&plan) {
        Ok(text) if text.trim().is_empty() => Err(unusable("it is empty")),
        Ok(_) => Ok(plan),
        Err(_) => Err(unusable("it is not UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> (tempfile::TempDir, AttemptFiles) {
        let dir = tempfile::TempDir::new().unwrap();
        let files = AttemptFiles {
            root: dir.path().to_owned(),
            folder: dir.path().join("attempt"),
        };
        std::fs::create_dir(&files.folder).unwrap();
        std::fs::create_dir(files.output()).unwrap();
        (dir, files)
    }

    #[test]
    fn usage_is_one_unit_unless_a_number_says_otherwise() {
        let (_dir, files) = files();
        assert_eq!(usage(&files), (Dec::from_u64(1), None));
        for (text, cost, noted) in [
            ("0", 0, false),
            ("17\n", 17, false),
            ("-1", 1, true),
            ("1.5", 1, true),
            ("", 1, true),
            ("999999999999999999", 999_999_999_999_999_999, false),
            ("1000000000000000000", 1, true),
        ] {
            std::fs::write(files.usage(), text).unwrap();
            let (actual, note) = usage(&files);
            assert_eq!(
                (actual, note.is_some()),
                (Dec::from_u64(cost), noted),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_plan_is_a_text_that_says_something() {
        let (_dir, files) = files();
        let path = files.output().join(PLAN_FILE);
        assert!(plan(&files).unwrap_err().message.contains("there is none"));
        for (bytes, word) in [(&b" \n"[..], "empty"), (b"\xff", "UTF-8")] {
            std::fs::write(&path, bytes).unwrap();
            assert!(plan(&files).unwrap_err().message.contains(word));
        }
        std::fs::write(&path, "# Plan\n").unwrap();
        assert_eq!(plan(&files).unwrap(), b"# Plan\n");
    }

    #[test]
    fn an_uncertain_attempt_says_why_where_its_evidence_does() {
        let dir = tempfile::TempDir::new().unwrap();
        let artifacts = praxis_artifacts::FileArtifacts::open(&dir.path().join("a")).unwrap();
        let owner = aiws::id::ActorId::new("p").unwrap();
        let mut attempt = Attempt {
            attempt_id: aiws::id::AttemptId::new("a").unwrap(),
            operation_id: aiws::id::OperationId::new("o").unwrap(),
            epoch: aiws::decimal::U64(1),
            status: aiws::record::AttemptStatus::Unknown,
            reserved: Dec::from_u64(1),
            actual: None,
            evidence: Vec::new(),
        };
        assert_eq!(why_uncertain(&artifacts, &attempt), None);
        let cases = [
            ("a finding", None),
            (
                r#"{"format":"praxis-evidence","outcome":"UNCERTAIN","why":"the adapter panicked"}"#,
                Some("the adapter panicked"),
            ),
            (
                r#"{"actual":"7","format":"praxis-evidence","outcome":"APPLIED"}"#,
                Some("it reported its work as done at 7 units, which could not be recorded"),
            ),
        ];
        for (bytes, why) in cases {
            let put = artifacts.put(bytes.as_bytes(), "evidence", "text/plain", &owner, u64::MAX);
            let id = EvidenceId::new(format!("sha256:{}", put.unwrap().digest)).unwrap();
            attempt.evidence.push(id);
            assert_eq!(why_uncertain(&artifacts, &attempt).as_deref(), why);
        }
    }

    /// What an agent puts in the place of a file is not waited for, and a link out of its folder is not followed.
    #[test]
    fn only_a_plain_file_of_its_own_is_taken_from_an_agent() {
        use rustix::fs::{CWD, Mode, mkfifoat};
        let (dir, files) = files();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "secret").unwrap();
        for path in [
            files.output().join(PLAN_FILE),
            files.usage(),
            files.transcript(),
        ] {
            mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        }
        assert!(plan(&files).unwrap_err().message.contains("regular file"));
        assert!(usage(&files).1.is_some());
        assert!(transcript(&files).contains("regular file"));
        let path = files.output().join(PLAN_FILE);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        assert!(plan(&files).unwrap_err().message.contains("symbolic link"));
        std::fs::remove_dir_all(files.output()).unwrap();
        std::fs::create_dir(dir.path().join("elsewhere")).unwrap();
        std::fs::write(dir.path().join("elsewhere").join(PLAN_FILE), "secret").unwrap();
        std::os::unix::fs::symlink("../elsewhere", files.output()).unwrap();
        assert!(plan(&files).is_err());
    }
}
