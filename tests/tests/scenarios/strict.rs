//! Cases from the field that are about bytes: numbers that lose digits, text that is none, members that stand twice.
//! Invariant: each is a valid request but for one spot, and is refused at the door with nothing changed.
//! Cases F-27, F-28, F-29 and F-40.

use aiws::error::Code;
use serde_json::json;

use crate::bodies::{Boundary, lin};
use crate::world::{W1, World, both};

/// Where a request is spoiled.
const SPOT: &str = "\"here\"";

/// The request of a boundary whose result has this at its one spot.
async fn spoiled(w: &mut World, with: &[u8]) -> Vec<u8> {
    let body = Boundary::completed(json!({"answer": "here"})).of(&*w.state().await, "a");
    let bytes = w.request(body).await.bytes();
    let text = String::from_utf8(bytes).unwrap();
    let (before, after) = text.split_once(SPOT).expect("the spot");
    [before.as_bytes(), with, after.as_bytes()].concat()
}

/// Refuses the request with each of these, and takes it with the last.
async fn refused_but_the_last(w: &mut World, all: &[&[u8]], good: &[u8]) {
    w.apply("a").await;
    for bad in all {
        let bytes = spoiled(w, bad).await;
        w.refuse_bytes(W1, &bytes, Code::SchemaInvalid).await;
    }
    let bytes = spoiled(w, good).await;
    w.once(W1, &bytes).await.expect("accepted");
}

/// Proves F-27, JSON-6: 2^53 and 2^53 + 1, which a careless reader takes for one number, are refused; 2^53 - 1 is kept.
#[tokio::test]
async fn f_27_numbers_that_lose_digits() {
    both(lin(), async |w: &mut World| {
        let bad: [&[u8]; 3] = [
            b"9007199254740992",
            b"9007199254740993",
            b"-9007199254740992",
        ];
        refused_but_the_last(w, &bad, b"9007199254740991").await;
        let state = w.state().await;
        let made = state.manifests.values().next().expect("a manifest");
        let answer = made.manifest.result.get("answer").cloned();
        assert_eq!(
            aiws::canonical::bytes_of(&answer).unwrap(),
            b"9007199254740991"
        );
    })
    .await;
}

/// Proves F-28, JSON-5: surrogates in the wrong order and a raw byte 0xFF are refused; the same pair in order is text.
#[tokio::test]
async fn f_28_text_that_is_none() {
    both(lin(), async |w: &mut World| {
        let bad: [&[u8]; 4] = [
            b"\"\\ude00\\ud83d\"",
            b"\"\\ud83d\"",
            b"\"\xff\"",
            b"\"\xc0\xaf\"",
        ];
        refused_but_the_last(w, &bad, b"\"\\ud83d\\ude00\"").await;
    })
    .await;
}

/// Proves F-29, JSON-1: a member that stands twice is refused before anything is read of it, whichever way it is written.
#[tokio::test]
async fn f_29_a_member_twice() {
    both(lin(), async |w: &mut World| {
        let bad: [&[u8]; 2] = [
            b"{\"amount\":1,\"amount\":2}",
            b"{\"amount\":1,\"\\u0061mount\":1}",
        ];
        refused_but_the_last(w, &bad, b"{\"amount\":1,\"amounts\":2}").await;
    })
    .await;
}

/// Proves F-40, JSON-6: a number beyond every float is refused, and so is a fraction; neither becomes infinite or null.
#[tokio::test]
async fn f_40_a_number_beyond_every_float() {
    both(lin(), async |w: &mut World| {
        let bad: [&[u8]; 4] = [b"1e400", b"-1e400", b"1.5", b"-0"];
        refused_but_the_last(w, &bad, b"0").await;
    })
    .await;
}
