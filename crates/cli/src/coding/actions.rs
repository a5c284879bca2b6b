//! The exact actions of a coding run, and the grants that cover them.
//! Invariant: an action says all that matters about what will run, so that its fingerprint approves that and nothing else.
//! Called by `program` for every effect and by `authority` when a correction is admitted.

use aiws::digest::{Digest, sha256};
use aiws::error::Error;
use aiws::id::GrantId;
use aiws::json::Value;
use aiws::object;

use super::contract::Job;

impl Job {
    /// What every action says of the world that it runs in.
    fn payload(&self, command: &str) -> Value {
        let mut payload = object! {
            "command": command,
            "baseCommit": self.base_commit.as_str(),
            "environment": self.environment.clone(),
            "task": sha256(self.task.as_bytes()).to_string(),
            "bounds": object! {
                "timeoutSeconds": self.timeout_seconds.0.to_string(),
                "maxCorrections": self.max_corrections.0.to_string(),
            },
        };
        // Only where there are some, so that an action without them has the fingerprint that it always had.
        if let (Value::Object(members), false) = (&mut payload, self.secrets.is_empty()) {
            members.insert("secrets".to_owned(), self.secrets.clone().into());
        }
        payload
    }

    fn action(&self, action: &str, command: &str, more: &[(&str, Value)]) -> Value {
        let mut payload = self.payload(command);
        if let Value::Object(members) = &mut payload {
            members.extend(
                more.iter()
                    .map(|(name, value)| ((*name).to_owned(), value.clone())),
            );
        }
        object! { "action": action, "scope": self.scope(), "payload": payload }
    }

    /// The planning action.
    #[must_use]
    pub fn plan_action(&self) -> Value {
        self.action(Actions::PLAN, &self.agent, &[])
    }

    /// The implementing action of an exact plan: what a person approves.
    #[must_use]
    pub fn implement_action(&self, plan: &Digest) -> Value {
        self.action(
            Actions::IMPLEMENT,
            &self.agent,
            &[("planDigest", plan.to_string().into())],
        )
    }

    /// The n-th correcting action under an exact plan; the check's word and the patch come as inputs.
    #[must_use]
    pub fn correct_action(&self, plan: &Digest, correction: u32) -> Value {
        let more = [
            ("planDigest", plan.to_string().into()),
            ("correction", correction.into()),
        ];
        self.action(Actions::CORRECT, &self.agent, &more)
    }

    /// The check of an exact patch.
    #[must_use]
    pub fn check_action(&self, patch: &Digest) -> Value {
        self.action(
            Actions::CHECK,
            &self.check,
            &[("patchDigest", patch.to_string().into())],
        )
    }
}

/// The actions of a coding run.
#[derive(Debug)]
pub struct Actions;

impl Actions {
    /// The agent writes a plan.
    pub const PLAN: &str = "agent.plan";
    /// The agent carries out the approved plan.
    pub const IMPLEMENT: &str = "agent.implement";
    /// The agent mends what a check found.
    pub const CORRECT: &str = "agent.correct";
    /// The check runs.
    pub const CHECK: &str = "check.run";
}

/// The grants of a coding run.
#[derive(Debug)]
pub struct Grants;

impl Grants {
    /// Covers planning.
    pub const PLAN: &str = "plan";
    /// Covers implementing; it stands behind the approval all the same.
    pub const IMPLEMENT: &str = "implement";
    /// The root that correction grants narrow; no operation uses it itself.
    pub const CORRECT: &str = "correct";
    /// Covers checks, which cost nothing.
    pub const CHECK: &str = "check";

    /// The id of the grant for corrections of one plan.
    ///
    /// # Errors
    ///
    /// None in practice; an id that is refused.
    pub fn correction(plan: &Digest) -> Result<GrantId, Error> {
        GrantId::new(format!("correct:plan:{plan}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::contract::tests::job;
    use aiws::decimal::U64;

    #[test]
    fn what_is_approved_changes_with_every_part_of_it() {
        let plan = sha256(b"plan");
        let print = |job: &Job, plan: &Digest| {
            aiws::canonical::digest_of(&job.implement_action(plan)).unwrap()
        };
        let approved = print(&job(2), &plan);
        let changes: [fn(&mut Job); 7] = [
            |job| job.agent.push('x'),
            |job| job.base_commit.push('x'),
            |job| job.environment.push("C".into()),
            |job| job.secrets.push("C".into()),
            |job| job.timeout_seconds = U64(6),
            |job| job.max_corrections = U64(3),
            |job| job.task.push('x'),
        ];
        for change in changes {
            let mut other = job(2);
            change(&mut other);
            assert_ne!(print(&other, &plan), approved);
        }
        assert_ne!(print(&job(2), &sha256(b"other")), approved);
        assert_eq!(print(&job(2), &plan), approved);
    }
}
