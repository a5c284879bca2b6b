//! The examples of docs/HANDOFF.md: the ten commands of the protocol, sent in one run, with what came back.
//! Invariant: what stands on the page was sent to an engine and answered by it, each time this test runs.

use std::fmt::Write as _;

use aiws::error::Code;
use praxis_model::command::CommandType;
use praxis_model::table::{Family, row};
use praxis_tests::generated;
use serde_json::{Value as Json, json};

use crate::bodies::{self, Boundary, lin};
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

/// The examples of the page are what the engine was sent and said, all ten commands and four refusals.
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
    let token = w.claim(W1, &delivery).await;
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
    w.refuse(W1, dispatch, Code::HoldActive).await;
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
    let parts = [(
        "examples".to_owned(),
        page.text.trim_end().to_owned() + "\n",
    )];
    assert_eq!(generated::check_parts(PATH, &parts, COMMAND), Ok(()));
    w.finish().await;
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
