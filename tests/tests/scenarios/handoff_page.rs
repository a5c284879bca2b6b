//! The examples of docs/HANDOFF.md: the ten commands of the protocol, sent in one run, with what came back; and an answer
//! that is lost, in another run.
//! Invariant: what stands on the page was sent to an engine and answered by it, each time this test runs.

use std::fmt::Write as _;

use aiws::error::Code;
use praxis_model::command::CommandType;
use praxis_model::table::{Family, row};
use praxis_tests::generated;
use serde_json::{Value as Json, json};

use crate::bodies::{self, Boundary, lin};
use crate::oracle::money;
use crate::wire::Sent;
use crate::world::{HUMAN, W1, W2, World};

const PATH: &str = "docs/HANDOFF.md";
const COMMAND: &str = "PRAXIS_BLESS=1 cargo test -p praxis-tests --test scenarios handoff_page";

/// Columns of an example.
const WIDTH: usize = 108;

/// The page's part as it grows, and the commands that were shown.
#[derive(Default)]
struct Page {
    text: String,
    shown: Vec<CommandType>,
}

impl Page {
    fn say(&mut self, words: &str, sent: &Sent, answer: &str) {
        let kind = sent.kind();
        // Writing to a String cannot fail.
        let _ = write!(
            self.text,
            "**{}.** {words}\n\n```json\n{}\n```\n\n{answer}\n\n",
            kind.name(),
            laid_out(&short(&sent.json()), 0)
        );
        self.shown.push(kind);
    }

    /// Sends a request that is accepted, and shows it with its result. Gives the token of a claim.
    async fn send(
        &mut self,
        w: &mut World,
        actor: &str,
        body: Json,
        words: &str,
    ) -> Option<String> {
        let sent = w.request(body).await;
        let answer = w.deliver(actor, &sent).await;
        let result = aiws::canonical::bytes_of(&answer.result).unwrap();
        let result: Json = serde_json::from_slice(&result).unwrap();
        let shown = format!("```json\n{}\n```", laid_out(&short(&result), 0));
        self.say(words, &sent, &shown);
        answer.token
    }

    /// Sends a request that is refused, and shows it with its code.
    async fn refuse(&mut self, w: &mut World, actor: &str, body: Json, code: Code, words: &str) {
        let sent = w.request(body).await;
        let error = w.refuse_sent(actor, &sent, code).await;
        let shown = format!("`{}`: {}", error.code(), error.message);
        self.say(words, &sent, &shown);
    }
}

/// Digests and tokens by their beginning: they are long, and another run has others.
fn short(value: &Json) -> Json {
    match value {
        Json::String(text)
            if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            json!(format!("{}...", &text[..6]))
        }
        Json::Array(items) => Json::Array(items.iter().map(short).collect()),
        Json::Object(members) => {
            let members = members.iter().map(|(name, value)| {
                let shown = match (name.as_str(), value) {
                    ("claimToken", Json::String(text)) => json!(format!("{}...", &text[..4])),
                    _ => short(value),
                };
                (name.clone(), shown)
            });
            Json::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// JSON on as few lines as fit: what is too wide has a member or an item on each line.
fn laid_out(value: &Json, depth: usize) -> String {
    let flat = spaced(value);
    let pad = "  ".repeat(depth + 1);
    if flat.len() + 2 * depth <= WIDTH {
        return flat;
    }
    let (open, close, lines): (_, _, Vec<String>) = match value {
        Json::Object(members) => {
            let member = |(name, value): (&String, &Json)| {
                format!("{pad}{}: {}", json!(name), laid_out(value, depth + 1))
            };
            ('{', '}', members.iter().map(member).collect())
        }
        Json::Array(items) => {
            let item = |value: &Json| format!("{pad}{}", laid_out(value, depth + 1));
            ('[', ']', items.iter().map(item).collect())
        }
        _ => return flat,
    };
    format!(
        "{open}\n{}\n{}{close}",
        lines.join(",\n"),
        "  ".repeat(depth)
    )
}

/// JSON on one line, with a blank behind each comma and colon.
fn spaced(value: &Json) -> String {
    match value {
        Json::Object(members) if !members.is_empty() => {
            let each = members.iter();
            let each = each.map(|(name, value)| format!("{}: {}", json!(name), spaced(value)));
            format!("{{ {} }}", each.collect::<Vec<_>>().join(", "))
        }
        Json::Array(items) => {
            let each: Vec<String> = items.iter().map(spaced).collect();
            format!("[{}]", each.join(", "))
        }
        other => other.to_string(),
    }
}

/// An attempt whose answer is lost, what is refused meanwhile, how it is settled, and the next attempt.
async fn not_knowing() -> Page {
    let mut w = World::new(false, None).await;
    w.start(&lin(), &bodies::config()).await;
    w.admit("a").await;
    let mut page = Page::default();
    let operation = w.operation("a");
    let policy = json!({"id": "policy", "revision": "1"});
    let retry = json!({
        "type": "retry", "runId": w.run, "ownerEpoch": "1", "operationId": operation,
        "attemptId": "at-run-a-2", "amount": "3", "policy": policy,
    });
    let first = w.attempt("a");

    let dispatch = w.dispatch_of("a").await;
    let words = "The attempt is `DISPATCHED` before anything is done outside.";
    page.send(&mut w, W1, dispatch, words).await;
    let lost = bodies::settle(&*w.state().await, "settle", &first, "UNKNOWN", 0);
    let words = "The answer never came. Nobody knows what was done, so the 3 units stay reserved.";
    page.send(&mut w, W1, lost, words).await;
    let words = "It is not tried again on a guess.";
    page.refuse(&mut w, W1, retry.clone(), Code::EffectUnresolved, words)
        .await;
    let words =
        "Nor is `a` done: its boundary says what is outstanding, so it cannot say COMPLETED.";
    let boundary = Boundary::completed(json!({})).of(&*w.state().await, "a");
    page.refuse(&mut w, W1, boundary, Code::EffectUnresolved, words)
        .await;
    let found = |state: &praxis_model::run::RunState| {
        bodies::settle(state, "reconcile", &first, "CONFIRMED_NOT_APPLIED", 0)
    };
    let words = "A worker does not decide what became of it, whatever evidence it names.";
    let by_worker = found(&*w.state().await);
    page.refuse(&mut w, W1, by_worker, Code::HumanRequired, words)
        .await;
    let words = "A person looked outside: nothing was done. The host confirms the evidence, and the reservation returns.";
    let by_person = found(&*w.state().await);
    page.send(&mut w, HUMAN, by_person, words).await;
    let words =
        "Now another attempt of the same operation is prepared, with a reservation of its own.";
    page.send(&mut w, W1, retry, words).await;
    let second = bodies::dispatch(&*w.state().await, "a", &operation, "at-run-a-2");
    let words = "It is dispatched like the first one.";
    page.send(&mut w, W1, second, words).await;
    let applied = bodies::settle(
        &*w.state().await,
        "settle",
        "at-run-a-2",
        "CONFIRMED_APPLIED",
        2,
    );
    let words = "This answer came. It cost 2; the third unit is free again.";
    page.send(&mut w, W1, applied, words).await;
    assert_eq!(money(&w), (2, 0));
    w.commit("a", &Boundary::completed(json!({}))).await;
    w.finish().await;
    page
}

/// The examples of the page are what the engine was sent and said: all ten commands with the refusals between them, and
/// an answer that is lost.
#[tokio::test]
async fn the_examples_of_the_page_are_sent_and_answered() {
    let mut w = World::new(false, None).await;
    w.start(&lin(), &bodies::config()).await;
    w.apply("a").await;
    let mut page = Page::default();
    let delivery = w.delivery("a", "b");

    let mut boundary = Boundary::completed(json!({"sum": 6}));
    boundary.artifacts.push(bodies::json_of(&put(&w)));
    let body = boundary.of(&*w.state().await, "a");
    page.send(
        &mut w,
        W1,
        body,
        "The end of `a`: its manifest, from which the coordinator makes a delivery to `b`.",
    )
    .await;
    let words = "A lease to look at it. The raw token is in the answer beside the result, and in no other place.";
    let first = page
        .send(&mut w, W1, bodies::claim(&delivery), words)
        .await
        .unwrap();
    let words = "It is given back; the delivery is `PENDING` again.";
    page.send(&mut w, W1, bodies::release(&delivery, &first, 1), words)
        .await;
    let words = "Claimed again: the generation is the next one, and the token another.";
    let again = page.send(&mut w, W1, bodies::claim(&delivery), words).await;
    let token = again.unwrap();
    let ack = w.ack_of(&delivery, &token).await;
    let words = "Somebody else who has the token is not the claimant.";
    page.refuse(&mut w, W2, ack.clone(), Code::StaleOwner, words)
        .await;
    let hold = bodies::hold(
        &*w.state().await,
        "look-first",
        "OPERATOR",
        &["RECHECK", "CANCEL"],
    );
    page.send(
        &mut w,
        HUMAN,
        hold,
        "An operator closes the gate before the run.",
    )
    .await;
    let words = "Now the receipt waits, though its claim lives.";
    page.refuse(&mut w, W1, ack, Code::HoldActive, words).await;
    let resolve = bodies::resolve("look-first", "RECHECK", &[]);
    page.send(
        &mut w,
        HUMAN,
        resolve,
        "Everything is looked at again, and the hold ends.",
    )
    .await;
    let ack = w.ack_of(&delivery, &token).await;
    page.send(
        &mut w,
        W1,
        ack,
        "The receipt, after the host has read the artifact's bytes.",
    )
    .await;
    let admission = w.admission("b").await;
    let words = "The input is bound to `b` and to one operation; its first attempt and its reservation come with it.";
    page.send(&mut w, W1, admission, words).await;
    let again = w.admission("b").await;
    let words = "Another admission of the same activation.";
    page.refuse(&mut w, W1, again, Code::InputSetConflict, words)
        .await;
    let by = ("HUMAN", HUMAN, None);
    let summary = bodies::summary(
        &*w.state().await,
        "a",
        by,
        "The sum of the first three numbers.",
    );
    page.send(&mut w, HUMAN, summary, "Words about the hand-off of `a`.")
        .await;
    let invalid = bodies::invalidate(&*w.state().await, "a");
    let words = "The hand-off was wrong: its delivery and what `b` consumed no longer count, and the run is held.";
    page.send(&mut w, HUMAN, invalid, words).await;
    let dispatch = w.dispatch_of("b").await;
    let words = "So its work is not begun any more.";
    page.refuse(&mut w, W1, dispatch, Code::HoldActive, words)
        .await;
    let recover = bodies::recover(1, Some("decision-1"));
    page.send(
        &mut w,
        HUMAN,
        recover,
        "The run gets another owner, whose epoch is 2.",
    )
    .await;
    let late = bodies::claim(&delivery);
    let mut late = w.request(late).await;
    late.epoch = Some("1".to_owned());
    let error = w.refuse_sent(W1, &late, Code::StaleOwner).await;
    let shown = format!("`{}`: {}", error.code(), error.message);
    page.say(
        "Whoever still acts under epoch 1 is refused, whatever the command.",
        &late,
        &shown,
    );

    let mut own = CommandType::ALL
        .iter()
        .filter(|kind| row(**kind).family == Family::Handoff);
    assert!(
        own.all(|kind| page.shown.contains(kind)),
        "{:?}",
        page.shown
    );
    w.finish().await;
    let lost = not_knowing().await;
    let parts = [("examples", page), ("not knowing", lost)];
    let parts = parts.map(|(name, page)| (name.to_owned(), page.text.trim_end().to_owned() + "\n"));
    assert_eq!(generated::check_parts(PATH, &parts, COMMAND), Ok(()));
}

/// The artifact of `a`.
fn put(w: &World) -> aiws::record::Artifact {
    use praxis_artifacts::ArtifactProvider as _;
    let owner = crate::wire::id(HUMAN);
    let stored = w
        .shelf
        .put(b"1 2 3\n", "numbers", "text/plain", &owner, 500_000);
    stored.unwrap()
}
