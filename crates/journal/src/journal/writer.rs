//! The writer's loop: drain what waits, commit it as one, publish, reply; the flusher beside it writes the index.
//!
//! Invariant: messages take effect in the order in which they came; the index is written by one thread at a time.
//! Started by the journal, ended by closing its queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use aiws::digest::Digest;
use aiws::id::ConsumerId;
use praxis_sync::published::Published;
use praxis_sync::queue::{Drain, Wait};

use super::{Message, Reply};
use crate::append::{Append, AppendResult};
use crate::error::StoreError;
use crate::ledger::{Clock, FlushJob, Ledger, Options};
use crate::view::View;

type Done = (FlushJob, Result<(), StoreError>);

/// The writer's thread.
pub(super) struct Writer {
    ledger: Ledger,
    published: Arc<Published<View>>,
    clock: Arc<dyn Clock>,
    batch_max: usize,
    flush_interval: Duration,
    last_flush: Instant,
    flusher: Flusher,
    /// The replies of the appends that are being committed; kept over a panic, so that they come after the recovery.
    owed: Vec<Owed>,
}

/// The thread that writes the index, one job at a time.
struct Flusher {
    jobs: Option<SyncSender<FlushJob>>,
    done: Receiver<Done>,
    thread: Option<JoinHandle<()>>,
    busy: bool,
}

impl Writer {
    pub fn new(
        ledger: Ledger,
        published: Arc<Published<View>>,
        options: &Options,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            ledger,
            published,
            clock: Arc::clone(&options.clock),
            batch_max: options.batch_max,
            flush_interval: Duration::from_millis(options.flush_interval_ms),
            last_flush: Instant::now(),
            flusher: Flusher::start()?,
            owed: Vec::new(),
        })
    }

    /// Serves until the queue is closed and empty, then writes the index and closes the ledger.
    pub fn run(mut self, mut drain: Drain<Message>) -> Result<(), StoreError> {
        let mut messages = Vec::new();
        loop {
            let waited =
                drain.next_batch_timeout(self.batch_max, &mut messages, self.flush_interval);
            self.guarded(|writer| writer.take_flushed(false));
            messages.reverse();
            // Each round takes at least one message, also when it ends in a panic.
            while !messages.is_empty() {
                self.guarded(|writer| writer.serve(&mut messages));
            }
            self.guarded(Self::flush_if_due);
            if waited == Wait::Closed {
                break;
            }
        }
        self.guarded(|writer| writer.take_flushed(true));
        self.flusher.stop();
        self.ledger.close()
    }

    /// Does some work; after a panic in it, outside the ledger's own commits, the log is opened again and folded, as
    /// after a storage error (T-54). Only then the replies that are still owed are given: whoever is told that its
    /// append is in doubt and looks for it sees what the recovery saw.
    fn guarded(&mut self, work: impl FnOnce(&mut Self)) {
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_ok() {
            return;
        }
        tracing::error!("the journal's writer panicked; opening the log again");
        let recovered = catch_unwind(AssertUnwindSafe(|| {
            self.take_flushed(true);
            self.ledger.recover();
        }));
        if recovered.is_err() {
            self.ledger.give_up();
        }
        self.publish();
        self.owed.clear();
    }

    /// Serves messages, of which the last comes first. Appends in a row are one commit; what stands between them keeps
    /// its place.
    fn serve(&mut self, messages: &mut Vec<Message>) {
        let mut appends = Vec::new();
        while let Some(message) = messages.pop() {
            let other = match message {
                Message::Append(append, reply) => {
                    self.owed.push(Owed::new(&append, reply));
                    appends.push(append);
                    continue;
                }
                other => other,
            };
            self.commit(&mut appends);
            match other {
                Message::Append(..) => {}
                Message::Release(stream) => {
                    self.ledger.release_owner(&stream);
                    self.publish();
                }
                Message::Acknowledge(consumer, sequence, answer) => {
                    self.acknowledge(&consumer, sequence, &answer)
                }
                Message::Flush(answer) => {
                    self.take_flushed(true);
                    let flushed = self.ledger.flush_index();
                    self.publish();
                    drop(answer.send(flushed));
                }
            }
        }
        self.commit(&mut appends);
    }

    fn commit(&mut self, appends: &mut Vec<Append>) {
        if appends.is_empty() {
            return;
        }
        let now_ms = self.clock.now_ms();
        self.ledger.clock_stepped(self.clock.steps());
        let answers = self.ledger.commit(appends, now_ms);
        self.publish();
        appends.clear();
        for (reply, answer) in self.owed.drain(..).zip(answers) {
            reply.answer(answer);
        }
    }

    fn acknowledge(
        &mut self,
        consumer: &ConsumerId,
        sequence: u64,
        answer: &mpsc::Sender<Result<(), StoreError>>,
    ) {
        // The index takes one write at a time, so the flusher's has to end first.
        self.take_flushed(true);
        let acknowledged = self.ledger.acknowledge(consumer, sequence);
        self.publish();
        drop(answer.send(acknowledged));
    }

    fn publish(&self) {
        self.published.store(self.ledger.view());
    }

    fn flush_if_due(&mut self) {
        if self.flusher.busy || self.last_flush.elapsed() < self.flush_interval {
            return;
        }
        if let Some(job) = self.ledger.begin_flush() {
            self.last_flush = Instant::now();
            if let Err(unsent) = self.flusher.begin(job) {
                let (job, result) = *unsent;
                self.end_flush(job, result);
            }
        }
    }

    fn take_flushed(&mut self, wait: bool) {
        match self.flusher.end(wait) {
            Ended::Nothing => return,
            Ended::Done(done) => {
                let (job, result) = *done;
                self.end_flush(job, result);
            }
            Ended::Died => {
                tracing::error!("the journal's flusher ended by itself; starting another");
                self.ledger.flush_lost();
                match Flusher::start() {
                    Ok(flusher) => self.flusher = flusher,
                    Err(error) => tracing::error!(%error, "there is no flusher"),
                }
            }
        }
        self.publish();
    }

    fn end_flush(&mut self, job: FlushJob, result: Result<(), StoreError>) {
        if let Err(error) = self.ledger.end_flush(job, result) {
            tracing::error!(%error, "the index cannot be written");
        }
    }
}

/// What became of the flusher's job.
enum Ended {
    /// There is none, or it is still being done.
    Nothing,
    Done(Box<Done>),
    /// The thread is gone, and the job with it.
    Died,
}

/// A reply that is owed: dropped without an answer, by a panic of the writer, it says that the append is in doubt.
struct Owed {
    hash: Digest,
    reply: Option<Reply>,
}

impl Owed {
    fn new(append: &Append, reply: Reply) -> Self {
        let first = append.sealed.first();
        Self {
            hash: first.map_or(Digest::ZERO, |sealed| sealed.hash),
            reply: Some(reply),
        }
    }

    fn answer(mut self, answer: AppendResult) {
        self.give(answer);
    }

    fn give(&mut self, answer: AppendResult) {
        let Some(reply) = self.reply.take() else {
            return;
        };
        // A reply is the caller's code: its panic must not take the writer with it.
        if catch_unwind(AssertUnwindSafe(|| reply(answer))).is_err() {
            tracing::error!("a reply to an append panicked");
        }
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        let what = "the journal's writer panicked before it answered".to_owned();
        let hash = self.hash;
        self.give(Err(StoreError::InDoubt { hash, what }.into()));
    }
}

impl Flusher {
    fn start() -> Result<Self, StoreError> {
        let (jobs, inbox) = sync_channel::<FlushJob>(1);
        let (outbox, done) = sync_channel::<Done>(1);
        let run = move || {
            for job in inbox {
                let result = job.write();
                if outbox.send((job, result)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new()
            .name("praxis-flusher".to_owned())
            .spawn(run);
        let thread =
            thread.map_err(|cause| StoreError::io("start the journal's flusher", &cause))?;
        Ok(Self {
            jobs: Some(jobs),
            done,
            thread: Some(thread),
            busy: false,
        })
    }

    fn begin(&mut self, job: FlushJob) -> Result<(), Box<Done>> {
        let Some(jobs) = &self.jobs else {
            return Err(Box::new((job, Err(StoreError::Closed))));
        };
        jobs.send(job)
            .map_err(|unsent| Box::new((unsent.0, Err(StoreError::Closed))))?;
        self.busy = true;
        Ok(())
    }

    fn end(&mut self, wait: bool) -> Ended {
        if !self.busy {
            return Ended::Nothing;
        }
        let done = match wait {
            true => self.done.recv().ok(),
            false => match self.done.try_recv() {
                Ok(done) => Some(done),
                Err(TryRecvError::Empty) => return Ended::Nothing,
                Err(TryRecvError::Disconnected) => None,
            },
        };
        self.busy = false;
        done.map_or(Ended::Died, |done| Ended::Done(Box::new(done)))
    }

    fn stop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
