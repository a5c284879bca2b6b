//! Following runs: how they stand at every change, until each rests.
//! Invariant: what is told was durable before; who stops listening is forgotten. Part of the office.

use std::sync::Arc;
use std::time::Duration;

use aiws::error::{Code, Error};
use aiws::id::RunId;
use aiws::json::Value;
use aiws::object;

use super::keeper::{Follower, Kept, Seen};
use super::{Items, Office, Peer, blocking};
use crate::answer::{Answer, View};
use crate::exit::Exit;
use crate::render::live::{self, Changes};
use crate::render::page::Page;
use crate::render::{json, text::Style};
use crate::session::now_ms;
use crate::store::Reader;

/// How often time that passes is shown.
const TICK: Duration = Duration::from_millis(500);

impl Office {
    /// Sends an item at every change, and for whoever sees text also as time passes. The answer comes once every run
    /// has ended.
    pub(super) async fn watch(
        &self,
        named: &[String],
        lines: bool,
        view: View,
        peer: &Peer,
        items: &Items,
    ) -> Result<Answer, Error> {
        let mut followed = Vec::new();
        for name in named {
            let run = RunId::new(name.as_str())?;
            let kept = self.keeper.find(&run).ok_or_else(|| {
                let message = format!(
                    "expected a run that goes on in this engine, found {run}; praxis resume {run} lets it go on"
                );
                Error::new(Code::RunNotFound, message)
            })?;
            followed.push(kept);
        }
        let others = followed.iter().filter(|_| !matches!(peer, Peer::Own));
        let _following: Vec<Follower> = others.map(Follower::of).collect();
        let mut seen: Vec<_> = followed.iter().map(|kept| kept.seen()).collect();
        let mut troubles = self.keeper.troubles();
        let mut changes = Changes::default();
        let mut last: Option<Value> = None;
        loop {
            let stands: Vec<Seen> = seen
                .iter_mut()
                .map(|seen| seen.borrow_and_update().clone())
                .collect();
            let trouble = troubles.borrow_and_update().clone();
            let value = standings(&followed, &stands, trouble.as_ref());
            let text = match view.style {
                Some(style) => self.drawn(&followed, style, lines, &mut changes).await?,
                None => String::new(),
            };
            let ended = stands
                .iter()
                .all(|seen| seen.standing.has_ended() && seen.resting);
            let exit = stands
                .iter()
                .fold(Exit::Done, |exit, seen| exit.worse(seen.standing.exit()));
            let answer = Answer {
                value: value.clone(),
                text,
                exit,
            };
            if ended {
                return Ok(answer);
            }
            if (last.as_ref() != Some(&value) || !answer.text.is_empty())
                && items.send(answer).await.is_err()
            {
                return Err(super::gone());
            }
            last = Some(value);
            let changed = futures(&mut seen);
            tokio::select! {
                () = changed => {}
                _ = troubles.changed() => {}
                () = tokio::time::sleep(TICK), if view.style.is_some() && !lines => {}
                () = items.closed() => return Err(super::gone()),
            }
        }
    }

    /// The live trees, or what changed in them.
    async fn drawn(
        &self,
        followed: &[Arc<Kept>],
        style: Style,
        lines: bool,
        changes: &mut Changes,
    ) -> Result<String, Error> {
        let reader = self.keeper.read();
        let kept: Vec<Arc<Kept>> = followed.to_vec();
        let pages = blocking(move || Ok(pages(&reader, &kept))).await?;
        let now_ms = now_ms();
        Ok(match lines {
            true => pages.iter().map(|page| changes.of(page, style)).collect(),
            false => pages
                .iter()
                .map(|page| live::frame(page, style, now_ms))
                .collect(),
        })
    }
}

/// Waits until one of them changes.
async fn futures(seen: &mut [tokio::sync::watch::Receiver<Seen>]) {
    let mut waits: Vec<_> = seen
        .iter_mut()
        .map(|seen| Box::pin(seen.changed()))
        .collect();
    std::future::poll_fn(|context| {
        let ready = waits
            .iter_mut()
            .any(|wait| wait.as_mut().poll(context).is_ready());
        match ready {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
}

/// What cannot be read now only leaves a run's tree out.
fn pages(reader: &Reader, kept: &[Arc<Kept>]) -> Vec<Page> {
    let read = |kept: &Arc<Kept>| {
        let run = reader.load(&kept.subject).ok()?;
        Some(reader.page(&run, now_ms()))
    };
    kept.iter().filter_map(read).collect()
}

fn standings(followed: &[Arc<Kept>], stands: &[Seen], trouble: Option<&Error>) -> Value {
    let line = |(kept, seen): (&Arc<Kept>, &Seen)| {
        object! {
            "run": kept.job.run_id.as_str(),
            "standing": seen.standing.name(),
            "exit": seen.standing.exit() as i32,
            "resting": seen.resting,
            "paused": seen.paused,
            "inFlight": seen.in_flight,
            "trouble": seen.trouble.as_ref().map(Error::to_value),
        }
    };
    let runs: Vec<Value> = followed.iter().zip(stands).map(line).collect();
    json::object(
        "standings",
        object! { "runs": runs, "trouble": trouble.map(Error::to_value) },
    )
}
