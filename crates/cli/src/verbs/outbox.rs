//! `praxis outbox`: what people want to be told, for a consumer that takes it line by line or call by call.
//! Invariant: acknowledged only once it was written, or once the command ended with 0; what was not comes again.
//! Called by `verbs::run`.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use aiws::error::{Code, Error};
use aiws::json::Value;

use super::{Call, block_on};
use crate::answer::{Answer, View};
use crate::args::Outbox as Args;
use crate::exit::Exit;
use crate::limits::{OUTBOX_LOOK_MS, STORE_LOOK_MS, STORE_WAIT_MS};
use crate::office::{blocking, outbox};
use crate::render::say;
use crate::request::Request;
use crate::signals::Signals;
use crate::socket::client::{Client, is_gone};
use crate::store::Reader;
use crate::tell::{Hand, Told, backoff};

/// Runs it.
///
/// # Errors
///
/// `USAGE` for a name that no consumer has; `EXPORT_FAILED` where the command fails and nothing is followed; a store
/// code.
pub fn run(call: &Call, args: &Args) -> Result<Exit, Error> {
    if outbox::consumer(&args.consumer)?.as_str() == outbox::NOTIFY {
        let message = "--consumer: expected a name of your own, found notify, which is --notify's";
        return Err(Error::new(Code::Usage, message));
    }
    block_on(async {
        let mut signals = Signals::new()?;
        let told = args.exec.as_deref().map(Told::here);
        let mut hand = Hand::default();
        tokio::select! {
            done = tell(&call.store, args, told, &mut hand) => return done,
            () = signals.next() => {}
        }
        // What was taken is acknowledged, anything else comes again.
        if hand.is_fresh() {
            let request = hand.request(&args.consumer, false);
            tokio::select! {
                asked = ask(&call.store, &request) => drop(asked?),
                () = signals.again() => {}
            }
        }
        Ok(Exit::Done)
    })
}

async fn tell(
    store: &Path,
    args: &Args,
    told: Option<Told>,
    hand: &mut Hand,
) -> Result<Exit, Error> {
    let mut failures = 0;
    loop {
        let (answer, live) = ask(store, &hand.request(&args.consumer, args.follow)).await?;
        let notices = hand.take(&answer);
        if notices.is_empty() {
            if !args.follow {
                return Ok(Exit::Done);
            }
            if !live {
                tokio::time::sleep(Duration::from_millis(OUTBOX_LOOK_MS)).await;
            }
            continue;
        }
        let Some(told) = &told else {
            for notice in &notices {
                match write(notice) {
                    Ok(()) => hand.told(notice),
                    // Whoever read is gone; what was not written comes again.
                    Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                        let _ = ask(store, &hand.request(&args.consumer, false)).await;
                        return Ok(Exit::Done);
                    }
                    Err(error) => {
                        let message = format!("the standard output cannot be written: {error}");
                        return Err(Error::new(Code::ExportFailed, message));
                    }
                }
            }
            continue;
        };
        let Some(notice) = notices.first() else {
            continue;
        };
        match told.hand(notice).await {
            Ok(()) => {
                failures = 0;
                hand.told(notice);
            }
            Err(error) if !args.follow => return Err(error),
            Err(error) => {
                failures += 1;
                if failures == 1 {
                    say(&format!(
                        "praxis: --exec: {}; it is called again",
                        error.message
                    ));
                }
                tokio::time::sleep(backoff(failures)).await;
            }
        }
    }
}

/// Writes one line, and returns once it is out of this process.
fn write(notice: &Value) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{notice}")?;
    out.flush()
}

/// Asks the engine that has the store, or looks into it while there is none; whether an engine answered.
async fn ask(store: &Path, request: &Request) -> Result<(Answer, bool), Error> {
    let patience = Instant::now() + Duration::from_millis(STORE_WAIT_MS);
    loop {
        if let Some(mut client) = Client::connect(store).await? {
            match client.ask(request.clone(), View::PROGRAM).await {
                // The next one is asked the same; what it says is acknowledged tells how far this one came.
                Err(error) if is_gone(&error) => {
                    tokio::time::sleep(Duration::from_millis(STORE_LOOK_MS)).await;
                    continue;
                }
                answer => return Ok((answer?, true)),
            }
        }
        match alone(store, request).await {
            Err(error) if error.code() == Code::StoreLocked && Instant::now() < patience => {
                tokio::time::sleep(Duration::from_millis(STORE_LOOK_MS)).await;
            }
            answer => return Ok((answer?, false)),
        }
    }
}

/// Looks into a store that no engine has; it is opened for writing only where there is something to acknowledge.
async fn alone(store: &Path, request: &Request) -> Result<Answer, Error> {
    let (store, request) = (store.to_owned(), request.clone());
    blocking(move || {
        let Request::Outbox {
            consumer,
            acknowledge,
            in_hand,
            ..
        } = request
        else {
            return Err(Error::new(Code::Usage, "expected a request for the outbox"));
        };
        let name = outbox::consumer(&consumer)?;
        let reader = match acknowledge {
            Some(_) => Reader::open_for_acknowledging(&store)?,
            None => Reader::open(&store)?,
        };
        let in_hand = in_hand.iter().map(|told| told.get()).collect();
        let acknowledge = acknowledge.map(|upto| upto.get());
        // An agent that acknowledges keeps a person from being told.
        let person = acknowledge.map_or(Ok(()), |_| reader.require_person());
        let found = person.and_then(|()| outbox::taken(&reader, &name, acknowledge, &in_hand));
        let cursor = reader.journal.cursor(&name);
        reader.close()?;
        Ok(outbox::answer(&found?, cursor, View::PROGRAM))
    })
    .await
}
