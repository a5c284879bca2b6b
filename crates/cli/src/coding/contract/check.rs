//! A job that somebody sent, looked at before anything is made of it.
//! Invariant: what passes is what [`Job::new`] would have made of the same choices.
//! Called by the office when it is asked to start a run.

use aiws::decimal::U64;
use aiws::error::{Code, Error};

use super::{Choices, Job, Origin};
use crate::limits;

impl Job {
    /// Refuses a job that [`Job::new`] would not have made, as whoever sends one may have made it otherwise.
    ///
    /// # Errors
    ///
    /// `USAGE` where a member is out of its bounds.
    pub fn check(&self) -> Result<(), Error> {
        let name = self.run_id.as_str().strip_prefix("r-").unwrap_or_default();
        let small = |number: U64, most: u64| (number.0 <= most).then_some(number.0);
        let corrections = small(self.max_corrections, u64::from(limits::MAX_CORRECTIONS));
        let seconds = small(self.timeout_seconds, limits::TIMEOUT_SECONDS);
        let feedback = self.from.as_ref().map_or(0, |from| from.feedback.len());
        let odd = || Error::new(Code::Usage, "expected a job as praxis code makes it");
        if name.is_empty() || self.budget.is_zero() || feedback > limits::TASK_BYTES {
            return Err(odd());
        }
        let choices = Choices {
            task: self.task.clone(),
            agent: self.agent.clone(),
            check: self.check.clone(),
            environment: self.environment.clone(),
            secrets: self.secrets.clone(),
            from: self.from.clone(),
            max_corrections: corrections
                .and_then(|n| u32::try_from(n).ok())
                .ok_or_else(odd)?,
            budget: Some(self.budget),
            timeout_seconds: seconds.filter(|seconds| *seconds > 0).ok_or_else(odd)?,
        };
        let origin = Origin {
            started_by: self.started_by.clone(),
            started_at_ms: self.started_at_ms.0,
            name: name.to_owned(),
        };
        let same = Self::new(choices, &self.repository, &self.base_commit, origin)? == *self;
        let read = Self::from_bytes(&self.bytes()?).is_ok();
        (same && read).then_some(()).ok_or_else(odd)
    }
}
