//! Third-party corpora, found through PRAXIS_CORPORA: JSONTestSuite, the RFC 8785 vectors, the JSON Schema suite.
//! Invariant: each case where this crate differs from the corpus is named with the rule that makes the difference.
//! Called by `cargo test`; without the variable each test says that it skipped, and with CI=true a skip fails.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use aiws::canonical::to_bytes;
use aiws::json::Value;
use aiws::schema::Schema;
use aiws::strict::{parse, parse_with_limit};

/// The files of a corpus by name, or nothing where there is no corpus.
fn files(folder: &str) -> Option<Vec<(String, Vec<u8>)>> {
    let Some(root) = std::env::var_os("PRAXIS_CORPORA") else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "PRAXIS_CORPORA is not set, and in CI a skip fails"
        );
        println!("skipped: PRAXIS_CORPORA is not set");
        return None;
    };
    let folder = PathBuf::from(root).join(folder);
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.expect("entry"))
        .filter(|entry| entry.path().is_file())
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                fs::read(entry.path()).expect("file"),
            )
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} holds no files", folder.display());
    Some(files)
}

/// Cases that the JSON grammar accepts and our domain does not, with the rule.
const STRICTER: &[(&str, &str)] = &[
    ("y_number.json", "JSON-6"),
    ("y_number_0e+1.json", "JSON-6"),
    ("y_number_0e1.json", "JSON-6"),
    ("y_number_double_close_to_zero.json", "JSON-6"),
    ("y_number_int_with_exp.json", "JSON-6"),
    ("y_number_minus_zero.json", "JSON-6"),
    ("y_number_negative_zero.json", "JSON-6"),
    ("y_number_real_capital_e.json", "JSON-6"),
    ("y_number_real_capital_e_neg_exp.json", "JSON-6"),
    ("y_number_real_capital_e_pos_exp.json", "JSON-6"),
    ("y_number_real_exponent.json", "JSON-6"),
    ("y_number_real_fraction_exponent.json", "JSON-6"),
    ("y_number_real_neg_exp.json", "JSON-6"),
    ("y_number_real_pos_exponent.json", "JSON-6"),
    ("y_number_simple_real.json", "JSON-6"),
    ("y_object_duplicated_key.json", "JSON-1"),
    ("y_object_duplicated_key_and_value.json", "JSON-1"),
    ("y_object_extreme_numbers.json", "JSON-6"),
    ("y_structure_lonely_negative_real.json", "JSON-6"),
];

/// Proves JSON-1, JSON-2, JSON-5, JSON-6: JSONTestSuite, with every difference named.
#[test]
fn json_test_suite() {
    let Some(files) = files("json-test-suite/test_parsing") else {
        return;
    };
    let mut differences = BTreeSet::new();
    for (name, bytes) in &files {
        match (name.as_bytes()[0], parse(bytes)) {
            (b'n', Ok(value)) => panic!("{name} must be refused, was read as {value}"),
            (b'y', Err(error)) => {
                let rule = STRICTER
                    .iter()
                    .find(|(stricter, _)| stricter == name)
                    .map(|(_, rule)| *rule);
                let says = match rule {
                    Some("JSON-1") => "expected unique keys",
                    Some("JSON-6") => "expected an integer",
                    other => panic!("{name}: {other:?} does not explain {error}"),
                };
                assert!(error.message.starts_with(says), "{name}: {error}");
                differences.insert(name.as_str());
            }
            _ => {}
        }
    }
    let named: BTreeSet<&str> = STRICTER.iter().map(|(name, _)| *name).collect();
    assert_eq!(differences, named, "every named difference is one");
    println!(
        "{} cases, {} stricter than the grammar",
        files.len(),
        named.len()
    );
}

/// Vectors outside the number domain, with the rule.
const OUTSIDE_DOMAIN: &[(&str, &str)] = &[("structures.json", "JSON-6"), ("values.json", "JSON-6")];

/// Proves CJ-1: the published RFC 8785 vectors within the number domain; the others are refused, not rounded.
#[test]
fn cj_1_rfc_8785_vectors() {
    let (Some(inputs), Some(outputs)) = (
        files("rfc8785/testdata/input"),
        files("rfc8785/testdata/output"),
    ) else {
        return;
    };
    assert_eq!(inputs.len(), outputs.len());
    let mut within = 0;
    for ((name, input), (_, output)) in inputs.iter().zip(&outputs) {
        match OUTSIDE_DOMAIN.iter().find(|(outside, _)| outside == name) {
            Some((_, rule)) => assert!(parse(input).is_err(), "{name} breaks {rule}"),
            None => {
                let value = parse(input).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(to_bytes(&value), *output, "{name}");
                within += 1;
            }
        }
    }
    assert!(within >= 4, "only {within} vectors were compared");
}

/// The JSON Schema suite: what compiles in our subset gives the suite's answer for every instance in our domain.
#[test]
fn json_schema_suite() {
    let Some(files) = files("json-schema-2020-12/tests") else {
        return;
    };
    let (mut compared, mut outside) = (0, 0);
    for (name, bytes) in &files {
        // The suite holds floats; serde_json reads the file, and each schema and instance enters our domain by itself.
        let groups: Vec<serde_json::Value> = serde_json::from_slice(bytes).expect(name);
        for group in &groups {
            let Some(schema) =
                domain(&group["schema"]).and_then(|schema| Schema::compile(&schema).ok())
            else {
                outside += 1;
                continue;
            };
            for case in group["tests"].as_array().expect("tests") {
                let Some(instance) = domain(&case["data"]) else {
                    continue;
                };
                let valid = schema.validate(&instance).is_ok();
                assert_eq!(
                    valid,
                    case["valid"] == true,
                    "{name}: {}: {}",
                    group["description"],
                    case["description"]
                );
                compared += 1;
            }
        }
    }
    println!("{compared} instances compared; {outside} schemas are outside the subset");
    assert!(compared > 300, "only {compared} instances were compared");
}

fn domain(value: &serde_json::Value) -> Option<Value> {
    parse_with_limit(&serde_json::to_vec(value).ok()?, usize::MAX).ok()
}
