//! The oracle: a reference model that judges what the engine did from the events alone.
//!
//! Invariant: it imports nothing of the engine, so that a mistake of the engine is not its mistake too; what it cannot read
//! is a broken promise, never a panic. Called by the simulation around every commit, after every reopening and at rest.

use std::collections::BTreeSet;

use aiws::decimal::Dec;

use crate::invariant::Broken;

mod accounts;
mod artifacts;
mod chain;
mod claims;
mod effects;
mod epochs;
mod event;
mod flow;
mod holds;
mod log;
mod marks;
mod outbox;
mod registers;
mod requests;
mod state;
mod tables;
mod told;
mod world;

pub use marks::MARKS;
pub use told::{Answer, Handed, Lookup, Request, Response, Row, Shown, WorldEntry};

/// The reference model with what it was told.
#[derive(Debug, Default)]
pub struct Oracle {
    off: bool,
    log: log::Log,
    state: state::State,
    world: world::World,
    outbox: outbox::Outbox,
    artifacts: artifacts::Artifacts,
    is_damaged: bool,
    is_detected: bool,
    /// Acknowledged events were lost by a damage that was detected.
    lossy: bool,
    marks: BTreeSet<&'static str>,
}

impl Oracle {
    /// An oracle of an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that accepts everything, for the control.
    pub fn switched_off() -> Self {
        Self {
            off: true,
            ..Self::default()
        }
    }

    /// A batch, before its commit.
    pub fn hand_in(&mut self, batch: &[Handed]) {
        if !self.off {
            self.take_batch(batch);
        }
    }

    /// The batch's answers, one for each append.
    ///
    /// # Errors
    /// The invariant that they break.
    pub fn answered(&mut self, answers: &[Answer]) -> Result<(), Broken> {
        self.judged(|it| it.take_answers(answers))
    }

    /// The process ended; a batch that was handed in has no answer.
    pub fn power_lost(&mut self) {
        self.doubt_batch();
        self.outbox.power_lost();
    }

    /// The store was opened; the whole log as found, in order.
    ///
    /// # Errors
    /// The invariant that it breaks.
    pub fn reopened(&mut self, log: &[Row]) -> Result<(), Broken> {
        self.judged(|it| {
            it.outbox.power_lost();
            it.find(log)
        })
    }

    /// The projections, after any step.
    ///
    /// # Errors
    /// The invariant that they break.
    pub fn shown(&mut self, shown: &Shown) -> Result<(), Broken> {
        self.judged(|it| {
            // While something is in doubt, nobody knows what a replay gives.
            if it.log.batch.is_some() || !it.log.doubt.is_empty() {
                return Ok(());
            }
            it.state.tables.compare(shown, it.log.last)?;
            match shown.tables.get("cursors") {
                Some(cursors) => it.outbox.shown(cursors),
                None => Ok(()),
            }
        })
    }

    /// The provider's record grew.
    pub fn world(&mut self, entry: WorldEntry) {
        if !self.off {
            self.world.happened(&self.state.effects, entry);
        }
    }

    /// What reached the owner.
    pub fn response(&mut self, attempt: &str, response: Response) {
        self.world.heard(attempt, response);
        if response == Response::Lost {
            self.mark("answer-lost");
        }
    }

    /// What a look-up answered.
    pub fn looked_up(&mut self, attempt: &str, answer: Lookup) {
        self.world.looked_up(attempt, answer);
        self.mark(match answer {
            Lookup::Conclusive(_) => "look-up-found",
            Lookup::Nothing => "look-up-found-nothing",
        });
    }

    /// An owner calls the provider.
    ///
    /// # Errors
    /// The invariant that it breaks: the attempt's dispatch must be durable under an epoch that is the caller's own and
    /// current, and each attempt is called once.
    pub fn called(&mut self, writer: u32, attempt: &str) -> Result<(), Broken> {
        self.judged(|it| {
            let (stream, epoch) = it.state.effects.callable(attempt)?;
            it.state.epochs.calls(writer, &stream, attempt, epoch)?;
            it.state.effects.dispatched(attempt)?;
            it.world.called(attempt)
        })
    }

    /// What a read of the outbox returned, in order.
    ///
    /// # Errors
    /// The invariant that it breaks.
    pub fn delivered(&mut self, consumer: &str, events: &[(u64, [u8; 32])]) -> Result<(), Broken> {
        self.judged(|it| {
            it.outbox
                .delivered(consumer, events, &it.log.rows, &mut it.marks)
        })
    }

    /// A consumer asked for its cursor to move here, whatever the call returned.
    pub fn acknowledged(&mut self, consumer: &str, sequence: u64) {
        self.outbox.asked(consumer, sequence);
    }

    /// The call that moves a cursor returned well: from now on it never stands before this.
    pub fn cursor_kept(&mut self, consumer: &str, sequence: u64) {
        self.outbox.kept(consumer, sequence);
    }

    /// The index was lost to an error of the disk and made anew, which loses the cursors of the outbox.
    pub fn index_lost(&mut self) {
        self.outbox.index_lost();
    }

    /// An artifact was put; whether the call returned well.
    pub fn put(&mut self, digest: [u8; 32], ok: bool) {
        self.artifacts.put(digest, ok);
    }

    /// An artifact was read: its bytes, or the code of the failure.
    ///
    /// # Errors
    /// The invariant that it breaks.
    pub fn read(&mut self, digest: [u8; 32], found: Result<&[u8], &str>) -> Result<(), Broken> {
        self.judged(|it| it.artifacts.read(digest, found))
    }

    /// An artifact was collected.
    ///
    /// # Errors
    /// The invariant that it breaks.
    pub fn collected(&mut self, digest: [u8; 32]) -> Result<(), Broken> {
        self.mark("collected");
        self.judged(|it| it.artifacts.collected(digest))
    }

    /// The artifact directory after a reopening: names and bytes.
    ///
    /// # Errors
    /// The invariant that it breaks.
    pub fn files(&mut self, durable: &[(String, Vec<u8>)]) -> Result<(), Broken> {
        self.judged(|it| it.artifacts.files(durable, it.is_damaged))
    }

    /// This artifact was damaged on purpose: from now on it may be unreadable, though never received as good.
    pub fn damaged_material(&mut self, digest: [u8; 32]) {
        self.artifacts.damaged(digest);
    }

    /// What was damaged is as it was before.
    pub fn mended_material(&mut self, digest: [u8; 32]) {
        self.artifacts.mended(digest);
    }

    /// The store was damaged on purpose: from now on loss is allowed where it was detected.
    pub fn damaged(&mut self) {
        self.is_damaged = true;
    }

    /// The damage was detected.
    pub fn detected(&mut self) {
        self.is_detected = true;
        self.mark("damage-told");
    }

    /// The healed end.
    ///
    /// # Errors
    /// The invariant that it breaks.
    pub fn rest(&mut self) -> Result<(), Broken> {
        self.judged(|it| {
            if it.log.batch.is_some() || !it.log.doubt.is_empty() {
                let what = "appends are in doubt at rest";
                return Err(Broken::new(crate::invariant::Invariant::ComesToRest, what));
            }
            it.state
                .effects
                .rest(it.state.accounts.reserved(), &it.world)
        })
    }

    /// An admission of so much was refused for its budget.
    ///
    /// # Errors
    /// The run could have gone on, and what refuses it for no reason does not let it come to its end.
    pub fn over_budget(&mut self, amount: Dec) -> Result<(), Broken> {
        self.judged(|it| {
            let left = it.state.accounts.left();
            if amount > left {
                return Ok(());
            }
            let what = format!("{amount} was refused for the budget, of which {left} is left");
            Err(Broken::new(crate::invariant::Invariant::ComesToRest, what))
        })
    }

    /// Interesting states that were reached; each is one of [`MARKS`].
    pub fn seen(&self) -> &BTreeSet<&'static str> {
        &self.marks
    }

    fn mark(&mut self, mark: &'static str) {
        self.marks.insert(mark);
    }

    /// Judges, unless it is switched off; what the world broke meanwhile comes first.
    fn judged(
        &mut self,
        judge: impl FnOnce(&mut Self) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        if self.off {
            return Ok(());
        }
        match self.world.broken.take() {
            Some(broken) => Err(broken),
            None => judge(self),
        }
    }
}
