//! Driving runs from a terminal: at this process's own engine, or at the one that has the store.
//! Invariant: it decides nothing: people decide, the engine schedules, and what is shown was durable before.
//! Called by the verbs `code` and `resume`.

use std::path::Path;
use std::sync::Arc;

use aiws::error::Error;
use aiws::json::Value;
use praxis_engine::Shutdown;

use crate::answer::{Answer, View};
use crate::exit::Exit;
use crate::follow::{Asking, Followed, Left, follow};
use crate::office::Office;
use crate::render::{program, say};
use crate::request::Request;
use crate::seat::Seat;
use crate::signals::Signals;
use crate::socket::client::is_gone;
use crate::socket::server;
use crate::tell::Notify;

/// What became of the runs.
pub struct Outcome {
    /// Their names, in the order given.
    pub runs: Vec<String>,
    /// What there is to say beside them: branches that were made, runs that were left out.
    pub beside: Option<Answer>,
    /// How the program ends, whatever the runs' own standings.
    pub exit: Exit,
    /// What went wrong beside the runs themselves.
    pub error: Option<Error>,
}

/// Sends the request that makes runs go on, and follows them. Where the engine of another process goes away
/// meanwhile, this one takes over.
///
/// # Errors
///
/// What the request is refused with; whatever fails after the runs have begun is part of the outcome.
pub async fn drive(
    store: &Path,
    request: Request,
    again: Request,
    asking: &Asking,
) -> Result<Outcome, Error> {
    let mut signals = Signals::new()?;
    let (mut request, mut begun) = (request, false);
    loop {
        let seat = Seat::take(store).await?;
        let drive = Drive {
            seat: &seat,
            asking,
            begun: &mut begun,
        };
        match drive.on(request.clone(), &mut signals).await {
            Err(error) if is_gone(&error) => {
                say(&format!(
                    "the engine that had the store ended; this terminal goes on with its own runs, {} list has all of them",
                    program()
                ));
                if begun {
                    request = again.clone();
                }
            }
            Err(error) if begun => {
                return Ok(Outcome {
                    runs: Vec::new(),
                    beside: None,
                    exit: Exit::after_start(error.code()),
                    error: Some(error),
                });
            }
            done => return done,
        }
    }
}

struct Drive<'a> {
    seat: &'a Seat,
    asking: &'a Asking,
    /// Whether the request was answered, so that runs have begun.
    begun: &'a mut bool,
}

impl Drive<'_> {
    async fn on(self, request: Request, signals: &mut Signals) -> Result<Outcome, Error> {
        match self.seat {
            Seat::Own(office) => {
                let serving = server::serve(office);
                if let Err(error) = &serving {
                    say(&format!(
                        "praxis: {error}; no other terminal can join this engine"
                    ));
                }
                let office = Arc::clone(office);
                let notify = self.asking.notify.as_deref();
                let notify = notify.map(|line| Notify::start(&office, line));
                let outcome = self.follow(request, signals).await;
                let in_flight = outcome.as_ref().ok().and_then(|(_, left)| left.as_ref());
                let closed = match in_flight.map(|followed| &followed.left) {
                    Some(Left::Signal) => {
                        let what = in_flight.and_then(|followed| followed.in_flight.clone());
                        leave(&office, what.as_deref(), signals, serving.ok(), notify).await
                    }
                    _ => {
                        let how = stay_for_others(&office, signals).await;
                        if how == Shutdown::Drain {
                            office.drain().await;
                        }
                        drop(serving);
                        told(notify).await;
                        office.close(how).await
                    }
                };
                let (mut outcome, _) = outcome?;
                if let Err(error) = closed {
                    outcome.exit = outcome.exit.worse(Exit::after_start(error.code()));
                    outcome.error = outcome.error.or(Some(error));
                }
                Ok(outcome)
            }
            Seat::Guest(_) => {
                if self.asking.notify.is_some() {
                    say(&format!(
                        "--notify is for the process that has the store; here, {} outbox --follow --consumer NAME --exec CMD does it",
                        program()
                    ));
                }
                let line = self.seat.line().await?;
                say(&format!(
                    "joined the engine of process {}, which has this store",
                    line.process
                ));
                let (outcome, left) = self.follow(request, signals).await?;
                if matches!(left.map(|followed| followed.left), Some(Left::Signal)) {
                    for run in &outcome.runs {
                        say(&format!(
                            "run {run} goes on in the engine of process {}: {praxis} attach {run} follows it, {praxis} pause {run} and {praxis} cancel {run} stop it",
                            line.process,
                            praxis = program()
                        ));
                    }
                }
                Ok(outcome)
            }
        }
    }

    /// Sends the request and follows the runs that it names.
    async fn follow(
        self,
        request: Request,
        signals: &mut Signals,
    ) -> Result<(Outcome, Option<Followed>), Error> {
        let starts = matches!(request, Request::Start { .. });
        let answer = self.seat.line().await?.ask(request, View::PROGRAM).await?;
        *self.begun = true;
        let runs = runs_of(&answer.value);
        let mut outcome = Outcome {
            runs,
            exit: answer.exit,
            beside: (!starts).then_some(answer),
            error: None,
        };
        if outcome.runs.is_empty() {
            return Ok((outcome, None));
        }
        match follow(self.seat, &outcome.runs, self.asking, signals).await {
            Ok(mut followed) => {
                outcome.error = followed.error.take();
                if let Some(error) = &outcome.error {
                    outcome.exit = outcome.exit.worse(Exit::after_start(error.code()));
                }
                Ok((outcome, Some(followed)))
            }
            Err(error) if is_gone(&error) => Err(error),
            Err(error) => {
                outcome.exit = outcome.exit.worse(Exit::after_start(error.code()));
                outcome.error = Some(error);
                Ok((outcome, None))
            }
        }
    }
}

/// The runs that an answer names.
fn runs_of(value: &Value) -> Vec<String> {
    if let Some(run) = value.get("run").and_then(Value::as_str) {
        return vec![run.to_owned()];
    }
    let runs = value.get("runs").and_then(Value::as_array);
    let names = runs.unwrap_or_default().iter().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

/// Serves on while other terminals follow runs that go on here; a signal hands those over as they are.
async fn stay_for_others(office: &Office, signals: &mut Signals) -> Shutdown {
    let mut said = false;
    loop {
        let followed = office.followed_by_others();
        if followed.is_empty() {
            return Shutdown::Drain;
        }
        if !said {
            say(&format!(
                "this process has the store for other terminals that follow {}; Ctrl-C hands it over to them",
                followed.join(", ")
            ));
            said = true;
        }
        tokio::select! {
            () = signals.next() => return Shutdown::Now,
            () = tokio::time::sleep(std::time::Duration::from_millis(500)) => {}
        }
    }
}

/// Lets what is in flight finish; a second signal leaves it to its shim.
async fn leave(
    office: &Office,
    in_flight: Option<&str>,
    signals: &mut Signals,
    serving: Option<server::Serving>,
    notify: Option<Notify>,
) -> Result<(), Error> {
    say(&match in_flight {
        Some(what) => format!(
            "stopping: {what} that runs now may finish; Ctrl-C again leaves it to go on by itself, and {} resume goes on",
            program()
        ),
        None => format!("stopping: nothing runs now; {} resume goes on", program()),
    });
    office.session.coding.stop();
    let drained = tokio::select! {
        () = office.drain() => Shutdown::Drain,
        () = signals.again() => Shutdown::Now,
    };
    // From here on nobody new is served; the next engine makes its own socket.
    drop(serving);
    if drained == Shutdown::Drain {
        told(notify).await;
    }
    office.close(drained).await
}

/// Lets the command of `--notify` hear the rest.
async fn told(notify: Option<Notify>) {
    if let Some(notify) = notify {
        notify.finish().await;
    }
}
