//! From the exit record of a shim to what is reported of an attempt.
//! Invariant: made from the record alone, so that an engine that waited for the shim and one that found the record report
//! the same. Called by `adapter`.

use aiws::canonical;
use aiws::decimal::Dec;
use aiws::error::{Code, Error};
use aiws::json::Value;
use aiws::record::Artifact;
use praxis_engine::process::Exit;
use praxis_engine::shim::{ExitRecord, TRANSCRIPT};
use praxis_engine::{EffectCall, EffectOutcome, EffectReport};

use super::attempt::{AttemptFiles, put};
use super::contract::Job;
use super::graph::Stage;
use super::outcome::{CHECK_FILE, Ended, Outcome, PATCH_FILE, PLAN_FILE, TRANSCRIPT_FILE};
use super::shimmed::{COST, Cost};

/// An attempt whose shim left a record.
pub(super) struct Recorded<'a> {
    pub(super) job: &'a Job,
    pub(super) stage: Stage,
    pub(super) call: &'a EffectCall,
    pub(super) files: &'a AttemptFiles,
    pub(super) record: &'a ExitRecord,
}

impl Recorded<'_> {
    /// What is reported.
    ///
    /// # Errors
    ///
    /// `EVIDENCE_UNREADABLE` where the record does not say how it ended or its files are not what it says; an artifact
    /// store's code.
    pub(super) fn report(&self) -> Result<EffectReport, Error> {
        if self.record.attempt_id != self.call.attempt_id {
            return Err(unusable("its record is that of another attempt"));
        }
        if let Some(why) = &self.record.not_started {
            return Ok(not_started(why));
        }
        let ended = ended(self.record)
            .ok_or_else(|| unusable("it was started, and the system did not say how it ended"))?;
        match self.stage {
            Stage::Check(_) => self.check(ended),
            _ => self.agent(ended),
        }
    }

    fn agent(&self, ended: Ended) -> Result<EffectReport, Error> {
        let cost = match self.output(COST)? {
            Some(bytes) => aiws::strict::parse(&bytes)
                .and_then(|value| canonical::from_value::<Cost>(&value))?,
            None => Cost {
                actual: Dec::from_u64(1),
                note: None,
            },
        };
        let mut transcript = self.transcript()?;
        if let Some(note) = cost.note {
            transcript.push_str(&format!("\n[praxis: {note}]\n"));
        }
        let mut artifacts = vec![self.put(TRANSCRIPT_FILE, transcript.as_bytes())?];
        if ended.is_refusal() {
            let failure = Some("the agent said that it did nothing (exit 75)".to_owned());
            let evidence = Outcome {
                ended,
                failure,
                artifacts,
            };
            return Ok(EffectReport {
                outcome: EffectOutcome::NotApplied,
                evidence: evidence.to_value()?,
            });
        }
        for name in [PLAN_FILE, PATCH_FILE] {
            if let Some(bytes) = self.output(name)? {
                artifacts.push(self.put(name, &bytes)?);
            }
        }
        let failure = (!ended.is_success()).then(|| format!("the agent {}", ended.sentence()));
        let evidence = Outcome {
            ended,
            failure: failure.or_else(|| self.record.failure.clone()),
            artifacts,
        };
        Ok(EffectReport::applied(cost.actual, evidence.to_value()?))
    }

    fn check(&self, ended: Ended) -> Result<EffectReport, Error> {
        let producer = self.record.failure.clone();
        let command = self
            .call
            .action
            .pointer("/payload/command")
            .and_then(Value::as_str);
        let said = format!(
            "The check `{}` {}.\n{}\n{}",
            crate::render::escape::line(command.unwrap_or_default()),
            ended.sentence(),
            producer
                .as_ref()
                .map(|failure| format!("It counts as failed whatever it says: {failure}.\n"))
                .unwrap_or_default(),
            self.transcript()?
        );
        let failure = producer
            .or_else(|| (!ended.is_success()).then(|| format!("the check {}", ended.sentence())));
        let artifacts = vec![self.put(CHECK_FILE, said.as_bytes())?];
        let evidence = Outcome {
            ended,
            failure,
            artifacts,
        };
        Ok(EffectReport::applied(Dec::ZERO, evidence.to_value()?))
    }

    fn transcript(&self) -> Result<String, Error> {
        let kept = self.output(TRANSCRIPT)?;
        let text = kept.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        // A transcript that was not kept says so instead of failing the work.
        Ok(text.unwrap_or_else(|| {
            "[the transcript was not kept: what stood in its place is no output of the command]\n"
                .to_owned()
        }))
    }

    fn output(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.record
            .output(self.files.folder(), name)
            .map_err(|why| unusable(&why))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<Artifact, Error> {
        put(self.call.artifacts.as_ref(), self.job, name, bytes)
    }
}

fn unusable(why: &str) -> Error {
    Error::new(Code::EvidenceUnreadable, why)
}

/// The report of a command that was not started.
pub(super) fn not_started(why: &str) -> EffectReport {
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

/// How it ended; none where nobody saw that.
fn ended(record: &ExitRecord) -> Option<Ended> {
    match record.ended()? {
        Exit::Unseen => None,
        _ if record.timed_out => Some(Ended::TimedOut),
        _ if record.stopped => Some(Ended::Stopped),
        Exit::Code(code) => Some(Ended::Exit { code }),
        Exit::Signal(number) => Some(Ended::Signal { number }),
    }
}
