//! The engine's side of the socket.
//! Invariant: one request at a time on a connection, bounded connections; a request that changes something is done even
//! when whoever asked is gone. Started by the process that has the engine.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use aiws::error::{Code, Error};
use tokio::io::{AsyncBufRead, AsyncWrite, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;

use super::line::{self, Asked, Said};
use super::place;
use crate::answer::Answer;
use crate::human::Caller;
use crate::limits::CONNECTIONS;
use crate::office::{Office, Peer};

/// How many items may wait for a slow reader.
const ITEMS: usize = 16;

/// A socket that is served for as long as this value lives.
pub struct Serving {
    path: std::path::PathBuf,
    accepting: AbortHandle,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.accepting.abort();
        // One that cannot be removed is found dead by the next engine.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Serves the store's socket.
///
/// # Errors
///
/// `STORE_IO` where no socket can be made there.
pub fn serve(office: &Arc<Office>) -> Result<Serving, Error> {
    let path = place::claim(office.session.path())?;
    let failed = |error: std::io::Error| {
        Error::new(
            Code::StoreIo,
            format!("no socket can be made at {}: {error}", path.display()),
        )
    };
    let listener = bind(&path).map_err(failed)?;
    let accepting = tokio::spawn(accept(Arc::clone(office), listener)).abort_handle();
    Ok(Serving { path, accepting })
}

/// Binds under a name that nobody looks for, so that the socket is private before anybody can reach it.
fn bind(path: &Path) -> std::io::Result<UnixListener> {
    let unseen = path.with_extension("new");
    match std::fs::remove_file(&unseen) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&unseen)?;
    std::fs::set_permissions(&unseen, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&unseen, path)?;
    Ok(listener)
}

async fn accept(office: Arc<Office>, listener: UnixListener) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
                    refuse(&stream);
                    continue;
                };
                let office = Arc::clone(&office);
                tokio::spawn(async move {
                    connection(&office, stream).await;
                    drop(permit);
                });
            }
            // Out of descriptors for a moment: the next turn may have some.
            Err(error) => {
                tracing::warn!(%error, "a connection was not taken");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

/// Says that there is no room, rather than have somebody wait for a greeting that nobody knows when it comes.
fn refuse(stream: &UnixStream) {
    let message = format!(
        "expected at most {CONNECTIONS} connections to this engine, found that all are taken; close one, or ask again"
    );
    let mut line = line::full(&Error::new(Code::Busy, message)).to_string();
    line.push('\n');
    // A fresh socket has room for a line; who does not read it sees the end.
    let _ = stream.try_write(line.as_bytes());
}

async fn connection(office: &Arc<Office>, stream: UnixStream) {
    // Pinned before a byte is read: whoever ends afterwards is found out by the pin.
    let peer = Peer::Socket(Caller::of_peer(&stream));
    let (read, write) = stream.into_split();
    converse(office, peer, BufReader::new(read), write).await;
}

/// Speaks with one client until it leaves.
pub async fn converse(
    office: &Arc<Office>,
    peer: Peer,
    mut read: impl AsyncBufRead + Unpin,
    mut write: impl AsyncWrite + Unpin,
) {
    let store_id = office.session.host.journal().store_id().to_string();
    if line::write(&mut write, &line::hello(&store_id))
        .await
        .is_err()
    {
        return;
    }
    let peer = Arc::new(peer);
    loop {
        let asked = match line::read_request(&mut read).await {
            Ok(Some(line)) => Asked::parse(&line),
            Ok(None) => return,
            Err(error) => {
                // What follows an overlong line cannot be told from its rest.
                let _ = line::write(&mut write, &Said::Error(error).to_value(0)).await;
                return;
            }
        };
        let said = match asked {
            Ok(asked) => one(office, &peer, asked, &mut read, &mut write).await,
            Err((id, error)) => Some((id, Said::Error(error))),
        };
        let Some((id, said)) = said else { return };
        if line::write(&mut write, &said.to_value(id)).await.is_err() {
            return;
        }
    }
}

/// Answers one request, with its items on the way; none where the client is gone.
async fn one(
    office: &Arc<Office>,
    peer: &Arc<Peer>,
    asked: Asked,
    read: &mut (impl AsyncBufRead + Unpin),
    write: &mut (impl AsyncWrite + Unpin),
) -> Option<(u64, Said)> {
    let (items, mut next) = mpsc::channel::<Answer>(ITEMS);
    let (office, peer, id) = (Arc::clone(office), Arc::clone(peer), asked.id);
    // A task of its own: what was begun is done, whoever still listens.
    let mut work = tokio::spawn(async move {
        let answer = office.answer(asked.request, asked.view, &peer, &items);
        match asked.program {
            Some(program) => crate::render::typed_as(program.into(), answer).await,
            None => answer.await,
        }
    });
    let mut early = false;
    loop {
        tokio::select! {
            biased;
            item = next.recv() => match item {
                Some(item) => line::write(write, &Said::Item(item).to_value(id)).await.ok()?,
                None => {
                    let done = (&mut work).await;
                    return Some((id, answered(done)));
                }
            },
            left = left(read), if !early => match left {
                true => return None,
                // The next request waits in the buffer.
                false => early = true,
            },
        }
    }
}

fn answered(done: Result<Result<Answer, Error>, tokio::task::JoinError>) -> Said {
    match done {
        Ok(Ok(answer)) => Said::Answer(answer),
        Ok(Err(error)) => Said::Error(error),
        Err(_) => Said::Error(Error::new(
            Code::ActorLost,
            "the request stopped before it was done; look how things stand, and ask again",
        )),
    }
}

/// Whether the client closed its side.
async fn left(read: &mut (impl AsyncBufRead + Unpin)) -> bool {
    use tokio::io::AsyncBufReadExt;
    read.fill_buf().await.map_or(true, <[u8]>::is_empty)
}
