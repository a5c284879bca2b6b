//! Hops 4 and 5: handing in, being answered, and what follows.
//!
//! Invariant: nothing is swapped in, called or remembered before the answer; an answer that the power took away is none.
//! Part of the simulation.

use std::collections::BTreeMap;

use aiws::digest::Digest;
use praxis_journal::{Append, AppendError, AppendResult, Appended};
use praxis_journal_format::Frame;
use praxis_plant::{self as plant, Plant};

use super::hops;
use super::process::{By, Heard, Owner, Prepared, Process, Then};
use super::{Flow, Sim};
use crate::cast;
use crate::fault::Fault;
use crate::invariant::{Broken, Invariant};
use crate::oracle::{Answer, Handed, Request, Row, WorldEntry};
use crate::words;
use crate::world::{Call, Fate, Response};

impl Sim {
    /// Hands in as one commit and takes what follows.
    pub(super) fn commit(
        &mut self,
        process: &mut Process,
        batch: Vec<Prepared>,
    ) -> Result<Flow, Broken> {
        self.committed(process, batch).map(|(flow, _)| flow)
    }

    /// The same, with what was answered.
    pub(super) fn committed(
        &mut self,
        process: &mut Process,
        batch: Vec<Prepared>,
    ) -> Result<(Flow, Vec<AppendResult>), Broken> {
        if batch.is_empty() {
            return Ok((Flow::Goes, Vec::new()));
        }
        let handed: Vec<Handed> = batch.iter().map(handed).collect();
        let appends: Vec<_> = batch
            .iter()
            .map(|prepared| prepared.append.clone())
            .collect();
        self.in_flight = appends
            .iter()
            .map(|append| append.sealed.iter().map(|sealed| sealed.hash).collect())
            .collect();
        self.oracle.hand_in(&handed);
        let now_ms = praxis_journal::Clock::now_ms(&*self.clock);
        let answers = process.ledger.commit(&appends, now_ms);
        if !self.disk.has_power() {
            return Ok((Flow::Dies, answers));
        }
        self.told(&answers)?;
        self.without_a_fault(&answers)?;
        self.read_back(process, &appends, &answers)?;
        for append in &appends {
            if append.conditions.request.is_some() {
                self.requests.push(append.clone());
            }
        }
        let mut flow = Flow::Goes;
        for (prepared, answer) in batch.into_iter().zip(&answers) {
            match answer {
                Ok(Appended::Committed { .. }) => {
                    let sealed = prepared.append.sealed.clone();
                    self.acknowledged
                        .extend(sealed.iter().map(|sealed| sealed.hash));
                    process.log.extend(sealed);
                    flow = flow.then(self.stored(process, prepared)?);
                }
                Ok(Appended::Replayed { .. }) => {}
                Err(error) => flow = flow.then(self.not_stored(process, &prepared, error)?),
            }
        }
        self.in_flight.clear();
        self.see(process)?;
        Ok((flow, answers))
    }

    /// A storage error needs a fault of the disk, at some time since the store was opened.
    fn without_a_fault(&mut self, answers: &[AppendResult]) -> Result<(), Broken> {
        let failed = answers.iter().find_map(|answer| match answer {
            Err(AppendError::Store(error)) => Some(error),
            _ => None,
        });
        match failed {
            Some(error) if !self.was_struck() && !self.struck_since => Err(Broken::new(
                Invariant::Opens,
                format!("an append is answered with {error}, and the disk is well"),
            )),
            _ => Ok(()),
        }
    }

    /// What was answered as stored can be read where the answer says that it stands.
    fn read_back(
        &mut self,
        process: &Process,
        appends: &[Append],
        answers: &[AppendResult],
    ) -> Result<(), Broken> {
        for (append, answer) in appends.iter().zip(answers) {
            let (Ok(Appended::Committed { sequence, .. }), Some(first)) =
                (answer, append.sealed.first())
            else {
                continue;
            };
            let stands = |at: u64| process.ledger.frames(at).map(|found| hash_at(found, at));
            let (invariant, what) = match stands(*sequence) {
                Ok(Some(hash)) if hash == first.hash => continue,
                Err(_) if self.was_struck() || !self.disk.has_power() => continue,
                Err(error) => (Invariant::HashCovers, error.to_string()),
                Ok(_) if matches!(stands(sequence + 1), Ok(Some(hash)) if hash == first.hash) => (
                    Invariant::SequenceGapFree,
                    "it stands one further".to_owned(),
                ),
                Ok(found) => {
                    let found = found.map_or("nothing".to_owned(), |hash| hash.to_string());
                    (Invariant::PrefixStays, format!("there stands {found}"))
                }
            };
            let what = format!("answered as stored at sequence {sequence}, and {what}");
            return Err(Broken::new(invariant, what));
        }
        Ok(())
    }

    fn told(&mut self, answers: &[AppendResult]) -> Result<(), Broken> {
        let answers: Vec<Answer> = answers.iter().map(answer).collect();
        for answer in &answers {
            self.trace.note(format_args!("  {}", words::answer(answer)));
            if let Answer::Refused { code } = answer {
                *self.refusals.entry(code.clone()).or_default() += 1;
            }
        }
        self.oracle.answered(&answers)
    }

    fn stored(&mut self, process: &mut Process, prepared: Prepared) -> Result<Flow, Broken> {
        let Prepared { by, then, .. } = prepared;
        match by {
            By::Owner {
                run, number, next, ..
            } => {
                if let Some(owner) = process.numbered(run, number) {
                    owner.state = *next;
                    if owner.epoch == owner.state.epoch {
                        // What was looked for in vain may be there by now.
                        owner.looked.truncate(8);
                    }
                    if let Then::Token(id, token, generation) = &then {
                        owner.tokens.insert(id.clone(), (*token, *generation));
                    }
                }
                if let Then::Call { call, fate, dies } = then {
                    return self.call(process, run, number, &call, fate, dies);
                }
            }
            By::Mission(next) => process.mission = Some(*next),
            By::Nobody => {}
        }
        match then {
            Then::Own(run) => self.own(process, run)?,
            Then::Charge(number) => {
                let mut all = process.owners.values_mut().flatten();
                if let Some(owner) = all.find(|owner| owner.number == number) {
                    owner.epoch = owner.state.epoch;
                    owner.charged = true;
                }
            }
            _ => {}
        }
        Ok(Flow::Goes)
    }

    /// The provider is called, behind the durable dispatch.
    fn call(
        &mut self,
        process: &mut Process,
        run: u8,
        caller: u32,
        call: &Call,
        fate: Fate,
        dies: bool,
    ) -> Result<Flow, Broken> {
        self.oracle.called(caller, &call.attempt)?;
        let responses = self.ask_world(call, fate);
        self.trace.note(format_args!(
            "  the provider is called for {}, {fate:?}: {}",
            words::plain(&call.attempt),
            words::plain(&responses)
        ));
        if dies {
            return Ok(Flow::Dies);
        }
        let attempt = cast::id(&call.attempt).map_err(|error| self.internal(&error))?;
        let heard = responses.into_iter().map(|response| Heard {
            run,
            attempt: aiws::id::AttemptId::clone(&attempt),
            response,
        });
        process.heard.extend(heard);
        if plant::is(Plant::UnknownRetried)
            && process.heard.iter().any(|it| it.response == Response::Lost)
        {
            // The defect: no answer, so it is called once more.
            self.oracle
                .response(&call.attempt, crate::oracle::Response::Lost);
            self.oracle.called(caller, &call.attempt)?;
            self.ask_world(call, Fate::Applied);
        }
        Ok(Flow::Goes)
    }

    /// Calls the provider, and shows the oracle what it did.
    pub(super) fn ask_world(&mut self, call: &Call, fate: Fate) -> Vec<Response> {
        let responses = self.world.call(call, fate);
        self.struck.extend(fault(fate));
        self.show_world();
        responses
    }

    /// Shows the oracle what is new in the provider's record.
    pub(super) fn show_world(&mut self) {
        for entry in &self.world.record()[self.world_shown..] {
            self.oracle.world(WorldEntry {
                operation: entry.operation.clone(),
                attempt: entry.attempt.clone(),
                cost: entry.cost,
                forgot: entry.forgot,
            });
        }
        self.world_shown = self.world.record().len();
    }

    /// A new run has its first owner.
    fn own(&mut self, process: &mut Process, run: u8) -> Result<(), Broken> {
        let state = self.folded(process, run)?;
        let number = self.number();
        if let Some(state) = state {
            let epoch = state.epoch;
            process.owners.entry(run).or_default().push(Owner {
                number,
                state,
                epoch,
                tokens: BTreeMap::new(),
                looked: Vec::new(),
                charged: true,
            });
        }
        Ok(())
    }

    /// The run's state as the log has it.
    pub(super) fn folded(
        &self,
        process: &Process,
        run: u8,
    ) -> Result<Option<praxis_model::run::RunState>, Broken> {
        let subject = cast::run(run).map_err(|error| self.internal(&error))?;
        hops::fold(&process.log, &subject)
            .transpose()
            .map_err(|error| {
                let what = format!(
                    "the log of {} cannot be folded: {error}",
                    cast::run_name(run)
                );
                Broken::new(Invariant::NothingUnknown, what)
            })
    }

    fn not_stored(
        &mut self,
        process: &mut Process,
        prepared: &Prepared,
        error: &AppendError,
    ) -> Result<Flow, Broken> {
        match (error, &prepared.by) {
            (AppendError::Store(error), _) if error.in_doubt() => return Ok(Flow::Dies),
            (AppendError::Store(_), _) => {
                let closed = process.ledger.read_only().is_some();
                return Ok(if closed { Flow::Dies } else { Flow::Goes });
            }
            (
                AppendError::Refused { .. },
                By::Owner {
                    run, number, epoch, ..
                },
            ) => {
                let (run, number, epoch) = (*run, *number, *epoch);
                // It looks again; one that was deposed goes on in the name of its own epoch.
                if let Some(mut state) = self.folded(process, run)?
                    && let Some(owner) = process.numbered(run, number)
                {
                    state.epoch = epoch;
                    owner.state = state;
                }
            }
            (AppendError::Refused { .. }, By::Mission(_)) => {
                process.mission =
                    hops::fold_mission(&process.log).map_err(|error| self.internal(&error))?;
            }
            (AppendError::Refused { .. }, By::Nobody) => {}
        }
        Ok(Flow::Goes)
    }
}

/// The hash in the frame that stands at a sequence.
fn hash_at(frames: Vec<(u64, Vec<u8>)>, sequence: u64) -> Option<Digest> {
    let (found, bytes) = frames.into_iter().next()?;
    let frame = Frame::decode(&bytes).ok()?;
    (found == sequence).then_some(frame.hash)
}

/// The kind of fault of a fate, if it is one.
fn fault(fate: Fate) -> Option<Fault> {
    Some(match fate {
        Fate::AnswerLost => Fault::ResponseLost,
        Fate::TimesOut => Fault::TimesOut,
        Fate::InPart => Fault::AppliesInPart,
        Fate::AnsweredTwice => Fault::CallsBackTwice,
        Fate::KeysForgotten => Fault::ForgetsKeys,
        Fate::StatusWrong => Fault::WrongStatus,
        Fate::Dear => Fault::CostsMore,
        Fate::Applied | Fate::Refused | Fate::Late => return None,
    })
}

fn handed(prepared: &Prepared) -> Handed {
    let (writer, claims_epoch) = match &prepared.by {
        By::Owner { number, epoch, .. } => (*number, Some(*epoch)),
        By::Mission(_) | By::Nobody => (0, None),
    };
    let first = prepared.append.sealed.first();
    let request = prepared.append.conditions.request.as_ref().zip(first);
    Handed {
        writer,
        claims_epoch,
        request: request.map(|(key, first)| Request {
            actor: key.actor_id.as_str().to_owned(),
            request: key.request_id.as_str().to_owned(),
            digest: first.event.request_digest.to_string(),
        }),
        rows: prepared.append.sealed.iter().map(row).collect(),
    }
}

/// An event as the oracle sees it.
pub(super) fn row(sealed: &praxis_journal_format::Sealed) -> Row {
    Row {
        hash: sealed.hash.0,
        bytes: sealed.bytes.to_vec(),
    }
}

fn answer(result: &AppendResult) -> Answer {
    match result {
        Ok(Appended::Committed { sequence, hash }) => Answer::Stored {
            sequence: *sequence,
            hash: hash.0,
        },
        Ok(Appended::Replayed { sequence }) => Answer::Replayed {
            sequence: *sequence,
        },
        Err(AppendError::Refused { refusal, .. }) => Answer::Refused {
            code: refusal.code().name().to_owned(),
        },
        Err(AppendError::Store(error)) if error.in_doubt() => Answer::InDoubt,
        Err(AppendError::Store(_)) => Answer::NotStored,
    }
}
