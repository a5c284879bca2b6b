//! `praxis serve`: has the store open for other terminals, scripts and workers, until somebody stops it.
//! Invariant: nothing goes on that nobody asked for.
//! Called by `verbs::run`.

use std::sync::Arc;

use aiws::error::{Code, Error};
use aiws::json::Value;
use praxis_engine::Shutdown;

use super::resume::{errors, set_here};
use super::{Call, block_on, say_error};
use crate::answer::View;
use crate::args::Serve as Args;
use crate::exit::Exit;
use crate::office::Office;
use crate::office::Peer;
use crate::render::{program, say};
use crate::request::Request;
use crate::seat::Seat;
use crate::signals::Signals;
use crate::socket::client::Client;
use crate::socket::server;
use crate::store;
use crate::tell::Notify;

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
        if args.resume {
            resume(&office).await?;
        }
        let notify = args.notify.as_deref();
        let notify = notify.map(|line| Notify::start(&office, line));
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
        if let Some(notify) = notify.filter(|_| how == Shutdown::Drain) {
            notify.finish().await;
        }
        office.close(how).await?;
        match trouble {
            Some(error) => Err(error),
            None => Ok(Exit::Done),
        }
    })
}

/// Lets every live run go on, with the variables of this process; what cannot go on is said, and keeps nothing else.
async fn resume(office: &Arc<Office>) -> Result<(), Error> {
    let mut client = Client::within(office).await?;
    let live = client
        .ask(Request::Live { run: None }, View::PROGRAM)
        .await?;
    let request = Request::Resume {
        run: None,
        environment: set_here(&live.value),
    };
    let answer = client.ask(request, View::PROGRAM).await?;
    let runs = answer.value.get("runs").and_then(Value::as_array);
    for run in runs.unwrap_or_default().iter().filter_map(Value::as_str) {
        say(&format!(
            "run {run} goes on: {} attach {run} follows it",
            program()
        ));
    }
    for error in errors(Some(&answer), "skipped") {
        say(&format!("skipped: {}", error.message));
    }
    for error in errors(Some(&answer), "failures") {
        say_error(&error, false);
    }
    Ok(())
}
