//! The example of embedding, run as its readers run it.
//! Invariant: a real process, on a directory of its own.
//! Test of `examples/embed.rs`.

use std::process::Command;

/// The example builds, runs to its end, and is as short as promised.
#[test]
fn the_example_runs() {
    let source = include_str!("../../examples/embed.rs");
    assert!(source.lines().count() < 60, "under 60 lines");
    let dir = tempfile::TempDir::new().expect("a directory");
    // Beside this test's own binary stands the directory of the examples.
    let own = std::env::current_exe().expect("a path");
    let example = own
        .parent()
        .and_then(|deps| deps.parent())
        .expect("a profile")
        .join("examples/embed");
    let output = Command::new(&example)
        .arg(dir.path().join("store"))
        .output()
        .expect("the example was built");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(text, "hello from greet\n2 hand-offs committed\n");
}
