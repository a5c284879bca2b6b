//! Keys, checkpoints, and what they show of a store: that it went on, was cut off, or was rewritten; and one mission's proofs.
//! Invariant: every store here is sound for a plain `verify`; only the checkpoint tells them apart. Part of the tests of `tools`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aiws::json::Value;
use praxis_journal_format::seal;

use super::deep::{events, store_of};
use crate::support::{Called, World, called, finished, text};

/// A key and a checkpoint in a world: the key's path, the verifier key, the checkpoint's path.
fn signed(world: &World) -> (String, String, String) {
    let path = |name: &str| world.dir.path().join(name).to_str().unwrap().to_owned();
    let (key, note) = (path("checkpoint.key"), path("kept.note"));
    let made = world.verb(&["keygen", &key]);
    assert_eq!(made.exit, Some(0), "{}", made.err);
    let signed = world.verb(&["checkpoint", "--key", &key, "--out", &note]);
    assert_eq!(signed.exit, Some(0), "{}{}", signed.out, signed.err);
    (key, made.out.trim().to_owned(), note)
}

fn compare(store: &Path, note: &str, key: &str) -> Called {
    let mut command = Command::new(env!("CARGO_BIN_EXE_praxis"));
    command
        .arg("--store")
        .arg(store)
        .args(["verify", "--checkpoint", note, "--verifier-key", key])
        .stdin(Stdio::null());
    called(&mut command)
}

fn verify_py(arguments: &[&str]) -> Called {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../journal-format/verify.py");
    called(Command::new("python3").arg(script).args(arguments))
}

fn refused(called: &Called, code: &str, exit: i32) {
    assert_eq!(called.exit, Some(exit), "{}{}", called.out, called.err);
    assert!(called.err.contains(code), "{code}: {}", called.err);
}

/// Proves STO-4: a checkpoint that was kept outside tells a log that went on from one that was cut off with its index, and
/// from one that was rewritten with right hashes; all of them are sound by themselves.
#[test]
fn sto_4_a_checkpoint_tells_what_was_cut_off_and_what_was_rewritten() {
    let world = finished();
    let (_, key, note) = signed(&world);
    let value = world.json(&["verify", "--checkpoint", &note, "--verifier-key", &key]);
    assert_eq!(
        value.pointer("/checkpoints/0/standing"),
        Some(&"EXTENDS".into())
    );
    let same = compare(&world.store, &note, &key);
    assert_eq!(same.exit, Some(0), "{}{}", same.out, same.err);
    let count = text(&value, "/events");
    let line = format!("extends the checkpoint of {count} events\n");
    assert!(same.out.contains(&line), "{}", same.out);

    let all = events(&world.store);
    let id = text(&value, "/storeId");
    let place = |name: &str| world.dir.path().join(name);
    let last = all.iter().rposition(|sealed| sealed.event.part.k.0 == 1);
    let fewer = &all[..last.unwrap()];
    let cut = store_of(place("cut"), id, fewer);
    let told = compare(&cut, &note, &key);
    assert_eq!(told.exit, Some(6), "{}{}", told.out, told.err);
    assert!(told.out.contains("CHECKPOINT_AHEAD"), "{}", told.out);

    let mut event = all.last().unwrap().event.clone();
    event.result = Value::Null;
    let mut other = all.clone();
    *other.last_mut().unwrap() = seal(event).unwrap();
    let rewritten = store_of(place("rewritten"), id, &other);
    let told = compare(&rewritten, &note, &key);
    assert_eq!(told.exit, Some(6), "{}{}", told.out, told.err);
    assert!(told.out.contains("CHECKPOINT_FORKED"), "{}", told.out);
    for store in [&cut, &rewritten] {
        let mut plain = Command::new(env!("CARGO_BIN_EXE_praxis"));
        plain.arg("--store").arg(store).arg("verify");
        assert_eq!(called(plain.stdin(Stdio::null())).exit, Some(0));
    }
    // A store that goes by another name is not this log at all.
    let foreign = store_of(place("foreign"), "foreign", &all);
    refused(&compare(&foreign, &note, &key), "CHECKPOINT_UNTRUSTED", 6);
}

/// Proves STO-4: what is no checkpoint, no key, or not signed by the key is refused as that, and nothing is signed or replaced.
#[test]
fn sto_4_checkpoints_and_keys_are_refused_for_what_they_are() {
    let world = finished();
    let (key, verifier, note) = signed(&world);
    assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
    let secret = fs::read_to_string(&key).unwrap();
    assert!(secret.starts_with("PRIVATE+KEY+praxis-tree-0/"), "{secret}");
    refused(&world.verb(&["keygen", &key]), "USAGE", 2);
    refused(
        &world.verb(&["checkpoint", "--key", &key, "--out", &note]),
        "USAGE",
        2,
    );
    assert_eq!(fs::read_to_string(&key).unwrap(), secret);
    let path = |name: &str| world.dir.path().join(name).to_str().unwrap().to_owned();
    refused(
        &world.verb(&["keygen", &path("x"), "--name", "a b"]),
        "KEY_INVALID",
        2,
    );
    let other = world.verb(&["keygen", &path("other.key"), "--name", "other"]);
    refused(
        &compare(&world.store, &note, other.out.trim()),
        "CHECKPOINT_UNTRUSTED",
        6,
    );
    refused(
        &compare(&world.store, &note, secret.trim()),
        "KEY_INVALID",
        2,
    );
    refused(&compare(&world.store, &note, "a+b+c"), "KEY_INVALID", 2);
    refused(
        &compare(&world.store, &path("none"), &verifier),
        "CHECKPOINT_INVALID",
        2,
    );
    let kept = fs::read_to_string(&note).unwrap();
    let size = kept.lines().nth(1).unwrap();
    let changed = world.file(
        "changed.note",
        &kept.replace(&format!("\n{size}\n"), "\n1\n"),
    );
    refused(
        &compare(&world.store, changed.to_str().unwrap(), &verifier),
        "CHECKPOINT_UNTRUSTED",
        6,
    );
    let unsigned = world.verb(&["checkpoint"]);
    assert_eq!(unsigned.exit, Some(0), "{}", unsigned.err);
    assert!(
        unsigned.out.starts_with("praxis-tree-0/"),
        "{}",
        unsigned.out
    );
    let unsigned = world.file("unsigned.note", &unsigned.out);
    refused(
        &compare(&world.store, unsigned.to_str().unwrap(), &verifier),
        "CHECKPOINT_INVALID",
        2,
    );
    // One without the other is no call.
    assert_eq!(world.verb(&["verify", "--checkpoint", &note]).exit, Some(2));
    assert_eq!(
        world.verb(&["verify", "--verifier-key", &verifier]).exit,
        Some(2)
    );
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let open = world.verb(&["checkpoint", "--key", &key]);
    refused(&open, "KEY_INVALID", 2);
    assert!(!open.err.contains(secret.rsplit('+').next().unwrap().trim()));
}

/// Proves STO-4, AUD-5: the events of one mission are exported with proofs that the verifier in another language checks, with
/// the signature; what is changed in it is found.
#[test]
fn sto_4_one_mission_is_exported_with_proofs() {
    let world = finished();
    let (_, key, note) = signed(&world);
    let run = text(&world.json(&["show"]), "/run").to_owned();
    let file: PathBuf = world.dir.path().join("one.jsonl");
    let path = file.to_str().unwrap();
    let export = ["export", path, "--mission", &run, "--checkpoint", &note];
    let made = world.verb(&export);
    assert_eq!(made.exit, Some(0), "{}{}", made.out, made.err);
    let checked = verify_py(&["--verifier-key", &key, path]);
    assert_eq!(checked.exit, Some(0), "{}{}", checked.out, checked.err);
    assert_eq!(
        verify_py(&[path]).exit,
        Some(1),
        "a signature nobody checked"
    );
    let written = fs::read_to_string(&file).unwrap();
    let printed = world.verb(&["export", "-", "--mission", &run, "--checkpoint", &note]);
    assert_eq!(printed.out, written);
    let at = written.find("\"proof\":[\"").unwrap() + 10;
    let digit = if &written[at..=at] == "0" { "1" } else { "0" };
    let tampered = format!("{}{digit}{}", &written[..at], &written[at + 1..]);
    let tampered = world.file("tampered.jsonl", &tampered);
    let told = verify_py(&["--verifier-key", &key, tampered.to_str().unwrap()]);
    assert_eq!(told.exit, Some(1));
    assert!(told.out.contains("PROOF"), "{}", told.out);
    let nobody = ["export", "-", "--mission", "nobody", "--checkpoint", &note];
    refused(&world.verb(&nobody), "RUN_NOT_FOUND", 2);
    assert_eq!(
        world.verb(&["export", "-", "--mission", &run]).exit,
        Some(2)
    );
    // A whole export extends the checkpoint, also for the other verifier.
    let whole = world.dir.path().join("whole.jsonl");
    let whole = whole.to_str().unwrap();
    assert_eq!(world.verb(&["export", whole]).exit, Some(0));
    let both = verify_py(&["--checkpoint", &note, "--verifier-key", &key, whole]);
    assert_eq!(both.exit, Some(0), "{}", both.out);
}

/// While an engine has the store, it gives the head, compares and exports; the key stays with whoever asks.
#[test]
fn an_engine_gives_its_head_and_compares_for_others() {
    let world = finished();
    let mut serve = world.praxis();
    serve
        .arg("serve")
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut engine = serve.spawn().unwrap();
    let mut lines = BufReader::new(engine.stderr.take().unwrap()).lines();
    let says = lines.find(|line| line.as_ref().unwrap().contains("serving "));
    assert!(says.is_some(), "it serves nobody");
    let (_, key, note) = signed(&world);
    let compared = compare(&world.store, &note, &key);
    let run = text(&world.json(&["show"]), "/run").to_owned();
    let printed = world.verb(&["export", "-", "--mission", &run, "--checkpoint", &note]);
    let pid = rustix::process::Pid::from_child(&engine);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(engine.wait().unwrap().code(), Some(0), "{rest:?}");
    assert_eq!(compared.exit, Some(0), "{}{}", compared.out, compared.err);
    assert!(compared.out.contains("extends the checkpoint"));
    assert_eq!(printed.exit, Some(0), "{}", printed.err);
    assert!(printed.out.starts_with("{\"checkpoint\":"));
}
