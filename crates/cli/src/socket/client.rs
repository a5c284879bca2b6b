//! A terminal's side of the socket, and of the same conversation within the engine's own process.
//! Invariant: an answer belongs to the request that was asked last; a connection that breaks says so.
//! Used by the verbs, by `follow`, and by whoever joins a running engine.

use std::path::Path;
use std::sync::Arc;

use aiws::error::{Code, Error};
use aiws::json::Value;
use tokio::io::{AsyncBufRead, AsyncWrite, BufReader};
use tokio::net::UnixStream;

use super::line::{self, Asked, PROTOCOL, Said};
use super::{place, server};
use crate::answer::{Answer, View};
use crate::limits::SOCKET_ANSWER_BYTES;
use crate::office::{Office, Peer};
use crate::request::Request;

/// How many bytes the conversation within a process holds.
const PIPE_BYTES: usize = 1 << 16;

/// A conversation with an engine.
pub struct Client {
    read: Box<dyn AsyncBufRead + Send + Unpin>,
    write: Box<dyn AsyncWrite + Send + Unpin>,
    next: u64,
    /// The process that has the engine.
    pub process: String,
}

/// That the engine took nothing more: what was asked was not done, and can be asked of the next one.
#[must_use]
pub fn is_closing(error: &Error) -> bool {
    is_gone(error) && error.details.get("connection").and_then(Value::as_str) == Some("closing")
}

/// That the engine went away in the middle.
#[must_use]
pub fn is_gone(error: &Error) -> bool {
    error.code() == Code::ActorLost && error.details.contains_key("connection")
}

fn gone() -> Error {
    Error::new(
        Code::ActorLost,
        "the engine that had the store went away before it answered; look how things stand, and ask again",
    )
    .with("connection", "closed")
}

impl Client {
    /// A conversation with the engine that has the store open; none where there is no such engine.
    ///
    /// # Errors
    ///
    /// `STORE_IO` where what answers is no engine of this protocol.
    pub async fn connect(store: &Path) -> Result<Option<Self>, Error> {
        let Some(path) = place::find(store) else {
            return Ok(None);
        };
        match UnixStream::connect(&path).await {
            Ok(stream) => {
                let (read, write) = stream.into_split();
                match Self::greet(Box::new(BufReader::new(read)), Box::new(write)).await {
                    // It died before it said a word: nobody serves this store.
                    Err(error) if is_gone(&error) => Ok(None),
                    greeted => greeted.map(Some),
                }
            }
            // Nobody listens: a dead engine's socket, or one that is closing.
            Err(_) => Ok(None),
        }
    }

    /// A conversation with an office of this process.
    ///
    /// # Errors
    ///
    /// None in practice.
    pub async fn within(office: &Arc<Office>) -> Result<Self, Error> {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let office = Arc::clone(office);
        tokio::spawn(async move {
            let (read, write) = tokio::io::split(theirs);
            server::converse(&office, Peer::Own, BufReader::new(read), write).await;
        });
        let (read, write) = tokio::io::split(ours);
        Self::greet(Box::new(BufReader::new(read)), Box::new(write)).await
    }

    async fn greet(
        mut read: Box<dyn AsyncBufRead + Send + Unpin>,
        write: Box<dyn AsyncWrite + Send + Unpin>,
    ) -> Result<Self, Error> {
        // One that dies right now resets the connection.
        let first = line::read_answer(&mut read).await.ok().flatten();
        let first = first.ok_or_else(gone)?;
        let hello = aiws::strict::parse(&first).unwrap_or(Value::Null);
        let said = |name: &str| hello.get(name).and_then(Value::as_str);
        if said("protocol") != Some(PROTOCOL) {
            let message = format!(
                "expected the store's engine to speak {PROTOCOL}, found {}; it is another version of praxis, use that one or end it",
                crate::render::escape::line(said("protocol").unwrap_or("something else"))
            );
            return Err(Error::new(Code::StoreLocked, message));
        }
        if let Some(error) = hello.get("error").and_then(line::refusal) {
            return Err(error);
        }
        let process = said("process").unwrap_or_default().to_owned();
        Ok(Self {
            read,
            write,
            next: 1,
            process,
        })
    }

    /// Asks, and waits for the answer; what is said on the way is left out.
    ///
    /// # Errors
    ///
    /// The refusal; `ACTOR_LOST` where the engine went away.
    pub async fn ask(&mut self, request: Request, view: View) -> Result<Answer, Error> {
        let id = self.send(request, view).await?;
        loop {
            match self.hear(id).await? {
                Said::Item(_) => {}
                Said::Answer(answer) => return Ok(answer),
                Said::Error(error) => return Err(error),
            }
        }
    }

    /// Sends a request whose items matter, and returns its number for [`hear`](Self::hear).
    ///
    /// # Errors
    ///
    /// `ACTOR_LOST` where the engine went away.
    pub async fn send(&mut self, request: Request, view: View) -> Result<u64, Error> {
        let id = self.next;
        self.next += 1;
        let line = Asked {
            id,
            request,
            view,
            program: Some(crate::render::program().to_string()),
        }
        .to_value()?;
        line::write(&mut self.write, &line)
            .await
            .map_err(|_| gone())?;
        Ok(id)
    }

    /// The next line for a request.
    ///
    /// # Errors
    ///
    /// `ACTOR_LOST` where the engine went away.
    pub async fn hear(&mut self, id: u64) -> Result<Said, Error> {
        loop {
            let line = line::read_answer(&mut self.read).await;
            let line = line.ok().flatten().ok_or_else(gone)?;
            let value = aiws::strict::parse_with_limit(&line, SOCKET_ANSWER_BYTES as usize)
                .map_err(|_| gone())?;
            if let Some(said) = Said::from_value(&value, id) {
                return Ok(said);
            }
        }
    }
}
