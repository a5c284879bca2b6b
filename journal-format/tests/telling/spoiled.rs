//! Exports that both readers must refuse, each for its own reason.
//!
//! Invariant: each differs from the golden export, or from a right one, in the one thing that its name says.
//! Used by the tests of the vectors.

use aiws::digest::sha256;
use praxis_journal_format::Sealed;
use praxis_journal_format::export::Writer;

/// The export of these events under one store id.
pub fn exported(events: &[Sealed]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::begin("store-1".parse().unwrap(), &mut out).unwrap();
    for (sequence, sealed) in (1..).zip(events) {
        writer.event(sequence, sealed, &mut out).unwrap();
    }
    writer.finish(&mut out).unwrap();
    out
}

/// One invalid export: name, bytes, the fault that `verify.py` names, and a word of this crate's own sentence.
pub fn invalid(golden: &[u8]) -> Vec<(&'static str, Vec<u8>, &'static str, &'static str)> {
    let text = String::from_utf8(golden.to_vec()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (last, events) = (lines.len() - 1, 1..lines.len() - 1);
    let with = |at: usize, line: String| {
        let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        changed[at] = line;
        changed.concat().into_bytes()
    };
    let swapped = {
        let mut changed = lines.clone();
        changed.swap(2, 3);
        changed.concat().into_bytes()
    };
    // The sequences put right again, so that only the chain can tell.
    let swapped_and_numbered = {
        let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        changed.swap(2, 3);
        changed[2] = changed[2].replace("\"sequence\":\"3\"", "\"sequence\":\"2\"");
        changed[3] = changed[3].replace("\"sequence\":\"2\"", "\"sequence\":\"3\"");
        changed.concat().into_bytes()
    };
    let without = |at: usize| {
        [lines[..at].concat(), lines[at + 1..].concat()]
            .concat()
            .into_bytes()
    };
    let without_last_event = without(events.end - 1);
    let count = |from: &str, to: &str| with(last, lines[last].replace(from, to));
    vec![
        (
            "dropped-trailer",
            lines[..last].concat().into_bytes(),
            "NO_TRAILER",
            "trailer",
        ),
        (
            "dropped-tail",
            lines[..last - 1].concat().into_bytes(),
            "NO_TRAILER",
            "trailer",
        ),
        (
            "cut-in-a-line",
            golden[..golden.len() - 7].to_vec(),
            "TRUNCATED",
            "line feed",
        ),
        ("dropped-last-event", without_last_event, "COUNT", "count"),
        ("dropped-middle-event", without(3), "SEQUENCE", "sequence"),
        ("swapped-events", swapped, "SEQUENCE", "sequence"),
        (
            "swapped-events-renumbered",
            swapped_and_numbered,
            "REVISION",
            "revision",
        ),
        (
            "flipped-byte",
            with(3, lines[3].replace("\"told\":\"3\"", "\"told\":\"2\"")),
            "HASH",
            "hash",
        ),
        ("flipped-hash", with(3, flip_hash(lines[3])), "HASH", "hash"),
        (
            "wrong-count",
            count("\"count\":\"6\"", "\"count\":\"5\""),
            "COUNT",
            "count",
        ),
        (
            "wrong-head",
            count("\"revision\":\"3\"", "\"revision\":\"2\""),
            "HEADS",
            "heads",
        ),
        (
            "wrong-digest",
            with(last, flip_digest(lines[last])),
            "DIGEST",
            "digest",
        ),
        (
            "other-header",
            with(0, lines[0].replace("store-1", "store-2")),
            "DIGEST",
            "digest",
        ),
        (
            "newer-version",
            with(0, lines[0].replace("\"version\":0", "\"version\":1")),
            "VERSION",
            "version",
        ),
        (
            "foreign-format",
            with(0, lines[0].replace("praxis-export", "other-export")),
            "FORMAT",
            "format",
        ),
        (
            "duplicate-key",
            with(
                1,
                lines[1].replace("{\"event\"", "{\"hash\":\"\",\"event\""),
            ),
            "DUPLICATE_KEY",
            "twice",
        ),
        (
            "whitespace",
            with(2, lines[2].replace("\"hash\":", "\"hash\": ")),
            "NOT_CANONICAL",
            "canonical",
        ),
        (
            "escaped-letter",
            with(2, lines[2].replace("AT_TERMINAL", "\\u0041T_TERMINAL")),
            "NOT_CANONICAL",
            "canonical",
        ),
        (
            "fraction",
            with(5, lines[5].replace("\"a\":-3", "\"a\":-3.0")),
            "JSON",
            "integer",
        ),
        (
            "unsafe-integer",
            with(5, lines[5].replace("\"a\":-3", "\"a\":-9007199254740992")),
            "JSON",
            "integer",
        ),
        (
            "lone-surrogate",
            with(5, lines[5].replace("\"a\":-3", "\"\\ud800\":-3")),
            "JSON",
            "surrogate",
        ),
        (
            "unknown-member",
            with(
                2,
                lines[2].replace("{\"event\":{", "{\"event\":{\"aaa\":1,"),
            ),
            "SHAPE",
            "aaa",
        ),
        (
            "after-trailer",
            [golden, lines[1].as_bytes()].concat(),
            "AFTER_TRAILER",
            "after",
        ),
        ("not-opened", not_opened(), "NOT_OPENED", "opens"),
        (
            "half-a-sequence",
            forged(&super::golden()[..2]),
            "PART",
            "part 2 of 2",
        ),
        ("foreign-part", foreign_part(), "PART", "part 2 of 2"),
        ("late-part", late_part(), "PART", "part 1"),
    ]
    .into_iter()
    .chain(misshapen().map(|(name, from, to, fault, word)| {
        let changed = lines[2].replacen(from, to, 1);
        assert!(changed != lines[2], "{name} changes nothing");
        (name, with(2, changed), fault, word)
    }))
    .collect()
}

/// One member of an event with a value that section 2 does not allow: name, what is replaced in the third line, by
/// what, and the two readers' words.
fn misshapen() -> impl Iterator<
    Item = (
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        &'static str,
    ),
> {
    let part = r#""part":{"k":"1","of":"2"}"#;
    [
        (
            "part-zero",
            part,
            r#""part":{"k":"0","of":"2"}"#,
            "SHAPE",
            "part",
        ),
        (
            "part-beyond",
            part,
            r#""part":{"k":"3","of":"2"}"#,
            "SHAPE",
            "part",
        ),
        (
            "other-type",
            r#""type":"revokeApproval"},"h"#,
            r#""type":"completeRun"},"h"#,
            "SHAPE",
            "command",
        ),
        (
            "newer-codec",
            r#"/1","version":"0"}"#,
            r#"/1","version":"99"}"#,
            "CODEC",
            "codec",
        ),
        (
            "other-profile",
            "aiws-handoff/1",
            "aiws-handoff/2",
            "SHAPE",
            "codec",
        ),
        (
            "time-as-text",
            "1700000000002",
            "yesterday",
            "SHAPE",
            "atMs",
        ),
        (
            "time-beyond",
            "1700000000002",
            "18446744073709551616",
            "SHAPE",
            "atMs",
        ),
        (
            "epoch-padded",
            r#""ownerEpoch":"1""#,
            r#""ownerEpoch":"01""#,
            "SHAPE",
            "ownerEpoch",
        ),
        ("unknown-actor-kind", "HUMAN", "ROBOT", "SHAPE", "actorKind"),
        (
            "empty-mission",
            r#""missionId":"mission-1","runId""#,
            r#""missionId":"","runId""#,
            "SHAPE",
            "missionId",
        ),
        (
            "policy-missing",
            r#""policy":{"id":"policy","revision":"3"}"#,
            r#""policy":null"#,
            "SHAPE",
            "policy",
        ),
        (
            "decision-as-number",
            r#""decisionRef":null"#,
            r#""decisionRef":3"#,
            "SHAPE",
            "decisionRef",
        ),
        (
            "outcome-with-more",
            r#""outcome":{"accounts""#,
            r#""outcome":{"aaa":1,"accounts""#,
            "SHAPE",
            "aaa",
        ),
        (
            "facts-with-less",
            r#","restartAllowed":false"#,
            "",
            "SHAPE",
            "restartAllowed",
        ),
    ]
    .into_iter()
}

/// Flips a digit of the hash that stands beside an event, not one inside it.
fn flip_hash(line: &str) -> String {
    let at = line.rfind("\"hash\":\"").unwrap() + 8;
    let digit = if &line[at..=at] == "0" { "1" } else { "0" };
    [&line[..at], digit, &line[at + 1..]].concat()
}

fn flip_digest(line: &str) -> String {
    let at = line.find("\"digest\":\"").unwrap() + 10;
    let digit = if &line[at..=at] == "0" { "1" } else { "0" };
    [&line[..at], digit, &line[at + 1..]].concat()
}

/// An export whose only event is of a run that nothing admitted; every hash in it is right.
fn not_opened() -> Vec<u8> {
    let events = super::golden();
    let run = events.last().unwrap();
    let mut event = run.event.clone();
    event.prev_hash = aiws::digest::Digest::ZERO;
    let sealed = praxis_journal_format::seal(event).unwrap();
    forged(&[sealed])
}

/// An export whose second part of a sequence is of another request; every hash in it is right.
fn foreign_part() -> Vec<u8> {
    let mut events = super::golden();
    events.truncate(3);
    let mut event = events[2].event.clone();
    event.request_digest = sha256(b"another body");
    events[2] = praxis_journal_format::seal(event).unwrap();
    forged(&events)
}

/// An export with the second part of a sequence alone; every hash in it is right.
fn late_part() -> Vec<u8> {
    let mut events = super::golden();
    events.truncate(2);
    let mut event = events[1].event.clone();
    event.part.k.0 = 2;
    events[1] = praxis_journal_format::seal(event).unwrap();
    forged(&events)
}

/// The export of events that no writer would write, with a right trailer.
fn forged(events: &[Sealed]) -> Vec<u8> {
    let header = String::from_utf8(exported(&[])).unwrap();
    let mut before = header.split_inclusive('\n').next().unwrap().to_owned();
    let mut heads = std::collections::BTreeMap::new();
    for (sequence, sealed) in (1..).zip(events) {
        let (event, hash) = (std::str::from_utf8(&sealed.bytes).unwrap(), sealed.hash);
        before +=
            &format!("{{\"event\":{event},\"hash\":\"{hash}\",\"sequence\":\"{sequence}\"}}\n");
        let (stream, revision) = (&sealed.event.stream, sealed.event.revision);
        let head =
            format!("{{\"hash\":\"{hash}\",\"revision\":\"{revision}\",\"stream\":\"{stream}\"}}");
        heads.insert(stream.clone(), head);
    }
    let (count, digest) = (events.len(), sha256(before.as_bytes()));
    let heads = heads.into_values().collect::<Vec<_>>().join(",");
    let trailer = format!(
        "{{\"trailer\":{{\"count\":\"{count}\",\"digest\":\"{digest}\",\"heads\":[{heads}]}}}}\n"
    );
    (before + &trailer).into_bytes()
}
