//! The comparison of schemas and readers can fail: it finds a schema that says something else.
//! Invariant: each case spoils one thing, and spoils it where the text is found.
//! Called by `cargo test`.

use aiws::json::Value;
use aiws::published::Published;

use crate::agree::{Seen, Subject};
use crate::examples;
use crate::schemas::{HANDOFF, definition, schema, sets};

/// The comparison finds a schema that says something else: a bound, a name, a member, a condition more or less.
#[test]
fn the_comparison_can_fail() {
    let example = |name: &str| {
        let mut all = examples::all().into_iter();
        all.find(|one| one.name == name).expect(name)
    };
    for (name, from, to) in [
        ("manifest", r#""maxLength": 256"#, r#""maxLength": 257"#),
        ("manifest", r#""maxLength": 256"#, r#""maxLength": 255"#),
        ("manifest", "[0-9]{0,99}", "[0-9]{0,98}"),
        ("manifest", "^[0-9a-f]{64}$", "^[0-9a-fA-F]{64}$"),
        ("manifest", r#""SKIPPED", "BLOCKED""#, r#""BLOCKED""#),
        (
            "manifest",
            r#""MET", "NOT_MET""#,
            r#""MET", "NOT_MET", "FAIL""#,
        ),
        (
            "manifest",
            r#""required": ["id", "revision"]"#,
            r#""required": ["id"]"#,
        ),
        (
            "manifest",
            r##""workerId": {"$ref": "#/$defs/Id"}"##,
            r##""worker": {"$ref": "#/$defs/Id"}"##,
        ),
        (
            "manifest",
            r##""intent": {"$ref": "#/$defs/Text"}"##,
            r##""intent": {"$ref": "#/$defs/SomeText"}"##,
        ),
        ("manifest", r#"{"contains": {"const": "HOLDS"}}"#, "true"),
        ("manifest", r#"{"pattern": "%[0-9A-Fa-f]{2}"}"#, "false"),
        (
            "manifest",
            r#""lineage": {"$ref""#,
            r#""more": true, "lineage": {"$ref""#,
        ),
        ("manifest", r#""maxItems": 4096"#, r#""maxItems": 4097"#),
        ("manifest", r#""minLength": 1"#, r#""minLength": 0"#),
        ("config", r#""required": ["rule"]"#, r#""required": []"#),
        (
            "config",
            r##""leaseMs": {"$ref": "#/$defs/DecPlus"}"##,
            r##""leaseMs": {"$ref": "#/$defs/Dec"}"##,
        ),
        (
            "delivery",
            "1844674407370955161[0-5]",
            "1844674407370955161[0-6]",
        ),
        (
            "pending",
            r#""generation": {"const": "0"}"#,
            r#""generation": true"#,
        ),
        (
            "hold",
            r#""decision": {"const": "RECHECK"}"#,
            r#""decision": true"#,
        ),
        (
            "invalidation",
            r##""holdId": {"anyOf": [{"$ref": "#/$defs/Id"}, {"type": "null"}]}"##,
            r##""holdId": {"$ref": "#/$defs/Id"}"##,
        ),
    ] {
        let text = schema(HANDOFF).text.replace(from, to);
        assert_ne!(text, schema(HANDOFF).text, "{from}");
        let spoiled = Published {
            name: "spoiled",
            text: text.leak(),
            pinned: "",
        };
        let example = example(name);
        let judged = std::panic::catch_unwind(|| {
            let read = |value: &Value| (example.read)(value).map(drop);
            let subject = Subject {
                name,
                schema: &spoiled,
                definition: definition(name),
                value: example.value(),
                read: &read,
                open: example.open,
            };
            let sets = sets();
            let names: Vec<&str> = sets.values().flatten().copied().collect();
            Seen::default().judge(&subject, &names);
        });
        assert!(judged.is_err(), "nobody noticed {to} instead of {from}");
    }
}
