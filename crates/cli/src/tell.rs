//! Telling people: each notice goes to a command's standard input, and is acknowledged only after its exit 0.
//! Invariant: at least once and in order; a command that fails or hangs is called again, and holds up no run.
//! Used by `--notify` of the process that has the engine, and by the verb `outbox`.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use aiws::decimal::U64;
use aiws::error::{Code, Error};
use aiws::json::Value;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::answer::{Answer, View};
use crate::limits::{TELL_AGAIN_MS, TELL_LAST_MS, TELL_SECONDS};
use crate::office::{Office, blocking, outbox};
use crate::render::say;
use crate::request::Request;
use crate::socket::client::Client;

/// The variables that a command of `--notify` sees.
const SEEN: [&str; 3] = ["PATH", "HOME", "LANG"];

/// A command that is told.
#[derive(Clone, Debug)]
pub struct Told {
    line: String,
    /// Whether it sees nothing of this process: its variables, its output.
    apart: bool,
}

impl Told {
    /// A command of `--notify`: beside the runs, with PATH, HOME and LANG alone, and with no output.
    #[must_use]
    pub fn apart(line: &str) -> Self {
        Self {
            line: line.to_owned(),
            apart: true,
        }
    }

    /// A command of a person's own terminal, with its variables and its output.
    #[must_use]
    pub fn here(line: &str) -> Self {
        Self {
            line: line.to_owned(),
            apart: false,
        }
    }

    /// Hands it one notice and waits for its end.
    ///
    /// # Errors
    ///
    /// `EXPORT_FAILED` where it does not end with 0 in time.
    pub async fn hand(&self, notice: &Value) -> Result<(), Error> {
        let failed = |found: String| {
            let line = crate::render::escape::clip(&self.line, 60);
            let message = format!("expected {line:?} to end with 0, found {found}");
            Error::new(Code::ExportFailed, message)
        };
        let mut child = self
            .command()
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let group = Group(child.id());
        let mut input = child.stdin.take();
        let told = async {
            if let Some(input) = &mut input {
                // One that ends without reading has said with its exit what that means.
                let _ = input.write_all(format!("{notice}\n").as_bytes()).await;
            }
            drop(input.take());
            child.wait().await
        };
        let ended = tokio::time::timeout(Duration::from_secs(TELL_SECONDS), told).await;
        drop(group);
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(failed(status.to_string())),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed(format!("it still running after {TELL_SECONDS} s"))),
        }
    }

    fn command(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new("/bin/sh");
        command.arg("-c").arg(&self.line).stdin(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        if self.apart {
            command.env_clear();
            let seen = SEEN
                .iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?)));
            command.envs(seen).current_dir("/");
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        command
    }
}

/// What a command started: all of it is killed when this value goes, ended or not.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let leader = self.0.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(leader) = leader {
            // What has ended already needs no killing.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// What one consumer has in hand: told, and not acknowledged durably as far as it knows.
#[derive(Debug, Default)]
pub struct Hand {
    told: BTreeSet<u64>,
    /// What need not be told at all.
    over: BTreeSet<u64>,
    /// Whether something was told since the last question.
    fresh: bool,
}

impl Hand {
    /// A hand that need not be told this.
    #[must_use]
    pub fn without(over: BTreeSet<u64>) -> Self {
        Self {
            over,
            ..Self::default()
        }
    }

    /// The next question of this consumer. Notices are told in order, so that the last one acknowledges all.
    #[must_use]
    pub fn request(&self, consumer: &str, wait: bool) -> Request {
        let in_hand = self.told.union(&self.over);
        Request::Outbox {
            consumer: consumer.to_owned(),
            acknowledge: self.told.last().copied().map(U64),
            in_hand: in_hand.copied().map(U64).collect(),
            wait: wait && !self.fresh,
        }
    }

    /// Takes an answer's notices; what it says is acknowledged is out of hand.
    #[must_use]
    pub fn take(&mut self, answer: &Answer) -> Vec<Value> {
        let number = |name: &str| answer.value.get(name)?.as_str()?.parse::<u64>().ok();
        let acknowledged = number("acknowledged").unwrap_or_default();
        self.told.retain(|told| *told > acknowledged);
        self.over.retain(|over| *over > acknowledged);
        self.fresh = false;
        let notices = answer.value.get("notices").and_then(Value::as_array);
        let notices = notices.unwrap_or_default().to_vec();
        // All that was not over before is told: what was over is out of hand with it.
        if let (true, false, Some(reached)) =
            (notices.is_empty(), self.over.is_empty(), number("reached"))
        {
            self.fresh = self.told.insert(reached);
        }
        notices
    }

    /// A notice was told.
    pub fn told(&mut self, notice: &Value) {
        let sequence = notice.get("sequence").and_then(Value::as_str);
        if let Some(sequence) = sequence.and_then(|text| text.parse().ok()) {
            self.told.insert(sequence);
            self.fresh = true;
        }
    }

    /// Whether something was told that no question has acknowledged yet.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }
}

/// How long to wait before a command is called again, by how often it failed.
#[must_use]
pub fn backoff(failures: u32) -> Duration {
    let shift = failures.saturating_sub(1).min(6);
    Duration::from_millis((TELL_AGAIN_MS >> 6) << shift)
}

/// The command of `--notify` on its way, in the process that has the engine.
pub struct Notify {
    ends: watch::Sender<bool>,
    work: JoinHandle<()>,
}

impl Notify {
    /// Tells the command from now on what the consumer `notify` has not acknowledged.
    #[must_use]
    pub fn start(office: &Arc<Office>, line: &str) -> Self {
        let (ends, ending) = watch::channel(false);
        let telling = Telling {
            office: Arc::clone(office),
            told: Told::apart(line),
            ending,
            hand: Hand::default(),
        };
        let work = tokio::spawn(async move {
            // Nothing of a run depends on it.
            if let Err(error) = telling.on().await {
                tracing::info!(%error, "nobody is told any more");
            }
        });
        Self { ends, work }
    }

    /// Tells what there is still to tell, within a bound; the next engine tells the rest.
    pub async fn finish(mut self) {
        self.ends.send_replace(true);
        let bound = Duration::from_millis(TELL_LAST_MS);
        if tokio::time::timeout(bound, &mut self.work).await.is_err() {
            self.work.abort();
        }
    }
}

impl Drop for Notify {
    fn drop(&mut self) {
        // A command that still runs is killed with the work.
        self.work.abort();
    }
}

struct Telling {
    office: Arc<Office>,
    told: Told,
    ending: watch::Receiver<bool>,
    hand: Hand,
}

impl Telling {
    async fn on(mut self) -> Result<(), Error> {
        self.hand = Hand::without(self.over().await?);
        let mut client = Client::within(&self.office).await?;
        let mut failures = 0;
        loop {
            let ends = *self.ending.borrow_and_update();
            let request = self.hand.request(outbox::NOTIFY, !ends);
            let answer = tokio::select! {
                answer = client.ask(request, View::PROGRAM) => answer?,
                _ = self.ending.changed() => {
                    // The question that waits is left with its conversation.
                    client = Client::within(&self.office).await?;
                    continue;
                }
            };
            let notices = self.hand.take(&answer);
            let Some(notice) = notices.first() else {
                match ends && !self.hand.is_fresh() {
                    true => return Ok(()),
                    false => continue,
                }
            };
            match self.told.hand(notice).await {
                Ok(()) => {
                    failures = 0;
                    self.hand.told(notice);
                }
                // The next engine tells it.
                Err(_) if ends => return Ok(()),
                Err(error) => {
                    failures += 1;
                    if failures == 1 {
                        say(&format!(
                            "praxis: --notify: {}; it is called again",
                            error.message
                        ));
                    }
                    tokio::select! {
                        () = tokio::time::sleep(backoff(failures)) => {}
                        _ = self.ending.changed() => {}
                    }
                }
            }
        }
    }

    /// What was over before anybody was told anything in this store.
    async fn over(&self) -> Result<BTreeSet<u64>, Error> {
        let reader = self.office.reader();
        blocking(move || {
            let consumer = outbox::consumer(outbox::NOTIFY)?;
            match reader.journal.cursor(&consumer) {
                0 => outbox::over(&reader, &consumer),
                _ => Ok(BTreeSet::new()),
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aiws::object;

    fn answer(acknowledged: &str, sequences: &[&str]) -> Answer {
        let notices: Vec<Value> = sequences
            .iter()
            .map(|sequence| object! { "sequence": *sequence })
            .collect();
        let value = object! { "acknowledged": acknowledged, "notices": notices, "reached": "20" };
        Answer::done(value, View::PROGRAM, |_| String::new())
    }

    fn asked(hand: &Hand) -> (Option<u64>, Vec<u64>) {
        match hand.request("c", true) {
            Request::Outbox {
                acknowledge,
                in_hand,
                ..
            } => (
                acknowledge.map(|upto| upto.get()),
                in_hand.iter().map(|told| told.get()).collect(),
            ),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_told_stays_in_hand_until_it_is_acknowledged() {
        let mut hand = Hand::default();
        let notices = hand.take(&answer("0", &["3", "7"]));
        hand.told(&notices[0]);
        assert_eq!(asked(&hand), (Some(3), vec![3]));
        hand.told(&notices[1]);
        assert!(hand.is_fresh());
        // Something before could not be told yet, so that the cursor stays behind.
        let _ = hand.take(&answer("2", &[]));
        assert_eq!(asked(&hand), (Some(7), vec![3, 7]));
        let _ = hand.take(&answer("7", &[]));
        assert_eq!(asked(&hand), (None, vec![]));
    }

    #[test]
    fn what_was_over_is_skipped_and_acknowledged_only_once_the_rest_was_told() {
        let mut hand = Hand::without(BTreeSet::from([3, 9]));
        assert_eq!(asked(&hand), (None, vec![3, 9]));
        let notices = hand.take(&answer("0", &["5"]));
        hand.told(&notices[0]);
        assert_eq!(asked(&hand), (Some(5), vec![3, 5, 9]));
        let _ = hand.take(&answer("5", &[]));
        assert_eq!(
            asked(&hand),
            (Some(20), vec![9, 20]),
            "up to what was reached"
        );
        let _ = hand.take(&answer("20", &[]));
        assert_eq!(asked(&hand), (None, vec![]));
    }

    #[test]
    fn a_command_that_fails_is_called_again_ever_later_up_to_a_bound() {
        let waits: Vec<u64> = (1..10).map(|n| backoff(n).as_millis() as u64).collect();
        assert_eq!(waits[..3], [1000, 2000, 4000]);
        assert_eq!(waits[8], TELL_AGAIN_MS);
    }

    #[tokio::test]
    async fn a_command_gets_the_notice_and_its_exit_counts() {
        let dir = tempfile::TempDir::new().unwrap();
        let file = dir.path().join("told");
        let notice = object! { "sequence": "1" };
        let keep = Told::apart(&format!("cat > {}", file.display()));
        keep.hand(&notice).await.unwrap();
        let kept = std::fs::read_to_string(&file).unwrap();
        assert_eq!(kept, "{\"sequence\":\"1\"}\n");
        let refused = Told::apart("exit 7").hand(&notice).await.unwrap_err();
        assert!(refused.message.contains('7'), "{refused}");
        let environment = Told::apart(&format!("env > {}", file.display()));
        environment.hand(&notice).await.unwrap();
        let seen = std::fs::read_to_string(&file).unwrap();
        assert!(!seen.contains("CARGO"), "{seen}");
    }
}
