//! A seat at a store: with the engine in this process, or at the socket of the process that has it.
//! Invariant: at most one engine has a store; whoever comes second joins it, and takes over where it goes away.
//! Taken by every verb that needs an open store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aiws::error::{Code, Error};
use tokio::sync::mpsc;

use crate::answer::{Answer, View};
use crate::limits::{STORE_LOOK_MS, STORE_WAIT_MS};
use crate::office::{Office, Peer, look, refuse_early};
use crate::request::Request;
use crate::socket::client::{Client, is_closing, is_gone};
use crate::store::Reader;

/// A seat.
pub enum Seat {
    /// The engine is in this process.
    Own(Arc<Office>),
    /// The engine is in another one, which serves this store.
    Guest(PathBuf),
}

impl Seat {
    /// Joins the engine that has the store, or opens one.
    ///
    /// # Errors
    ///
    /// A store code; `STORE_LOCKED` where another process has the store and serves nobody.
    pub async fn take(store: &Path) -> Result<Self, Error> {
        let mut patience = Patience::begin();
        loop {
            if Client::connect(store).await?.is_some() {
                return Ok(Self::Guest(store.to_owned()));
            }
            match Office::open(store).await {
                Ok(office) => return Ok(Self::Own(office)),
                Err(error) => patience.wait_after(error).await?,
            }
        }
    }

    /// A conversation with the engine.
    ///
    /// # Errors
    ///
    /// `ACTOR_LOST` where the engine went away.
    pub async fn line(&self) -> Result<Client, Error> {
        match self {
            Self::Own(office) => Client::within(office).await,
            Self::Guest(store) => Client::connect(store).await?.ok_or_else(|| {
                Error::new(Code::ActorLost, "the engine that had the store went away")
                    .with("connection", "closed")
            }),
        }
    }
}

/// Answers one request: at the engine that has the store, or with the store open for as long as that takes.
///
/// # Errors
///
/// Whatever the request is refused with.
pub async fn ask(store: &Path, request: Request, view: View) -> Result<Answer, Error> {
    let mut patience = Patience::begin();
    loop {
        if let Some(mut client) = Client::connect(store).await? {
            match client.ask(request.clone(), view).await {
                // What only looks is asked again; what changes something may have been done.
                Err(error) if is_closing(&error) || is_gone(&error) && request.only_looks() => {
                    patience.wait_for_the_next(error).await?;
                    continue;
                }
                answered => return answered,
            }
        }
        match alone(store, request.clone(), view).await {
            Err(error) => patience.wait_after(error).await?,
            answered => return answered,
        }
    }
}

/// Answers a request while nobody else has the store.
async fn alone(store: &Path, request: Request, view: View) -> Result<Answer, Error> {
    if request.only_looks() {
        let store = store.to_owned();
        return crate::office::blocking(move || {
            let reader = Reader::open(&store)?;
            let answer = look(&reader, &request, view);
            reader.close()?;
            answer
        })
        .await;
    }
    let (path, early) = (store.to_owned(), request.clone());
    crate::office::blocking(move || {
        let reader = Reader::open(&path)?;
        let refused = refuse_early(&reader, &early);
        reader.close()?;
        refused
    })
    .await?;
    let office = Office::open(store).await?;
    let (items, _) = mpsc::channel(1);
    let answer = office.answer(request, view, &Peer::Own, &items).await;
    office.close(praxis_engine::Shutdown::Drain).await?;
    answer
}

/// Waiting for a store that somebody has open for a moment.
struct Patience(Instant);

impl Patience {
    fn begin() -> Self {
        Self(Instant::now() + Duration::from_millis(STORE_WAIT_MS))
    }

    /// Waits a moment for the engine after the one that said this.
    async fn wait_for_the_next(&mut self, error: Error) -> Result<(), Error> {
        if Instant::now() > self.0 {
            return Err(error);
        }
        tokio::time::sleep(Duration::from_millis(STORE_LOOK_MS)).await;
        Ok(())
    }

    /// Waits a moment after a refusal that passes; any other is the caller's.
    async fn wait_after(&mut self, error: Error) -> Result<(), Error> {
        if error.code() != Code::StoreLocked || Instant::now() > self.0 {
            return Err(error);
        }
        tokio::time::sleep(Duration::from_millis(STORE_LOOK_MS)).await;
        Ok(())
    }
}
