//! Strict JSON: what gets in, what does not, and where the error points.
//! Invariant: every refusal is `SCHEMA_INVALID` with a pointer and a byte offset.
//! Called by `cargo test`.

use aiws::error::{Code, Error};
use aiws::json::Value;
use aiws::limits::{MAX_DEPTH, MAX_INPUT_BYTES, MAX_SAFE_INTEGER};
use aiws::strict::{parse, parse_with_limit};
use proptest::prelude::*;

/// Checks that a text is refused with a pointer, and that the message names what is wrong and where.
#[track_caller]
pub fn refused(bytes: &[u8], pointer: &str, says: &str) -> Error {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    let error = parse(bytes).expect_err(&text);
    assert_eq!(error.code, Code::SchemaInvalid, "{text}");
    assert_eq!(error.pointer.as_deref(), Some(pointer), "{text}: {error}");
    assert!(
        error.message.contains(says),
        "{text}: expected {says:?} in {error}"
    );
    assert!(error.message.contains("(byte "), "{text}: {error}");
    error
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// Proves JSON-1, F-29: a key that comes twice is refused at any depth and also when one spelling is escaped.
#[test]
fn json_1_duplicate_keys() {
    for (text, pointer) in [
        (r#"{"a":1,"a":2}"#, "/a"),
        (r#"{"amount":1,"amount":2}"#, "/amount"),
        (r#"{"a":1,"\u0061":2}"#, "/a"),
        (r#"{"x":[{"b":{"c":1,"d":2,"c":1}}]}"#, "/x/0/b/c"),
        (r#"{"":0,"":0}"#, "/"),
        (r#"{"a/b":0,"a\/b":0}"#, "/a~1b"),
    ] {
        refused(text.as_bytes(), pointer, "twice");
    }
    assert!(parse(r#"[{"a":1},{"a":2},{"A":1,"a":1}]"#.as_bytes()).is_ok());
}

/// Proves JSON-2: comments, trailing commas and other liberties are refused.
#[test]
fn json_2_no_liberties() {
    for (text, pointer) in [
        ("[1,]", "/1"),
        (r#"{"a":1,}"#, ""),
        ("/* c */ 1", ""),
        ("1 // c", ""),
        ("[1 /* c */]", "/1"),
        ("{a:1}", ""),
        ("{'a':1}", ""),
        ("[NaN]", "/0"),
        ("[Infinity]", "/0"),
        ("\u{feff}1", ""),
        ("1 2", ""),
        ("", ""),
        ("[01]", "/0"),
        ("[+1]", "/0"),
        ("[.5]", "/0"),
        ("\"a\nb\"", ""),
        ("\u{a0}1", ""),
    ] {
        refused(text.as_bytes(), pointer, "");
    }
}

/// Proves JSON-3: 64 levels are read, 65 are not, whatever they are made of.
#[test]
fn json_3_depth() {
    assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
    refused(
        nested(MAX_DEPTH + 1).as_bytes(),
        &"/0".repeat(MAX_DEPTH),
        "64 levels",
    );
    let objects = |depth: usize| format!("{}0{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    assert!(parse(objects(MAX_DEPTH).as_bytes()).is_ok());
    refused(
        objects(MAX_DEPTH + 1).as_bytes(),
        &"/a".repeat(MAX_DEPTH),
        "64 levels",
    );
    refused(
        "[".repeat(100_000).as_bytes(),
        &"/0".repeat(MAX_DEPTH),
        "64 levels",
    );
}

/// Proves JSON-4: 1 048 576 bytes are read, one more is not.
#[test]
fn json_4_size() {
    let text = |size: usize| format!("\"{}\"", "x".repeat(size - 2));
    assert!(parse(text(MAX_INPUT_BYTES).as_bytes()).is_ok());
    let error = refused(
        text(MAX_INPUT_BYTES + 1).as_bytes(),
        "",
        "at most 1048576 bytes",
    );
    assert!(error.message.contains("found 1048577"), "{error}");
    assert!(parse_with_limit(text(MAX_INPUT_BYTES + 1).as_bytes(), MAX_INPUT_BYTES + 1).is_ok());
}

/// Proves JSON-5, F-28: surrogates without their partner, in the wrong order, and raw bytes that are not UTF-8.
#[test]
fn json_5_surrogates() {
    for text in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\udc00\ud800""#,
        r#""\ud800\u0041""#,
        r#""\ud800\ud800""#,
        r#""\uD83Dx""#,
    ] {
        refused(text.as_bytes(), "", "surrogate");
    }
    refused(br#"{"a":["\ud800"]}"#, "/a/0", "surrogate");
    refused(br#"{"\ud800":1}"#, "", "surrogate");
    refused(b"\"\xff\"", "", "UTF-8");
    refused(b"\"\xed\xa0\x80\"", "", "UTF-8");
    refused(b"\"\xc0\xaf\"", "", "UTF-8");
    assert_eq!(parse(br#""\ud83d\ude02""#), Ok(Value::from("\u{1f602}")));
}

/// Proves JSON-6, F-27, F-40: only safe integers, written plainly; nothing is rounded and no member gets lost.
#[test]
fn json_6_numbers() {
    for number in [0, 1, -1, MAX_SAFE_INTEGER, -MAX_SAFE_INTEGER] {
        assert_eq!(parse(number.to_string().as_bytes()), Ok(Value::Int(number)));
    }
    for text in [
        "9007199254740992",
        "9007199254740993",
        "-9007199254740992",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "-9223372036854775809",
        "1.5",
        "1.0",
        "-0",
        "-0.0",
        "0.0",
        "1e2",
        "1E2",
        "1e-2",
        "0e0",
        "100000000000000000000000000000000000000000000",
    ] {
        refused(text.as_bytes(), "", "expected an integer within");
        refused(
            format!(r#"{{"kept":1,"n":[0,{text}]}}"#).as_bytes(),
            "/n/1",
            "expected an integer within",
        );
    }
    refused(b"1e400", "", "");
    refused(b"-1e400", "", "");
}

/// The byte offset leads to the place.
#[test]
fn offsets_lead_to_the_place() {
    for (text, offset) in [
        ("{\"a\":1,\n \"b\": tru}", 17),
        ("[1,2,x]", 5),
        ("[1,\n2,\nx]", 7),
        ("\"\u{e4}\u{f6}\" x", 7),
    ] {
        let error = parse(text.as_bytes()).expect_err(text);
        assert!(
            error.message.contains(&format!("(byte {offset})")),
            "{text:?}: {error}"
        );
    }
}

/// A key that another JSON library treats as magic is an ordinary key here.
#[test]
fn no_key_is_magic() {
    let text = r#"{"$serde_json::private::Number":"1.5"}"#;
    assert_eq!(
        parse(text.as_bytes())
            .map(|value| value.to_string())
            .as_deref(),
        Ok(text)
    );
}

/// What was found may be as large as the input; message and pointer of the refusal are not.
#[test]
fn refusals_are_small() {
    let key = "k".repeat(500_000);
    for text in [
        format!(r#"{{"{key}":1,"{key}":2}}"#),
        format!(r#"{{"a":{{"{key}":1.5}}}}"#),
    ] {
        let error = parse(text.as_bytes()).expect_err("refused");
        assert!(error.message.contains("(byte "), "{error}");
        assert!(
            error.message.chars().count() < 1_100
                && error.pointer.as_ref().is_some_and(|at| at.len() < 4_100)
        );
    }
    let error = parse(format!(r#"{{"a":{{"{key}":1.5}}}}"#).as_bytes()).expect_err("refused");
    assert_eq!(error.pointer.as_deref(), Some("/a"));
}

proptest! {
    /// No bytes whatever make the parser panic, and what it reads it reads again from its own text.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(value) = parse(&bytes) {
            prop_assert_eq!(parse(value.to_string().as_bytes()), Ok(value));
        }
    }

    /// The same for texts that look like JSON, so that more of them get in.
    #[test]
    fn json_like_texts_are_read_or_refused(text in r#"[\[\]{}:,"a\\u0d89ef\-.\ 12tnull]{0,40}"#) {
        match parse(text.as_bytes()) {
            Ok(value) => prop_assert_eq!(parse(value.to_string().as_bytes()), Ok(value)),
            Err(error) => prop_assert_eq!(error.code, Code::SchemaInvalid),
        }
    }
}
