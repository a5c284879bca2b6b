//! Kinds of nodes and their configurations: what is read, and what is refused at its place.
//! Invariant: a kind that is not built is refused as its kind, a configuration of another kind at its member.
//! Called by `cargo test`.

use crate::refusals::{accepted, refused};

/// Node configuration belongs to the node's kind, and a wrong one is reported at its innermost place.
#[test]
fn node_configuration_by_kind() {
    for (place, text, pointer) in [
        (
            "/nodes/1/config",
            r#"{"field":"ok","equals":true,"else":"a"}"#,
            "/nodes/1/config",
        ),
        ("/nodes/1/config/then", r#""""#, "/nodes/1/config/then"),
        (
            "/nodes/1/config/then",
            r#"["join"]"#,
            "/nodes/1/config/then",
        ),
        ("/nodes/1/config/else", "7", "/nodes/1/config/else"),
        ("/nodes/1/config/field", r#""""#, "/nodes/1/config/field"),
        ("/nodes/0/config", "{}", "/nodes/0/config"),
        (
            "/nodes/2/config",
            r#"{"mode":"ALL"}"#,
            "/nodes/2/config/mode",
        ),
        ("/nodes/6/config", r#"{"x":1}"#, "/nodes/6/config/x"),
        ("/nodes/6/config", "[]", "/nodes/6/config"),
        (
            "/nodes/3/config/mode",
            r#""QUORUM""#,
            "/nodes/3/config/mode",
        ),
        ("/nodes/0/inputSchema", "true", "/nodes/0/inputSchema"),
    ] {
        refused("graph", place, text, pointer);
    }
    for kind in [
        "WAIT",
        "SUBWORKFLOW",
        "RECONCILIATION",
        "COMPENSATION",
        "task",
        "SHELL",
        "",
    ] {
        refused(
            "graph",
            "/nodes/6/kind",
            &format!("{kind:?}"),
            "/nodes/6/kind",
        );
    }
}

/// Proves FV-NODE-FORK.1: a FORK is read with an empty configuration, and with no other.
#[test]
fn fv_node_fork_1_config() {
    let fork = |config: &str| {
        format!(r#"{{"id":"end","kind":"FORK","dependsOn":["accept"],"config":{config}}}"#)
    };
    accepted("graph", "/nodes/6", &fork("{}"));
    for (config, pointer) in [
        (r#"{"mode":"ALL"}"#, "/nodes/6/config/mode"),
        (r#"{"branches":["x"]}"#, "/nodes/6/config/branches"),
        ("[]", "/nodes/6/config"),
        ("null", "/nodes/6/config"),
    ] {
        refused("graph", "/nodes/6", &fork(config), pointer);
    }
}

/// Proves HD-04.11: a JOIN waits for ALL or ANY and says nothing else: no quorum, and no transform of what arrives.
#[test]
fn hd_04_11_no_quorum_and_no_transform() {
    for mode in ["ALL", "ANY"] {
        accepted("graph", "/nodes/3/config/mode", &format!("{mode:?}"));
    }
    let place = "/nodes/3/config";
    for (text, pointer) in [
        (r#"{"mode":"QUORUM"}"#, "/nodes/3/config/mode"),
        (r#"{"mode":"any"}"#, "/nodes/3/config/mode"),
        (r#"{"mode":"ANY","quorum":"2"}"#, "/nodes/3/config/quorum"),
        (r#"{"mode":"ANY","count":2}"#, "/nodes/3/config/count"),
        (
            r#"{"mode":"ANY","transform":"x"}"#,
            "/nodes/3/config/transform",
        ),
    ] {
        refused("graph", place, text, pointer);
    }
    let policy = |member: &str| format!(r#"[{{"nodeId":"first","excludeLosers":true{member}}}]"#);
    accepted("config", "/joinPolicy", &policy(""));
    for (text, pointer) in [
        (policy(r#","quorum":"2""#), "/joinPolicy/0/quorum"),
        (
            policy(r#"},{"nodeId":"first","excludeLosers":false"#),
            "/joinPolicy/1",
        ),
        (r#"[{"nodeId":"first"}]"#.to_owned(), "/joinPolicy/0"),
        ("null".to_owned(), "/joinPolicy"),
    ] {
        refused("config", "/joinPolicy", &text, pointer);
    }
    refused(
        "config",
        "/mappings/0",
        r#"{"nodeId":"join","inputPort":"look","fromNodeId":"look","accepts":["COMPLETED"],"transform":"$.x"}"#,
        "/mappings/0/transform",
    );
}

/// Proves FV-NODE-LOOP.1: a LOOP has a bound, a decimal above zero as text, and nothing else.
#[test]
fn fv_node_loop_1_bound() {
    let of = |config: &str| {
        format!(r#"{{"id":"end","kind":"LOOP","dependsOn":["accept"],"config":{config}}}"#)
    };
    let most = format!(r#"{{"maxIterations":"{}"}}"#, "9".repeat(100));
    for config in [
        r#"{"maxIterations":"1"}"#,
        r#"{"maxIterations":"3"}"#,
        &most,
    ] {
        accepted("graph", "/nodes/6", &of(config));
    }
    for bound in [
        r#""0""#,
        r#""-1""#,
        "1",
        r#""01""#,
        r#""1.5""#,
        r#""""#,
        r#""unlimited""#,
        "null",
        "true",
    ] {
        let config = format!(r#"{{"maxIterations":{bound}}}"#);
        refused(
            "graph",
            "/nodes/6",
            &of(&config),
            "/nodes/6/config/maxIterations",
        );
    }
    for (config, pointer) in [
        ("{}", "/nodes/6/config"),
        (
            r#"{"maxIterations":"3","until":"done"}"#,
            "/nodes/6/config/until",
        ),
        (
            r#"{"executionKind":"AGENT"}"#,
            "/nodes/6/config/executionKind",
        ),
    ] {
        refused("graph", "/nodes/6", &of(config), pointer);
    }
}

/// Proves FV-NODE-TASK.1: a fifth execution kind is refused, the four are read.
#[test]
fn fv_node_task_1_execution_kinds() {
    for kind in ["AGENT", "FUNCTION", "TOOL", "HUMAN"] {
        accepted(
            "graph",
            "/nodes/0/config/executionKind",
            &format!("{kind:?}"),
        );
    }
    for kind in ["MODEL", "agent", "SYSTEM", ""] {
        refused(
            "graph",
            "/nodes/0/config/executionKind",
            &format!("{kind:?}"),
            "/nodes/0/config/executionKind",
        );
    }
}
