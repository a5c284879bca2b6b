//! An audit: everything is looked at again, and every accepted command is sent a second time.
//!
//! Invariant: a command that comes again gets the answer that it got at first, and the log is as long as before. Part of
//! the simulation.

use super::process::{By, Prepared, Process, Then};
use super::*;
use praxis_journal::{AppendResult, Appended};

/// How many commands come again in one batch.
const BATCH: usize = 64;

impl Sim {
    /// The log is folded anew, verified and verified deeply, and every accepted command is sent once more.
    pub(super) fn audit(&mut self, process: &mut Process) -> Result<Flow, Broken> {
        let report = process.ledger.verify(&mut |_, _| ());
        if !self.disk.has_power() {
            return Ok(Flow::Dies);
        }
        let wrong = match report {
            Ok(report) => report.findings.first().map(|found| format!("{found:?}")),
            Err(error) => Some(error.to_string()),
        };
        if let Some(what) = wrong
            && !self.was_struck()
            && !self.struck_since
        {
            let what = format!("verification: {what}");
            return Err(Broken::new(Invariant::ProjectionsReplay, what));
        }
        self.verify(process)?;
        if !self.disk.has_power() {
            return Ok(Flow::Dies);
        }
        self.see(process)?;
        self.send_again(process)
    }

    /// Every accepted command comes once more.
    fn send_again(&mut self, process: &mut Process) -> Result<Flow, Broken> {
        let stored: BTreeMap<Digest, usize> = self.places();
        let again: Vec<(usize, Append)> = self
            .requests
            .iter()
            .filter_map(|append| {
                let first = append.sealed.first()?;
                Some((*stored.get(&first.hash)?, append.clone()))
            })
            .collect();
        let before = process.ledger.view().sequence();
        self.trace
            .note(format_args!("{} commands come again", again.len()));
        for batch in again.chunks(BATCH) {
            let prepared = batch.iter().map(|(_, append)| Prepared {
                by: By::Nobody,
                append: append.clone(),
                then: Then::Nothing,
            });
            let requests = self.requests.len();
            let (flow, answers) = self.committed(process, prepared.collect())?;
            self.requests.truncate(requests);
            if flow != Flow::Goes || !self.disk.has_power() {
                return Ok(Flow::Dies);
            }
            self.same_answers(process, batch, &answers)?;
        }
        let after = process.ledger.view().sequence();
        match after == before {
            true => Ok(Flow::Goes),
            false => {
                let what =
                    format!("commands came again, and the log went from {before} to {after}");
                Err(Broken::new(Invariant::SameAnswer, what))
            }
        }
    }

    /// Where each event of the log stands.
    fn places(&self) -> BTreeMap<Digest, usize> {
        let all = self.acknowledged.iter().enumerate();
        all.map(|(at, hash)| (*hash, at)).collect()
    }

    /// What stands where the answer points at is what was answered at first.
    fn same_answers(
        &mut self,
        process: &Process,
        batch: &[(usize, Append)],
        answers: &[AppendResult],
    ) -> Result<(), Broken> {
        for ((at, append), answer) in batch.iter().zip(answers) {
            let (Some(first), Some(kept)) = (append.sealed.first(), process.log.get(*at)) else {
                continue;
            };
            let request = first.event.request_id.as_ref().map(|id| id.as_str());
            let request = request.unwrap_or("without a name");
            let found = match answer {
                Ok(Appended::Replayed { sequence }) if *sequence == *at as u64 + 1 => {
                    match kept.event.result == first.event.result {
                        true => continue,
                        false => format!("got another result: {:?}", kept.event.result),
                    }
                }
                // A disk that fails answers nothing; the next audit asks again.
                Err(praxis_journal::AppendError::Store(_)) => continue,
                Ok(Appended::Replayed { sequence }) => format!("was answered with {sequence}"),
                Ok(Appended::Committed { sequence, .. }) => format!("was stored at {sequence}"),
                Err(error) => format!("was refused: {error}"),
            };
            let what = format!(
                "request {request} of sequence {} came again and {found}",
                at + 1
            );
            return Err(Broken::new(Invariant::SameAnswer, what));
        }
        Ok(())
    }
}
