//! `praxis serve`: has the store open for other terminals, scripts and workers, until somebody stops it.
//! Invariant: nothing goes on that nobody asked for.
//! Called by `verbs::run`.

use aiws::error::{Code, Error};
use praxis_engine::Shutdown;

use super::{Call, block_on};
use crate::args::Serve as Args;
use crate::exit::Exit;
use crate::office::Peer;
use crate::render::{program, say};
use crate::seat::Seat;
use crate::signals::Signals;
use crate::socket::server;
use crate::store;

/// Runs it.
///
/// # Errors
///
/// `STORE_LOCKED` where another process has the store, and serves it already; a store code.
pub fn run(call: &Call, args: Args) -> Result<Exit, Error> {
    store::create_if_missing(&call.store)?;
    block_on(async {
        let mut signals = Signals::new()?;
        let office = match Seat::take(&call.store).await? {
            Seat::Own(office) => office,
            seat @ Seat::Guest(_) => {
                let process = seat.line().await?.process;
                let message = format!(
                    "expected a store that nobody serves, found that process {process} does; its socket is there for you, too"
                );
                return Err(Error::new(Code::StoreLocked, message));
            }
        };
        // Whoever has the store open says who is a person: that is none of an agent's.
        office.require_person(&Peer::Own).await?;
        let serving = server::serve(&office)?;
        say(&format!(
            "serving {}: {} list, or docs/SOCKET.md for programs; Ctrl-C stops",
            super::shown_path(&call.store),
            program()
        ));
        let _ = args;
        let trouble = tokio::select! {
            () = signals.next() => None,
            error = office.trouble() => Some(error),
        };
        say("stopping: what runs now may finish; Ctrl-C again leaves it to go on by itself");
        let how = tokio::select! {
            () = office.drain() => Shutdown::Drain,
            () = signals.again() => Shutdown::Now,
        };
        drop(serving);
        office.close(how).await?;
        match trouble {
            Some(error) => Err(error),
            None => Ok(Exit::Done),
        }
    })
}
