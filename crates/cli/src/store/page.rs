//! A run's page, from what the store and the shims say.
//! Invariant: what cannot be read only makes the page say less.
//! Part of the reader of the store.

use std::path::PathBuf;

use aiws::digest::{Digest, sha256};
use aiws::error::Code;
use aiws::id::ConsumerId;
use aiws::record::{AcceptanceVerdict, ApprovalDecision, Attempt, Lifecycle};
use praxis_model::command::{Body, CommandType};

use super::{Reader, Run};
use crate::coding::attempt::{AttemptFiles, why_uncertain};
use crate::coding::graph;
use crate::coding::outcome::PLAN_FILE;
use crate::coding::pending::{candidate, proposal};
use crate::coding::publish::{CONSUMER, is_published};
use crate::coding::workspace::Workspace;
use crate::files::read_left;
use crate::limits::PLAN_BYTES;
use crate::render::escape;
use crate::render::page::{Page, Standing};
use crate::render::rows::History;

impl Reader {
    /// A run's page. Where nobody runs it now, a dispatched attempt that no shim shows is one that nobody knows the
    /// outcome of.
    #[must_use]
    pub fn page(&self, run: &Run, now_ms: u64) -> Page {
        let mut page = Page::of(
            &self.left(&run.state),
            &run.job,
            &History::of(&run.events),
            run.account.as_ref(),
            self.has_branch(run),
            now_ms,
        );
        for uncertain in &mut page.uncertain {
            let attempt = run.state.attempts.get(uncertain.attempt.as_str());
            uncertain.why = attempt.and_then(|attempt| self.why(attempt));
        }
        page.driven = self.drives(&run.job.run_id);
        for hold in &mut page.holds {
            if let Some(reason) = self.reason_of_hold(run, &hold.id) {
                hold.sentence
                    .push_str(&format!(": {}", escape::line(&reason)));
            }
        }
        page.to_read = self.to_read(run, page.standing, now_ms);
        if let (Some(cause), Some(reason)) = (&mut page.cause, self.denial(run)) {
            cause.push_str(&format!(": {}", escape::line(&reason)));
        }
        page
    }

    /// Why a person placed a hold, in that person's words.
    fn reason_of_hold(&self, run: &Run, id: &str) -> Option<String> {
        let placed = run
            .events
            .iter()
            .find(|sealed| match &sealed.event.command {
                Body::PlaceHold(body) => body.hold.hold_id.as_str() == id,
                _ => false,
            })?;
        let record = self.decision(placed)?;
        record.get("reason")?.as_str().map(str::to_owned)
    }

    /// Why a person said no, in that person's words.
    fn denial(&self, run: &Run) -> Option<String> {
        if run.state.lifecycle != Lifecycle::Rejected {
            return None;
        }
        let is_no = |body: &Body| match body {
            Body::Approve(body) => body.decision == ApprovalDecision::Denied,
            Body::Accept(body) => body.verdict == AcceptanceVerdict::Rejected,
            _ => false,
        };
        let mut events = run.events.iter().rev();
        let denied = events.find(|sealed| is_no(&sealed.event.command))?;
        let record = self.decision(denied)?;
        record.get("reason")?.as_str().map(str::to_owned)
    }

    /// The file that has what waits for a person: the plan as the agent left it where that is what was recorded, or
    /// else the stored bytes.
    fn to_read(
        &self,
        run: &Run,
        standing: Standing,
        now_ms: u64,
    ) -> Option<(&'static str, String)> {
        let (what, digest) = match standing {
            Standing::NeedsApproval => {
                let proposal = proposal(&run.state, &run.job, now_ms).ok().flatten()?;
                ("plan", proposal.plan.digest)
            }
            Standing::NeedsAcceptance => {
                let candidate = candidate(&run.state).ok().flatten()?;
                ("patch", candidate.patch.digest)
            }
            _ => return None,
        };
        let stored = self.path.join("artifacts").join(digest.to_string());
        let left = (what == "plan").then(|| self.left_plan(run, &digest));
        let path = left.flatten().unwrap_or(stored);
        path.is_file()
            .then(|| (what, escape::line(&path.display().to_string())))
    }

    /// The plan in the folder of the attempt that wrote it, if it is the very bytes.
    fn left_plan(&self, run: &Run, digest: &Digest) -> Option<PathBuf> {
        let node = graph::node_id(graph::PLAN).ok()?;
        let mut operations = run.state.operations.values();
        let made = operations.find(|operation| operation.node_id.as_ref() == Some(&node))?;
        let workspace = Workspace::at(&self.path, run.job.run_id.as_str(), &run.job.base_commit);
        let files = AttemptFiles::of(&workspace, &node, made.attempts.len() as u64);
        let path = files.output().join(PLAN_FILE);
        let bytes = read_left(workspace.root(), &path, PLAN_BYTES, Code::StoreIo).ok()?;
        (sha256(&bytes) == *digest).then_some(path)
    }

    /// Why nobody knows what an attempt did, in a line, where that was recorded.
    #[must_use]
    pub fn why(&self, attempt: &Attempt) -> Option<String> {
        why_uncertain(self.artifacts.as_ref(), attempt).map(|why| escape::line(&why))
    }

    /// Whether the accepted result was published: the publisher's cursor passed the run's end or, where another run's
    /// branch or a lost index holds the cursor back, the repository has the very commit.
    fn has_branch(&self, run: &Run) -> bool {
        let completed = run
            .events
            .iter()
            .rev()
            .find(|sealed| sealed.event.kind == CommandType::CompleteRun);
        let Some(completed) = completed else {
            return false;
        };
        let place = self
            .journal
            .find_event(&completed.event.stream, &completed.hash);
        let passed = ConsumerId::new(CONSUMER)
            .ok()
            .zip(place.ok().flatten())
            .is_some_and(|(consumer, place)| self.journal.cursor(&consumer) >= place);
        let job = &run.job;
        passed
            || is_published(
                &Workspace::at(&self.path, job.run_id.as_str(), &job.base_commit),
                job,
            )
    }
}
