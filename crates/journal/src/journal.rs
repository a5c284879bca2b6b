//! Hop 4 of 5, the threads: one plain writer, one flusher, and a handle that anyone may clone.
//!
//! Invariant: one writer owns the ledger; the view is published before the replies of its commit; every accepted
//! append is answered exactly once. Called by the engine.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use aiws::digest::Digest;
use aiws::id::{ConsumerId, StoreId, StreamId};
use praxis_journal_format::Sealed;
use praxis_journal_format::tree::TreeHead;
use praxis_sync::published::Published;
use praxis_sync::queue::{Refused, Submitter, channel};

use crate::append::{Append, AppendError, AppendResult, RequestKey};
use crate::disk::FileDisk;
use crate::error::{Busy, StoreError};
use crate::ledger::{IndexCell, Ledger, Options, has_failed, lookup_request, outbox, read, sealed};
use crate::lock::{StoreLock, check_directory, make_directory};
use crate::log::Log;
use crate::rows::RequestRow;
use crate::verify::{Depth, VerifyReport};
use crate::view::View;

mod copy;
mod export;
mod writer;

pub use crate::ledger::copy::Copied;
use writer::Writer;

/// What the writer calls with the answer to an append. It runs on the writer's thread: keep it short.
pub type Reply = Box<dyn FnOnce(AppendResult) + Send>;

/// What the writer is asked for.
pub(crate) enum Message {
    Append(Append, Reply),
    Acknowledge(ConsumerId, u64, mpsc::Sender<Result<(), StoreError>>),
    Release(StreamId),
    Flush(mpsc::Sender<Result<(), StoreError>>),
}

/// An open store. Clones share it; the last one to go closes it.
#[derive(Clone, Debug)]
pub struct Journal {
    shared: Arc<Shared>,
}

struct Shared {
    submitter: Submitter<Message>,
    view: Arc<Published<View>>,
    log: Arc<Log>,
    index: Arc<IndexCell>,
    store: StoreId,
    writer: Mutex<Option<JoinHandle<Result<(), StoreError>>>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Journal")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl Journal {
    /// Makes an empty store at a path, which is created with mode 0700 unless it is an empty directory, and opens it.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] if something is there already, [`StoreError::Permissions`], [`StoreError::Locked`],
    /// or what the disk answered.
    pub fn create(path: &Path, options: &Options) -> Result<Self, StoreError> {
        make_directory(path)?;
        check_directory(path)?;
        let lock = StoreLock::exclusive(path, options.clock.now_ms())?;
        let disk = options
            .disk
            .clone()
            .unwrap_or_else(|| Arc::new(FileDisk::new(path)));
        let store_id = options.store_id.clone().map_or_else(random_id, Ok)?;
        let ledger = Ledger::create(disk, store_id, options).map_err(|error| at(path, error))?;
        Self::start(ledger, options, Some(lock))
    }

    /// Opens the store at a path. Look at [`View::read_only`]: a store whose log lost its tail, or is damaged after
    /// the index's cursor, is opened all the same, for reading.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::NotAStore`], [`StoreError::TooNew`], [`StoreError::Locked`] with the
    /// holder, [`StoreError::Permissions`] with the command that mends it, [`StoreError::Corrupt`], or what the disk
    /// answered. Nothing changes then.
    pub fn open(path: &Path, options: &Options) -> Result<Self, StoreError> {
        check_directory(path)?;
        let disk = options
            .disk
            .clone()
            .unwrap_or_else(|| Arc::new(FileDisk::new(path)));
        // A directory that is no store does not get a lock file.
        crate::store::read(&*disk).map_err(|error| at(path, error))?;
        let lock = match options.read_only {
            true => StoreLock::shared(path)?,
            false => Some(StoreLock::exclusive(path, options.clock.now_ms())?),
        };
        let ledger = Ledger::open(disk, options).map_err(|error| at(path, error))?;
        Self::start(ledger, options, lock)
    }

    fn start(
        ledger: Ledger,
        options: &Options,
        lock: Option<StoreLock>,
    ) -> Result<Self, StoreError> {
        let (submitter, drain) = channel(options.queue_appends);
        let view = Arc::new(Published::new(ledger.view()));
        let (log, index) = (Arc::clone(ledger.log()), Arc::clone(ledger.index()));
        let store = ledger.store_id().clone();
        let published = Arc::clone(&view);
        let options = options.clone();
        let run = move || {
            let _lock = lock;
            Writer::new(ledger, published, &options)?.run(drain)
        };
        let writer = thread::Builder::new()
            .name("praxis-journal".to_owned())
            .spawn(run);
        let writer =
            writer.map_err(|cause| StoreError::io("start the journal's writer", &cause))?;
        let shared = Shared {
            submitter,
            view,
            log,
            index,
            store,
            writer: Mutex::new(Some(writer)),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// The store's id.
    pub fn store_id(&self) -> &StoreId {
        &self.shared.store
    }

    /// The projections after the last commit. Whoever got the reply to an append finds it in here.
    pub fn view(&self) -> Arc<View> {
        self.shared.view.load()
    }

    /// The published views themselves, for those that wait for a newer one.
    pub fn views(&self) -> &Published<View> {
        &self.shared.view
    }

    /// Hands an append to the writer. The reply comes from the writer's thread, after the commit and after the view
    /// was published.
    ///
    /// # Errors
    /// [`Busy`]: the append was not taken and the reply will not be called.
    pub fn submit(&self, append: Append, reply: Reply) -> Result<(), Busy> {
        self.send(Message::Append(append, reply))
    }

    /// Hands in an append and waits for its answer.
    ///
    /// # Errors
    /// As the answer; [`StoreError::Closed`] or [`StoreError::Internal`] where no answer came.
    pub fn append_blocking(&self, append: Append) -> AppendResult {
        let (sender, answer) = mpsc::channel();
        let reply: Reply = Box::new(move |result| drop(sender.send(result)));
        self.submit(append, reply)
            .map_err(|busy| AppendError::Store(unsent(busy)))?;
        answer
            .recv()
            .unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    /// The first result of a request; none if it was never committed. Rows are kept for life.
    ///
    /// # Errors
    /// What the index answered.
    pub fn lookup_request(&self, key: &RequestKey) -> Result<Option<RequestRow>, StoreError> {
        let look = || lookup_request(&self.view(), &self.shared.index, key);
        look().or_else(|error| {
            if !has_failed(&self.shared.index) {
                return Err(error);
            }
            // Nobody who asks this first would ever append, which makes such an index anew as well.
            tracing::warn!(%error, "the disk failed under the index; making it anew");
            self.flush_index()?;
            look()
        })
    }

    /// The event at a sequence, checked against its hash; none past the end of the log.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the sequence, or what the disk answered.
    pub fn read(&self, sequence: u64) -> Result<Option<Sealed>, StoreError> {
        match sequence <= self.view().sequence() {
            true => read(&self.shared.log, sequence),
            false => Ok(None),
        }
    }

    /// All events of a stream, oldest first, each checked against its hash and against the one before it.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the place, or what the disk answered.
    pub fn stream(&self, stream: &StreamId) -> Result<Vec<Sealed>, StoreError> {
        let mut events = VecDeque::new();
        self.walk_back(stream, |_, sealed| {
            events.push_front(sealed);
            false
        })?;
        Ok(events.into())
    }

    /// The sequence of an event of a stream by its hash, looked for from the stream's head backwards: how an actor
    /// finds out about the one append that it had in flight.
    ///
    /// # Errors
    /// As [`Journal::stream`].
    pub fn find_event(&self, stream: &StreamId, hash: &Digest) -> Result<Option<u64>, StoreError> {
        let mut found = None;
        self.walk_back(stream, |sequence, sealed| {
            found = (sealed.hash == *hash).then_some(sequence);
            found.is_some()
        })?;
        Ok(found)
    }

    /// Calls `each` with every event from a sequence on, in log order, up to what is committed now; stops early when
    /// it answers false.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the sequence, or what the disk answered.
    pub fn scan(
        &self,
        from: u64,
        mut each: impl FnMut(u64, Sealed) -> bool,
    ) -> Result<(), StoreError> {
        outbox::scan(&self.shared.log, &self.view(), from, &mut each)
    }

    /// Up to `limit` events that a consumer of the outbox has not acknowledged, in log order. The event's hash is its
    /// stable id; it comes again until it is acknowledged, also after a restart (OUT-1, OUT-2). They are whole events: what
    /// leaves the host is [`Journal::notifications`].
    ///
    /// # Errors
    /// As [`Journal::scan`].
    pub fn pending(
        &self,
        consumer: &ConsumerId,
        limit: usize,
    ) -> Result<Vec<(u64, Sealed)>, StoreError> {
        outbox::pending(&self.shared.log, &self.view(), consumer, limit)
    }

    /// The last sequence that a consumer has acknowledged; 0 for none.
    pub fn cursor(&self, consumer: &ConsumerId) -> u64 {
        self.view().acknowledged(consumer)
    }

    /// Acknowledges everything up to a sequence, durably: only after the consumer has stored it (OUT-3). The cursor
    /// lives in the index; if that is lost, events come again under the same ids.
    ///
    /// # Errors
    /// [`StoreError::Internal`] for a sequence that the log does not have, [`StoreError::Closed`], or what the index
    /// answered.
    pub fn acknowledge(&self, consumer: &ConsumerId, sequence: u64) -> Result<(), StoreError> {
        self.ask(|answer| Message::Acknowledge(consumer.clone(), sequence, answer))
    }

    /// Lets go of a run on passivation, so that it is not recovered after an unclean end (T-16).
    ///
    /// # Errors
    /// [`Busy`]; the run then costs one needless recovery at worst.
    pub fn release_owner(&self, stream: &StreamId) -> Result<(), Busy> {
        self.send(Message::Release(stream.clone()))
    }

    /// Writes the index up to the log's end now.
    ///
    /// # Errors
    /// What the index answered.
    pub fn flush_index(&self) -> Result<(), StoreError> {
        self.ask(Message::Flush)
    }

    /// Checks every event and every projection from nothing, and every decision where the depth says so; compares the log
    /// with heads that were kept outside. See [`crate::verify`]. `progress` is called with the sequence that was reached and
    /// the last one.
    ///
    /// # Errors
    /// [`StoreError::Closed`]; damage is in the report.
    pub fn verify_against(
        &self,
        heads: &[TreeHead],
        depth: Depth,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<VerifyReport, StoreError> {
        crate::verify::run(
            &self.shared.log,
            &self.shared.index,
            &self.view(),
            depth,
            heads,
            progress,
        )
    }

    /// As [`Journal::verify_against`], of events and projections, with nothing to compare.
    ///
    /// # Errors
    /// As there.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport, StoreError> {
        self.verify_against(&[], Depth::Projections, progress)
    }

    /// As [`Journal::verify`], and every event is decided again from its recorded facts.
    ///
    /// # Errors
    /// As there.
    pub fn verify_deep(
        &self,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<VerifyReport, StoreError> {
        self.verify_against(&[], Depth::Decisions, progress)
    }

    /// Answers what was accepted, writes the index, lets the lock go, and waits for that. Other handles get
    /// [`StoreError::Closed`] from now on.
    ///
    /// # Errors
    /// What the index answered; the log is durable whatever happens here.
    pub fn close(&self) -> Result<(), StoreError> {
        self.shared.close()
    }

    fn walk_back(
        &self,
        stream: &StreamId,
        mut each: impl FnMut(u64, Sealed) -> bool,
    ) -> Result<(), StoreError> {
        let Some(row) = self.view().head(stream).copied() else {
            return Ok(());
        };
        let (mut sequence, mut expected) = (row.sequence, row.head);
        while sequence != 0 {
            let place = || {
                format!(
                    "sequence {sequence}, stream {stream}, revision {}",
                    expected.revision
                )
            };
            let damage = |what: &str| StoreError::Corrupt {
                place: place(),
                what: what.to_owned(),
            };
            let bytes = self
                .shared
                .log
                .frame(sequence)?
                .ok_or_else(|| damage("the event is missing"))?;
            let (sealed, hint) = sealed(sequence, &bytes)?;
            if sealed.event.stream != *stream || sealed.head() != expected {
                return Err(damage("the event does not link to the one after it"));
            }
            if hint.previous >= sequence || (hint.previous == 0) != (expected.revision.0 == 1) {
                return Err(damage(
                    "the frame does not say where the stream's previous event is",
                ));
            }
            expected.revision.0 -= 1;
            expected.hash = sealed.event.prev_hash;
            let next = hint.previous;
            if each(sequence, sealed) {
                return Ok(());
            }
            sequence = next;
        }
        Ok(())
    }

    fn send(&self, message: Message) -> Result<(), Busy> {
        self.shared
            .submitter
            .submit(message)
            .map_err(|refused| match refused {
                Refused::Full(_) => Busy::Full,
                Refused::Closed(_) => Busy::Closed,
            })
    }

    fn ask(
        &self,
        message: impl FnOnce(mpsc::Sender<Result<(), StoreError>>) -> Message,
    ) -> Result<(), StoreError> {
        let (sender, answer) = mpsc::channel();
        self.send(message(sender)).map_err(unsent)?;
        answer.recv().unwrap_or(Err(StoreError::Closed))
    }
}

impl Shared {
    fn close(&self) -> Result<(), StoreError> {
        self.submitter.close();
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match writer {
            // A reply that holds the last handle runs on the writer itself, which ends by itself.
            Some(writer) if writer.thread().id() == thread::current().id() => Ok(()),
            Some(writer) => writer.join().unwrap_or_else(|_| {
                Err(StoreError::Internal {
                    what: "the journal's writer panicked".to_owned(),
                })
            }),
            None => Ok(()),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!(%error, "the index was not written at the end; the next opening replays the log");
        }
    }
}

fn unsent(busy: Busy) -> StoreError {
    match busy {
        Busy::Closed => StoreError::Closed,
        Busy::Full => StoreError::Io {
            what: busy.to_string(),
        },
    }
}

fn at(path: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::NotAStore { what, .. } => StoreError::NotAStore {
            path: path.display().to_string(),
            what,
        },
        other => other,
    }
}

/// A store's id: 16 bytes of the system's randomness in hex.
fn random_id() -> Result<StoreId, StoreError> {
    let mut bytes = [0u8; 16];
    let read =
        File::open("/dev/urandom").and_then(|mut source: File| source.read_exact(&mut bytes));
    read.map_err(|cause: io::Error| StoreError::io("read /dev/urandom", &cause))?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    StoreId::new(text).map_err(|cause| StoreError::Internal {
        what: cause.to_string(),
    })
}
