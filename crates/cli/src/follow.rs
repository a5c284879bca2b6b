//! A terminal that follows runs: shows them, asks the person in front of it, and knows when to leave.
//! Invariant: it decides nothing by itself: a yes or no is typed, or was given in advance, for exactly what was shown.
//! Called by the verbs `code` and `resume`, with the engine in this process or in another.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aiws::error::{Code, Error};
use aiws::json::Value;

use crate::answer::{Answer, View};
use crate::prompt::{self, Patient, at_terminal};
use crate::render::live::Live;
use crate::render::{program, say};
use crate::request::{Decide, Given, Request};
use crate::seat::Seat;
use crate::signals::Signals;
use crate::socket::client::Client;
use crate::socket::line::Said;

/// How often it is looked whether a question still stands.
const STILL: Duration = Duration::from_millis(500);

/// How people are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// In whose name plans and results are approved in advance, if at all.
    pub in_advance: Option<String>,
    /// Whether to leave instead of waiting for a person.
    pub no_wait: bool,
    /// The command that is told what people want to know, if any.
    pub notify: Option<String>,
    /// Whether only JSON is wanted on the standard output.
    pub json: bool,
}

/// Why the runs are left.
#[derive(Debug)]
pub enum Left {
    /// Every run has ended, or waits for what this terminal cannot give.
    All,
    /// Somebody wants to stop.
    Signal,
}

/// How the runs stood when they were left.
#[derive(Debug)]
pub struct Followed {
    /// Why.
    pub left: Left,
    /// What went wrong beside the runs themselves.
    pub error: Option<Error>,
    /// What was in flight.
    pub in_flight: Option<String>,
}

/// Follows runs until each has ended or waits for what this terminal cannot give.
///
/// # Errors
///
/// The code of a decision that was refused; `ACTOR_LOST` where the engine went away.
pub async fn follow(
    seat: &Seat,
    runs: &[String],
    asking: &Asking,
    signals: &mut Signals,
) -> Result<Followed, Error> {
    let mut live = Live::new(asking.json);
    let followed = Following {
        seat,
        asking,
        live: &mut live,
        left_open: false,
        unasked: BTreeSet::new(),
        asked: false,
    }
    .on(runs, signals)
    .await;
    live.clear();
    followed
}

struct Following<'a> {
    seat: &'a Seat,
    asking: &'a Asking,
    live: &'a mut Live,
    /// Somebody at the terminal left a question open; it is not put again by itself.
    left_open: bool,
    /// What was said once: that nobody can be asked about a run here, that it is paused.
    unasked: BTreeSet<String>,
    /// Somebody was asked, and what came meanwhile is old.
    asked: bool,
}

/// One run of a standing.
struct Stands {
    run: String,
    standing: String,
    resting: bool,
    paused: bool,
    in_flight: Option<String>,
    trouble: Option<Error>,
}

impl Following<'_> {
    async fn on(mut self, runs: &[String], signals: &mut Signals) -> Result<Followed, Error> {
        let (mut line, mut desk) = (self.seat.line().await?, self.seat.line().await?);
        let lines = !self.live.redraws();
        let view = View {
            style: (!self.asking.json).then(|| self.live.style()),
        };
        let watch = Request::Watch {
            runs: runs.to_vec(),
            lines,
        };
        let mut id = line.send(watch.clone(), view).await?;
        let mut followed = Followed {
            left: Left::All,
            error: None,
            in_flight: None,
        };
        // What was decided, by what it was about: the next item may have been on its way before.
        let mut decided: BTreeMap<String, String> = BTreeMap::new();
        loop {
            let said = tokio::select! {
                said = line.hear(id) => said?,
                () = signals.next() => {
                    followed.left = Left::Signal;
                    return Ok(followed);
                }
            };
            let (answer, ended) = match said {
                Said::Item(answer) => (answer, false),
                Said::Answer(answer) => (answer, true),
                Said::Error(error) => return Err(error),
            };
            self.show(&answer, lines);
            let (stands, trouble) = standings(&answer.value);
            followed.in_flight = stands.iter().find_map(|run| run.in_flight.clone());
            let found = stands.iter().find_map(|run| run.trouble.clone());
            followed.error = trouble.clone().or(found);
            if ended || trouble.is_some() {
                return Ok(followed);
            }
            let mut waiting = false;
            for run in &stands {
                waiting |= tokio::select! {
                    waits = self.step(run, &mut desk, &mut decided) => waits?,
                    () = signals.next() => {
                        followed.left = Left::Signal;
                        return Ok(followed);
                    }
                };
            }
            if !waiting {
                return Ok(followed);
            }
            if std::mem::take(&mut self.asked) {
                // What was sent during the question is over: how things stand now is asked anew.
                line = self.seat.line().await?;
                id = line.send(watch.clone(), view).await?;
            }
        }
    }

    fn show(&mut self, answer: &Answer, lines: bool) {
        if lines {
            // Nobody has to watch.
            let _ = std::io::stderr().lock().write_all(answer.text.as_bytes());
        } else {
            self.live.draw(&answer.text);
        }
    }

    /// Does what a run asks for; whether something more can come of it here.
    async fn step(
        &mut self,
        run: &Stands,
        desk: &mut Client,
        decided: &mut BTreeMap<String, String>,
    ) -> Result<bool, Error> {
        if run.trouble.is_some() {
            return Ok(false);
        }
        if !matches!(run.standing.as_str(), "NEEDS_APPROVAL" | "NEEDS_ACCEPTANCE") {
            decided.remove(&run.run);
            // Who paused it may let it go on, from another terminal.
            let waits = run.paused && !self.asking.no_wait;
            if waits && self.unasked.insert(format!("{} paused", run.run)) {
                self.live.leave();
                say(&format!(
                    "run {run} is paused: {praxis} continue {run} lets it go on here, Ctrl-C leaves",
                    run = run.run,
                    praxis = program()
                ));
            }
            return Ok(!run.resting || waits);
        }
        if decided.get(&run.run) == Some(&run.standing) {
            return Ok(true);
        }
        if self.decide(run, desk).await? {
            decided.insert(run.run.clone(), run.standing.clone());
            return Ok(true);
        }
        Ok(!self.asking.no_wait && !self.left_open)
    }

    /// Has what waits decided, if anybody here can; whether it was.
    async fn decide(&mut self, run: &Stands, desk: &mut Client) -> Result<bool, Error> {
        let given = match &self.asking.in_advance {
            Some(_) => Given::InAdvance,
            None if self.left_open => return Ok(false),
            None if self.asking.json || !at_terminal() => {
                self.say_unasked(&run.run);
                return Ok(false);
            }
            None => Given::AtTerminal,
        };
        let request = Request::Pending {
            run: run.run.clone(),
        };
        let view = View {
            style: (given == Given::AtTerminal).then(|| self.live.style()),
        };
        let pending = match desk.ask(request, view).await {
            // Somebody else was quicker.
            Err(error) if error.code() == Code::StateInvalid => return Ok(false),
            pending => pending?,
        };
        let said = |name: &str| pending.value.get(name).and_then(Value::as_str);
        let (digest, what) = (said("digest"), said("what").unwrap_or_default());
        let digest = digest.unwrap_or_default().to_owned();
        let (yes, reason) = match given {
            Given::AtTerminal => {
                self.live.leave();
                self.asked = true;
                let asked = ask_person(&run.run, what, pending.text.clone());
                match ask_while(asked, desk, &run.run, &digest).await? {
                    Asked::Answer(answer) => answer,
                    Asked::Elsewhere => {
                        say("\nIt was decided elsewhere.");
                        return Ok(false);
                    }
                    Asked::Nothing => {
                        say(&format!(
                            "Nothing is decided: {} approve {} asks again later.",
                            program(),
                            run.run
                        ));
                        self.left_open = true;
                        return Ok(false);
                    }
                }
            }
            _ => (true, None),
        };
        let decide = Request::Decide(Decide {
            run: run.run.clone(),
            digest,
            yes,
            way: given,
            name: self.asking.in_advance.clone(),
            reason,
        });
        match desk.ask(decide, View::PROGRAM).await {
            Ok(_) => Ok(true),
            // It was decided elsewhere meanwhile, or is another one by now: what waits then is shown anew.
            Err(error)
                if matches!(error.code(), Code::StateInvalid | Code::ApprovalStale)
                    && given == Given::AtTerminal =>
            {
                say(&format!("praxis: {error}"));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Says once that the run waits and that nobody can be asked here; where it leaves at once, the page says it.
    fn say_unasked(&mut self, run: &str) {
        if self.asking.no_wait || !self.unasked.insert(run.to_owned()) {
            return;
        }
        self.live.leave();
        let why = match at_terminal() {
            true => "--json asks nobody",
            false => "there is no terminal",
        };
        say(&format!(
            "run {run} waits for a person and {why}: {praxis} approve {run} at one, or {praxis} deny {run} --reason TEXT; this goes on then, Ctrl-C leaves",
            praxis = program(),
        ));
    }
}

/// A yes or a no, and why, where that was said.
pub(crate) type Reply = (bool, Option<String>);

/// What came of asking a person.
pub(crate) enum Asked {
    /// A yes or a no, with a reason.
    Answer(Reply),
    /// Nothing that counts.
    Nothing,
    /// The question was taken back: it was answered elsewhere.
    Elsewhere,
}

/// A question that is put to the person at the terminal.
pub(crate) struct Question {
    answer: tokio::task::JoinHandle<std::io::Result<Option<Reply>>>,
    taken_back: Arc<AtomicBool>,
}

/// Shows what waits and asks.
pub(crate) fn ask_person(run: &str, what: &str, shown: String) -> Question {
    let question = match what {
        "plan" => "Approve the plan and exactly this action?".to_owned(),
        _ => format!("Accept the result of run {run}?"),
    };
    let taken_back = Arc::new(AtomicBool::new(false));
    // A terminal gives a line at a time, so nothing of a later answer is read ahead.
    let mut input = BufReader::new(Patient::new(Arc::clone(&taken_back)));
    let answer = tokio::task::spawn_blocking(move || {
        // Not locked: an interrupt during the question has something to say too.
        let mut terminal = std::io::stderr();
        terminal.write_all(shown.as_bytes())?;
        let answer = prompt::ask(&question, &mut input, &mut terminal)?;
        Ok(match answer {
            prompt::Answer::Yes => Some((true, None)),
            prompt::Answer::No => Some((false, prompt::reason(&mut input, &mut terminal)?)),
            prompt::Answer::Open => None,
        })
    });
    Question { answer, taken_back }
}

impl Question {
    /// The answer, unless it is given elsewhere first: `still` says whether the question stands.
    ///
    /// # Errors
    ///
    /// `TERMINAL_NEEDED` where the terminal fails; what `still` fails with.
    pub(crate) async fn answer(
        mut self,
        mut still: impl AsyncFnMut() -> Result<bool, Error>,
    ) -> Result<Asked, Error> {
        let failed = |why: String| {
            Error::new(
                Code::TerminalNeeded,
                format!("the terminal did not answer: {why}"),
            )
        };
        loop {
            tokio::select! {
                answered = &mut self.answer => {
                    let answered = answered.map_err(|error| failed(error.to_string()))?;
                    let answered = answered.map_err(|error| failed(error.to_string()))?;
                    return Ok(answered.map_or(Asked::Nothing, Asked::Answer));
                }
                () = tokio::time::sleep(STILL) => {}
            }
            if !still().await? {
                self.taken_back.store(true, Ordering::Relaxed);
                // It gives the terminal back before anything else is shown or asked.
                drop(self.answer.await);
                return Ok(Asked::Elsewhere);
            }
        }
    }
}

/// Waits for the answer to a question about what waits in a run for as long as that waits.
async fn ask_while(
    question: Question,
    desk: &mut Client,
    run: &str,
    digest: &str,
) -> Result<Asked, Error> {
    let still = async || {
        let request = Request::Pending {
            run: run.to_owned(),
        };
        match desk.ask(request, View::PROGRAM).await {
            Ok(pending) => Ok(pending.value.get("digest").and_then(Value::as_str) == Some(digest)),
            Err(error) if error.code() == Code::StateInvalid => Ok(false),
            Err(error) => Err(error),
        }
    };
    question.answer(still).await
}

/// The runs of an item, and what keeps the whole engine from going on.
fn standings(value: &Value) -> (Vec<Stands>, Option<Error>) {
    let error = |value: Option<&Value>| value.and_then(crate::socket::line::refusal);
    let one = |run: &Value| {
        let text = |name: &str| run.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Stands {
            run: text("run")?,
            standing: text("standing")?,
            resting: run.get("resting")?.as_bool()?,
            paused: run.get("paused")?.as_bool()?,
            in_flight: text("inFlight"),
            trouble: error(run.get("trouble")),
        })
    };
    let runs = value.get("runs").and_then(Value::as_array);
    let runs = runs.unwrap_or_default().iter().filter_map(one);
    (runs.collect(), error(value.get("trouble")))
}
