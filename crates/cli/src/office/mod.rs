//! The open store's desk: it answers requests, whoever brings them, from this process or over the socket.
//! Invariant: what only looks is answered from the journal; what changes something is a command of the engine, in the
//! name of somebody of whom it was proven. Opened by the verbs that need an engine, served by `socket::server`.

mod branch;
mod control;
mod decide;
mod drive;
mod keeper;
mod look;
pub mod outbox;
mod person;
mod reconcile;
mod watch;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aiws::error::{Code, Error};
use praxis_engine::Shutdown;
use praxis_model::run::RunState;
use praxis_model::stream::Subject;
use tokio::sync::mpsc;

use crate::answer::{Answer, View};
use crate::human::Caller;
use crate::request::Request;
use crate::session::Session;
use crate::store::Reader;
use crate::verbs;

pub use drive::{environment_of, not_set};
pub use keeper::{Kept, Seen};
pub use look::{look, refuse_early};

/// Where answers on the way go; its other end is gone when nobody listens any more.
pub type Items = mpsc::Sender<Answer>;

/// Who brings a request.
pub enum Peer {
    /// This process itself.
    Own,
    /// Whoever is at the other end of the socket, pinned when it connected; why it could not be, where it could not.
    Socket(Result<Caller, Error>),
}

/// An open store with its engine.
pub struct Office {
    /// The engine's session.
    pub session: Arc<Session>,
    keeper: keeper::Keeper,
    closing: AtomicBool,
}

impl Office {
    /// Opens the engine on an existing store. No run goes on before somebody asks for it.
    ///
    /// # Errors
    ///
    /// A store code where the store refuses.
    pub async fn open(store: &Path) -> Result<Arc<Self>, Error> {
        let session = Arc::new(Session::open(store).await?);
        let keeper = keeper::Keeper::new(Arc::clone(&session));
        Ok(Arc::new(Self {
            session,
            keeper,
            closing: AtomicBool::new(false),
        }))
    }

    /// Answers a request. `items` gets what there is to say before the answer.
    ///
    /// # Errors
    ///
    /// Whatever the request is refused with; nothing was changed then.
    pub async fn answer(
        &self,
        request: Request,
        view: View,
        peer: &Peer,
        items: &Items,
    ) -> Result<Answer, Error> {
        if self.is_closing() {
            return Err(closing());
        }
        if request.only_looks() {
            let reader = self.reader();
            let looked = blocking(move || look(&reader, &request, view)).await;
            // What was read while the journal closed says nothing; the next engine is asked.
            return match looked {
                Err(_) if self.is_closing() => Err(closing()),
                looked => looked,
            };
        }
        match self.act(request, view, peer, items).await {
            // Whether it was done before the engine closed, the next one knows.
            Err(error) if error.code() == Code::ActorLost && self.is_closing() => {
                Err(error.with("connection", "closed"))
            }
            answered => answered,
        }
    }

    async fn act(
        &self,
        request: Request,
        view: View,
        peer: &Peer,
        items: &Items,
    ) -> Result<Answer, Error> {
        match request {
            Request::Decide(decide) => self.decide(decide, view, peer).await,
            Request::Recheck { hold, reason } => self.recheck(&hold, reason, view, peer).await,
            Request::Cancel { run, reason } => self.cancel(&run, reason, view, peer).await,
            Request::Pause {
                run,
                reason,
                branch,
                dry_run: _,
            } => {
                let branch = branch.as_deref();
                self.pause(&run, branch, reason, view, peer).await
            }
            Request::Continue { run, reason } => self.go_on(&run, reason, view, peer).await,
            Request::Reconcile {
                attempt,
                applied,
                way,
                evidence_hex,
                name,
            } => {
                let finding = reconcile::Finding {
                    attempt,
                    applied,
                    evidence: decide::hex(&evidence_hex)?,
                    way,
                    name,
                };
                self.reconcile(finding, view, peer).await
            }
            Request::Start { job, environment } => self.start(job, environment, view, peer).await,
            Request::Resume { run, environment } => {
                self.resume(run.as_deref(), environment, view, peer).await
            }
            Request::Clean {
                dry_run,
                older_than_days,
            } => {
                if !dry_run {
                    self.require_person(peer).await?;
                }
                let reader = self.reader();
                blocking(move || verbs::clean::answer(&reader, dry_run, older_than_days, view))
                    .await
            }
            Request::Watch { runs, lines } => self.watch(&runs, lines, view, peer, items).await,
            Request::Outbox {
                consumer,
                acknowledge,
                in_hand,
                wait,
            } => {
                let wanted = outbox::Wanted {
                    consumer,
                    acknowledge: acknowledge.map(|upto| upto.get()),
                    in_hand: in_hand.iter().map(|told| told.get()).collect(),
                    wait,
                };
                self.outbox(wanted, view, peer, items).await
            }
            Request::Apply { command, name } => {
                self.apply(&command, name.as_deref(), view, peer).await
            }
            Request::NextDelivery {
                worker,
                mission_id,
                run_id,
            } => {
                let subject = Subject::run(mission_id, run_id);
                self.next_delivery(&worker, &subject, view, items).await
            }
            Request::Work(work) => self.work(work, view).await,
            other => Err(Error::new(
                Code::Usage,
                format!("expected a request that this engine knows, found {other:?}"),
            )),
        }
    }

    /// A reader over the open journal.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::of_engine(
            self.session.path().to_owned(),
            self.session.host.journal().clone(),
            Arc::clone(&self.session.artifacts),
        )
        .driving(self.keeper.runs())
    }

    /// What made the engine stop by itself, once something did.
    pub async fn trouble(&self) -> Error {
        self.keeper.trouble().await
    }

    /// The runs that go on here and that somebody else still follows.
    #[must_use]
    pub fn followed_by_others(&self) -> Vec<String> {
        self.keeper.followed()
    }

    /// Starts nothing more, and waits until what runs has ended and is recorded.
    pub async fn drain(&self) {
        self.session.coding.stop();
        self.session.engine.drain().await;
    }

    /// Closes the engine.
    ///
    /// # Errors
    ///
    /// A store code where the store could not be closed cleanly.
    pub async fn close(&self, how: Shutdown) -> Result<(), Error> {
        self.closing.store(true, Ordering::SeqCst);
        self.session.coding.stop();
        self.session.close(how).await
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// The run that is meant, with its state.
    async fn meant(&self, named: &str) -> Result<(Subject, Arc<RunState>), Error> {
        let reader = self.reader();
        let named = named.to_owned();
        let subject = blocking(move || reader.find(Some(&named))).await?;
        let state = self.session.state(&subject).await?;
        Ok((subject, state))
    }
}

/// That this engine takes nothing more: nothing was changed, and the next engine can be asked at once.
fn closing() -> Error {
    Error::new(
        Code::ActorLost,
        "expected an open engine, found that it is closing; ask again",
    )
    .with("connection", "closing")
}

/// That whoever asked is gone.
fn gone() -> Error {
    Error::new(Code::ActorLost, "nobody listens any more")
}

/// Does what blocks where it may.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let program = crate::render::program();
    let work = move || crate::render::typed_as_blocking(program, work);
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| {
        Err(Error::new(
            Code::ActorLost,
            "the work stopped before it was done; ask again",
        ))
    })
}
