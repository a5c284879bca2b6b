//! Schemas: what compiles, what is refused, and what a compiled one says.
//! Invariant: an unknown keyword or a reference that is not local never compiles.
//! Called by `cargo test`.

use aiws::error::Code;
use aiws::json::Value;
use aiws::schema::Schema;
use aiws::strict::parse;

fn value(text: &str) -> Value {
    parse(text.as_bytes()).expect(text)
}

/// Schemas with local references only: one case per keyword that is outside the subset, at its place.
#[test]
fn what_does_not_compile() {
    for (text, pointer) in [
        (r#"{"format":"email"}"#, "/format"),
        (r##"{"$dynamicRef":"#x"}"##, "/$dynamicRef"),
        (r#"{"$dynamicAnchor":"x"}"#, "/$dynamicAnchor"),
        (r#"{"$id":"https://example.com/x"}"#, "/$id"),
        (r#"{"$anchor":"x"}"#, "/$anchor"),
        (r#"{"pattern":"a"}"#, "/pattern"),
        (r#"{"if":true}"#, "/if"),
        (
            r#"{"unevaluatedProperties":false}"#,
            "/unevaluatedProperties",
        ),
        (r#"{"$async":true}"#, "/$async"),
        (r#"{"$ref":"https://example.com/schema.json"}"#, "/$ref"),
        (r#"{"$ref":"other.json#/$defs/a"}"#, "/$ref"),
        (r##"{"$ref":"#anchor"}"##, "/$ref"),
        (r##"{"$ref":"#/$defs/a%62"}"##, "/$ref"),
        (r##"{"$ref":"#/$defs/none"}"##, "/$ref"),
        (
            r##"{"$defs":{"a":{"enum":[{"type":"object"}]}},"$ref":"#/$defs/a/enum/0"}"##,
            "/$ref",
        ),
        (
            r#"{"$schema":"http://json-schema.org/draft-07/schema#"}"#,
            "/$schema",
        ),
        (
            r#"{"properties":{"a":{"items":{"format":"date"}}}}"#,
            "/properties/a/items/format",
        ),
        (r#"{"properties":{"a":1}}"#, "/properties/a"),
        (r#"{"properties":[]}"#, "/properties"),
        (r#"{"allOf":{}}"#, "/allOf"),
        (r#"{"type":"text"}"#, "/type"),
        (r#"{"minLength":-1}"#, "/minLength"),
        (r#"{"required":"a"}"#, "/required"),
        ("7", ""),
    ] {
        let error = Schema::compile(&value(text)).expect_err(text);
        assert_eq!(error.code, Code::SchemaInvalid, "{text}");
        assert_eq!(error.pointer.as_deref(), Some(pointer), "{text}: {error}");
    }
}

/// References in a circle are refused; references that branch beyond the bound are too; sharing a definition is fine.
#[test]
fn references_end() {
    for (text, pointer) in [
        (r##"{"$ref":"#"}"##, "/$ref"),
        (
            r##"{"properties":{"next":{"$ref":"#"}}}"##,
            "/properties/next/$ref",
        ),
        (
            r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"not":{"$ref":"#/$defs/a"}}}}"##,
            "/$defs/b/not/$ref",
        ),
    ] {
        let error = Schema::compile(&value(text)).expect_err(text);
        assert_eq!(error.pointer.as_deref(), Some(pointer), "{text}: {error}");
    }
    let doubling = (1..30).fold(r#""d0":{"type":"integer"}"#.to_owned(), |text, level| {
        let below = level - 1;
        format!(r##"{text},"d{level}":{{"allOf":[{{"$ref":"#/$defs/d{below}"}},{{"$ref":"#/$defs/d{below}"}}]}}"##)
    });
    let error = Schema::compile(&value(&format!(
        r##"{{"$defs":{{{doubling}}},"$ref":"#/$defs/d29"}}"##
    )))
    .expect_err("2^29");
    assert!(error.message.contains("references followed"), "{error}");
    let shared = r##"{"$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"},"b":{"$ref":"#/$defs/n"}}}"##;
    let schema = Schema::compile(&value(shared)).expect("shared");
    assert_eq!(
        schema
            .validate(&value(r#"{"a":1,"b":"x"}"#))
            .expect_err("b")
            .pointer
            .as_deref(),
        Some("/b")
    );
}

/// Size and number of subschemas are bounded.
#[test]
fn schemas_are_bounded() {
    let wide = |count: usize| value(&format!("{{\"allOf\":[{}]}}", vec!["{}"; count].join(",")));
    assert!(Schema::compile(&wide(1_023)).is_ok());
    assert!(Schema::compile(&wide(1_024)).is_err());
    let long = format!(
        "{{\"title\":\"{}\"}}",
        "x".repeat(aiws::limits::MAX_SCHEMA_BYTES)
    );
    assert!(
        Schema::compile(&value(&long))
            .expect_err("long")
            .message
            .contains("canonical bytes")
    );
}

/// A value that does not fit is reported at its place, and the message does not repeat it.
#[test]
fn a_refusal_shows_the_place_and_not_the_value() {
    let schema = Schema::compile(&value(
        r#"{"type":"object","required":["list"],"additionalProperties":false,
            "properties":{"list":{"type":"array","items":{"type":"string","maxLength":3}},"word":{"const":"other"}}}"#,
    ))
    .expect("schema");
    assert_eq!(schema.validate(&value(r#"{"list":["abc"]}"#)), Ok(()));
    for (text, pointer) in [
        (r#"{"list":["abc","canary"]}"#, "/list/1"),
        (r#"{"list":[],"word":"canary"}"#, "/word"),
        (r#"{}"#, ""),
        (r#"{"list":"canary"}"#, "/list"),
        (r#""canary""#, ""),
    ] {
        let error = schema.validate(&value(text)).expect_err(text);
        assert_eq!(
            (error.code, error.pointer.as_deref()),
            (Code::SchemaInvalid, Some(pointer)),
            "{text}"
        );
        assert!(!error.message.contains("canary"), "{error}");
    }
}
