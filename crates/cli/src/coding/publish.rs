//! The result branch: a commit of the accepted patch, brought into the user's repository by compare-and-swap.
//! Invariant: one consumer of the outbox; publishing again changes nothing, and an existing branch with another commit is never moved.
//! Called by `runner` when a run completed, and by `resume` for whatever a kill left behind.

use std::path::Path;

use aiws::error::{Code, Error};
use aiws::record::Artifact;
use praxis_journal_format::Sealed;
use praxis_model::command::Body;
use praxis_model::run::RunState;

use super::contract::Job;
use super::git::Git;
use super::graph;
use super::outcome::{PATCH_FILE, PLAN_FILE, named};
use super::pending::manifest_of;
use super::source::Source;
use super::workspace::{Workspace, fetch};

/// A branch of this name leaves no room for any of ours.
pub const PARENT: &str = "refs/heads/praxis";

/// The outbox consumer's name.
pub const CONSUMER: &str = "publisher";

/// What is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The patch.
    pub patch: Artifact,
    /// The plan that it carries out.
    pub plan: Artifact,
    /// Who accepted it.
    pub accepted_by: String,
    /// When, UTC milliseconds.
    pub accepted_ms: u64,
}

impl Accepted {
    /// What a completed run accepted, from its state and its events.
    ///
    /// # Errors
    ///
    /// `STORE_CORRUPT` when a completed run has no accepted patch.
    pub fn of(state: &RunState, events: &[Sealed]) -> Result<Self, Error> {
        let missing = |what: &str| {
            Error::new(
                Code::StoreCorrupt,
                format!("expected {what} of the completed run, found none"),
            )
        };
        let end = manifest_of(state, graph::END).ok_or_else(|| missing("the end"))?;
        let artifact = |name: &str| {
            named(&end.artifacts, name)
                .cloned()
                .ok_or_else(|| missing(name))
        };
        let acceptance = events
            .iter()
            .rev()
            .find(|sealed| matches!(sealed.event.command, Body::Accept(_)));
        let acceptance = acceptance.ok_or_else(|| missing("the acceptance"))?;
        Ok(Self {
            patch: artifact(PATCH_FILE)?,
            plan: artifact(PLAN_FILE)?,
            accepted_by: acceptance.event.actor_id.to_string(),
            accepted_ms: acceptance.event.at_ms.0,
        })
    }
}

/// The name of the branch.
#[must_use]
pub fn branch(job: &Job) -> String {
    format!("praxis/{}", job.run_id)
}

/// Makes the commit and the branch. Doing it again finds both and changes nothing.
///
/// # Errors
///
/// `BRANCH_CONFLICT` when the branch has another commit or cannot be made; `REPO_NOT_FOUND` or `REPO_UNUSABLE` when
/// the repository is gone or git fails.
pub fn publish(
    workspace: &Workspace,
    job: &Job,
    accepted: &Accepted,
    patch: &[u8],
) -> Result<String, Error> {
    let repository = Source::locate(&job.repository())?;
    workspace.prepare(&repository)?;
    let commit = commit(workspace, job, accepted, patch)?;
    let name = format!("refs/heads/{}", branch(job));
    match existing(&repository, &name)? {
        Some(found) if found == commit => return Ok(commit),
        Some(found) => {
            return Err(conflict(
                job,
                &format!("it stands at {found}, the result is {commit}"),
            ));
        }
        None => {}
    }
    let engine = workspace.engine_git();
    Git::inside(&engine)
        .args(["update-ref", "refs/praxis/result", &commit])
        .run()?;
    fetch(&repository, &engine, &commit)?;
    let none = "0".repeat(commit.len());
    let swap = Git::inside(&repository)
        .args([
            "update-ref",
            "-m",
            "praxis: accepted result",
            &name,
            &commit,
            &none,
        ])
        .run();
    match swap {
        Ok(_) => Ok(commit),
        // Somebody else was quicker, or a branch called `praxis` is in the way.
        Err(_) if existing(&repository, &name)?.as_deref() == Some(&commit) => Ok(commit),
        Err(error) => Err(blocked(&repository, job, &error)?),
    }
}

/// Whether the repository's branch is the commit that was made last; false where either cannot be read.
#[must_use]
pub fn is_published(workspace: &Workspace, job: &Job) -> bool {
    let made = existing(&workspace.engine_git(), "refs/praxis/result");
    let has = existing(
        Path::new(&job.repository),
        &format!("refs/heads/{}", branch(job)),
    );
    matches!((made, has), (Ok(Some(made)), Ok(Some(has))) if made == has)
}

fn existing(repository: &Path, name: &str) -> Result<Option<String>, Error> {
    let (found, at) = Git::inside(repository)
        .args(["rev-parse", "--verify", "--quiet", name])
        .probe()?;
    Ok(found.then(|| String::from_utf8_lossy(&at).trim().to_owned()))
}

fn conflict(job: &Job, why: &str) -> Error {
    let branch = branch(job);
    let message = format!(
        "the branch {branch} of {} is not this result: {why}; {}",
        job.repository,
        renaming(job, &branch)
    );
    Error::new(Code::BranchConflict, message).with("branch", branch)
}

/// Why the branch cannot be made: git has no name below or above another branch's.
fn blocked(repository: &Path, job: &Job, error: &Error) -> Result<Error, Error> {
    let branch = branch(job);
    let below = Git::inside(repository)
        .args(["for-each-ref", "--count=1", "--format=%(refname:lstrip=2)"])
        .args([format!("refs/heads/{branch}/")])
        .line()
        .ok()
        .filter(|found| !found.is_empty());
    let above = existing(repository, PARENT)?.map(|_| "praxis".to_owned());
    let message = match above.or(below) {
        Some(other) => format!(
            "the branch {branch} of {} cannot be made while there is a branch {other}; {}",
            job.repository,
            renaming(job, &other)
        ),
        None => format!(
            "the branch {branch} of {} cannot be made: {}; when that is mended: {} resume {}",
            job.repository,
            error.message,
            crate::render::program(),
            job.run_id
        ),
    };
    Ok(Error::new(Code::BranchConflict, message).with("branch", branch))
}

fn renaming(job: &Job, branch: &str) -> String {
    let repository = crate::render::quoted(&job.repository);
    let branch = crate::render::quoted(branch);
    format!(
        "rename it (git -C {repository} branch -m {branch} NAME), then: {} resume {}",
        crate::render::program(),
        job.run_id
    )
}

/// The commit, the same one whenever it is made: everything in it is recorded.
fn commit(
    workspace: &Workspace,
    job: &Job,
    accepted: &Accepted,
    patch: &[u8],
) -> Result<String, Error> {
    let tree = workspace.tree_of(patch)?;
    let date = format!("{} +0000", accepted.accepted_ms / 1_000);
    Git::inside(&workspace.engine_git())
        .env("GIT_AUTHOR_DATE", &date)
        .env("GIT_COMMITTER_DATE", &date)
        .args(["commit-tree", &tree, "-p", &job.base_commit, "-F", "-"])
        .input(message(job, accepted).as_bytes())
        .line()
}

/// The commit's message: the task, then what vouches for the result.
fn message(job: &Job, accepted: &Accepted) -> String {
    let task = crate::render::escape::block(job.task.trim());
    let mut lines = task.lines();
    let subject = crate::render::escape::clip(lines.next().unwrap_or_default(), 72);
    let rest = if task.lines().count() > 1 || subject.ends_with('~') {
        format!("\n{task}\n")
    } else {
        String::new()
    };
    format!(
        "{subject}\n{rest}\nPraxis-Run: {}\nPraxis-Plan: sha256:{}\nPraxis-Patch: sha256:{}\nPraxis-Accepted-By: {}\n",
        job.run_id,
        accepted.plan.digest,
        accepted.patch.digest,
        crate::render::escape::line(&accepted.accepted_by)
    )
}
