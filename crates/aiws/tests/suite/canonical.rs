//! Canonical bytes: golden vectors, and an independent library as the oracle.
//! Invariant: one value has one text, and the text reads back to the value.
//! Called by `cargo test`.

use std::collections::BTreeMap;

use aiws::canonical::{bytes_of, digest_of, from_value, to_bytes, to_value};
use aiws::digest::sha256;
use aiws::error::Code;
use aiws::json::{Object, Value};
use aiws::limits::{MAX_DEPTH, MAX_SAFE_INTEGER};
use aiws::strict::parse;
use proptest::prelude::*;

/// Proves CJ-1: fixed texts have fixed canonical bytes.
#[test]
fn cj_1_golden_vectors() {
    for (text, canonical) in [
        (
            " { \"b\" : [ 1 , -2 ] , \"a\" : null } ",
            r#"{"a":null,"b":[1,-2]}"#,
        ),
        (
            r#"{"10":0,"9":0,"1":0,"":0}"#,
            r#"{"":0,"1":0,"10":0,"9":0}"#,
        ),
        (r#""\u0041\u002f\/\u00e9""#, "\"A//\u{e9}\""),
        (
            r#""\u0000\u0008\u0009\u000a\u000b\u000c\u000d\u001f\u007f\"\\""#,
            "\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\u{7f}\\\"\\\\\"",
        ),
        // By UTF-16 code unit the surrogate pair of the smiley (d83d) comes before fb33; by scalar value it comes after.
        (
            r#"{"\ufb33":1,"\ud83d\ude02":2,"\u20ac":3}"#,
            "{\"\u{20ac}\":3,\"\u{1f602}\":2,\"\u{fb33}\":1}",
        ),
        ("[true,false,[],{}]", "[true,false,[],{}]"),
    ] {
        let value = parse(text.as_bytes()).expect(text);
        assert_eq!(
            String::from_utf8(to_bytes(&value)).expect("UTF-8"),
            canonical,
            "{text}"
        );
        assert_eq!(value.to_string(), canonical);
    }
}

/// Proves CJ-1: whatever order and spelling members come in, the bytes are the same.
#[test]
fn cj_1_permuted_input_gives_the_same_bytes() {
    let members = [r#""a":1"#, r#""\u0062":{"y":0,"x":1}"#, r#""c":[1,2]"#];
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for order in orders {
        let text = format!("{{{}}}", order.map(|place| members[place]).join(" , "));
        let value = parse(text.as_bytes()).expect(&text);
        assert_eq!(to_bytes(&value), br#"{"a":1,"b":{"x":1,"y":0},"c":[1,2]}"#);
    }
}

/// Typed values go through the same serializer, and what is outside the number domain is refused with its place.
#[test]
fn typed_values_keep_to_the_domain() {
    let mut typed = BTreeMap::from([("b", vec![1i64]), ("a", vec![2, 3])]);
    assert_eq!(bytes_of(&typed).expect("bytes"), br#"{"a":[2,3],"b":[1]}"#);
    assert_eq!(
        digest_of(&typed).expect("digest"),
        sha256(br#"{"a":[2,3],"b":[1]}"#)
    );
    typed.insert("c", vec![0, MAX_SAFE_INTEGER + 1]);
    let error = to_value(&typed).expect_err("unsafe");
    assert_eq!(
        (error.code, error.pointer.as_deref()),
        (Code::SchemaInvalid, Some("/c/1"))
    );
    let error = to_value(&BTreeMap::from([("x/y", 1.5)])).expect_err("float");
    assert_eq!(error.pointer.as_deref(), Some("/x~1y"));
    let deep = (0..MAX_DEPTH + 1).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    assert!(to_value(&deep).is_err());
}

/// A value read through any serde format obeys the same rules as strict text.
#[test]
fn values_from_other_formats_are_strict() {
    for text in ["1.5", "9007199254740992", r#"{"a":1,"a":2}"#, "-0"] {
        assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
    }
    assert_eq!(
        serde_json::from_str::<Value>(r#"{"a":[1]}"#)
            .expect("read")
            .to_string(),
        r#"{"a":[1]}"#
    );
    assert_eq!(from_value::<Value>(&Value::Int(3)), Ok(Value::Int(3)));
}

fn values() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".{0,8}",
        "[\u{0}-\u{20}\"\\\\\u{7f}\u{e000}-\u{e005}\u{fb33}\u{1f602}\u{10ffff}a-c]{0,5}"
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).prop_map(Value::Int),
        text.clone().prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        let members = proptest::collection::btree_map(text.clone(), inner.clone(), 0..8);
        prop_oneof![
            proptest::collection::vec(inner, 0..8).prop_map(Value::Array),
            members.prop_map(|members: Object| Value::Object(members)),
        ]
    })
}

proptest! {
    /// Proves CJ-1: an independent RFC 8785 library writes the same bytes for every value of the domain.
    #[test]
    fn cj_1_agrees_with_an_independent_library(value in values()) {
        let oracle = serde_json_canonicalizer::to_vec(&value).expect("oracle");
        prop_assert_eq!(String::from_utf8(to_bytes(&value)), String::from_utf8(oracle));
    }

    /// Text and value are two forms of the same thing.
    #[test]
    fn canonical_text_reads_back(value in values()) {
        prop_assert_eq!(parse(&to_bytes(&value)), Ok(value.clone()));
        prop_assert_eq!(to_value(&value), Ok(value));
    }
}
