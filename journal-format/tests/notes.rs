//! Checkpoints, notes and keys: known vectors, one form each, and every refusal with its code.
//!
//! Invariant: what is one byte off is refused, and nothing of a text is believed before its signature. Run by `cargo test`.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aiws::digest::sha256;
use aiws::error::Code;
use aiws::id::StoreId;
use praxis_journal_format::checkpoint::{Checkpoint, origin};
use praxis_journal_format::limits::{MAX_KEY_NAME_BYTES, MAX_NOTE_BYTES, MAX_SIGNATURES};
use praxis_journal_format::note::{Note, NoteError, Signer, Verifier};
use praxis_journal_format::tree::TreeHead;

fn store() -> StoreId {
    "store-1".parse().unwrap()
}

fn signer() -> Signer {
    Signer::new(&origin(&store()), &[7; 32]).unwrap()
}

fn checkpoint() -> Checkpoint {
    let head = TreeHead {
        size: 6,
        root: sha256(b"root"),
    };
    Checkpoint::of(&store(), head)
}

fn refused(note: &str) -> Code {
    let read = Checkpoint::verified(note.as_bytes(), &signer().verifier());
    read.unwrap_err().code()
}

/// Proves STO-4: notes and keys are those of the format that others sign and verify: the vector of its first implementation.
#[test]
fn sto_4_a_note_of_another_implementation_is_read_and_written() {
    let secret = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
    let public = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    let text = "If you think cryptography is the answer to your problem,\n\
                then you don't know what your problem is.\n";
    let note = format!(
        "{text}\n\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
    );
    let signer = Signer::parse(secret).unwrap();
    assert_eq!(signer.secret_text(), secret);
    assert_eq!(signer.verifier().text(), public);
    assert_eq!(signer.sign(text).unwrap(), note);
    let verifier = Verifier::parse(&format!("{public}\n")).unwrap();
    let read = Note::parse(note.as_bytes()).unwrap();
    assert_eq!(read.verified(&verifier).unwrap(), text);
    assert!(!format!("{signer:?}").contains("AYEK"), "a secret is shown");
}

/// Proves STO-4: a checkpoint is three lines and a signature; it is read behind its signature, for its own log.
#[test]
fn sto_4_a_checkpoint_is_read_back() {
    let checkpoint = checkpoint();
    let text = checkpoint.to_string();
    let note = checkpoint.signed(&signer()).unwrap();
    assert!(text.starts_with("praxis-tree-0/store-1\n6\n"), "{text}");
    assert_eq!((text.lines().count(), note.lines().count()), (3, 5));
    let read = Checkpoint::verified(note.as_bytes(), &signer().verifier()).unwrap();
    assert_eq!(read, checkpoint);
    assert_eq!(read.of_store(&store()).unwrap(), checkpoint.head);
    assert_eq!(Checkpoint::unverified(note.as_bytes()).unwrap(), checkpoint);
    let other = read.of_store(&"store-2".parse().unwrap()).unwrap_err();
    assert_eq!(other.code(), Code::CheckpointUntrusted);
    // Any store id makes an origin that is one line and names a key.
    let odd: StoreId = "a b\n+\u{e9}%".parse().unwrap();
    assert_eq!(origin(&odd), "praxis-tree-0/a%20b%0a%2b%c3%a9%25");
    let longest: StoreId = "\u{1f600}".repeat(256).parse().unwrap();
    assert!(Signer::new(&origin(&longest), &[1; 32]).is_ok());
}

/// Proves STO-4: no bit of a signed checkpoint can be changed, and no byte cut, without being refused.
#[test]
fn sto_4_every_byte_of_a_checkpoint_is_accounted_for() {
    let note = checkpoint().signed(&signer()).unwrap().into_bytes();
    let verifier = signer().verifier();
    for at in 0..note.len() {
        for bit in 0..8 {
            let mut changed = note.clone();
            changed[at] ^= 1 << bit;
            assert!(
                Checkpoint::verified(&changed, &verifier).is_err(),
                "byte {at}, bit {bit}"
            );
        }
        let cut = &note[..at];
        assert!(Checkpoint::verified(cut, &verifier).is_err(), "cut to {at}");
    }
}

/// Proves STO-4: signatures of keys that nobody asked for are passed over; one of the key itself that does not hold is not,
/// whatever stands beside it.
#[test]
fn sto_4_signatures_are_told_apart() {
    let checkpoint = checkpoint();
    let note = checkpoint.signed(&signer()).unwrap();
    let line = |note: &str| note.lines().last().unwrap().to_owned() + "\n";
    let witness = Signer::new("witness.example/w", &[8; 32]).unwrap();
    let namesake = Signer::new(&origin(&store()), &[9; 32]).unwrap();
    let beside: String = [&witness, &namesake]
        .map(|signer| line(&checkpoint.signed(signer).unwrap()))
        .concat();
    let text = checkpoint.to_string();
    let many = format!("{text}\n{beside}{}", line(&note));
    let verified = |note: &str, signer: &Signer| {
        Checkpoint::verified(note.as_bytes(), &signer.verifier()).map_err(|error| error.code())
    };
    for by in [&signer(), &witness, &namesake] {
        assert_eq!(verified(&many, by), Ok(checkpoint.clone()));
    }
    let without = format!("{text}\n{beside}");
    assert_eq!(refused(&without), Code::CheckpointUntrusted);
    let mut other = checkpoint.clone();
    other.head.size = 7;
    let stale = line(&other.signed(&signer()).unwrap());
    for lines in [
        format!("{stale}{}", line(&note)),
        format!("{}{stale}", line(&note)),
    ] {
        let note = format!("{text}\n{lines}");
        assert_eq!(refused(&note), Code::CheckpointUntrusted);
        assert_eq!(
            verified(&note, &witness).unwrap_err(),
            Code::CheckpointUntrusted
        );
    }
}

/// Proves STO-4: what is no checkpoint, or not in its one form, is refused as that, signed or not, within its bounds.
#[test]
fn sto_4_a_checkpoint_has_one_form() {
    let signer = signer();
    let root = checkpoint().to_string().lines().last().unwrap().to_owned();
    let texts = [
        "praxis-tree-0/store-1\n6\n".to_owned(),
        format!("praxis-tree-0/store-1\n6\n{root}\nmore\n"),
        format!("praxis-tree-0/store-1\n06\n{root}\n"),
        format!("praxis-tree-0/store-1\n+6\n{root}\n"),
        format!("praxis-tree-0/store-1\n-1\n{root}\n"),
        format!("praxis-tree-0/store-1\n18446744073709551616\n{root}\n"),
        format!("praxis-tree-0/store-1\n6\n{}\n", &root[..43]),
        format!("praxis-tree-0/store-1\n6\n{root}AAAA\n"),
        format!("praxis-tree-0/store-1\n6\n{}\n", root.replace('=', "")),
        format!("\n6\n{root}\n"),
        format!("praxis-tree-0/store-1\n6 \n{root}\n"),
    ];
    for text in &texts {
        let note = signer.sign(text).unwrap();
        assert_eq!(refused(&note), Code::CheckpointInvalid, "{text:?}");
    }
    let note = checkpoint().signed(&signer).unwrap();
    let line = note.lines().last().unwrap();
    let name = origin(&store());
    let notes = [
        String::new(),
        "\n".to_owned(),
        "\n\n".to_owned(),
        note.trim_end().to_owned(),
        format!("{note}\n"),
        format!("{note}x"),
        note.replace("\n\n", "\n"),
        note.replace('\n', "\r\n"),
        note.replace('\u{2014}', "-"),
        note.replace(line, ""),
        note.replace(line, &format!("\u{2014} {name} AAAA")),
        note.replace(line, &format!("\u{2014} {name}  AAAAAAAA")),
        note.replace(line, "\u{2014} a+b AAAAAAAA"),
        note.replace(line, "\u{2014}  AAAAAAAA"),
        note.replace(line, &format!("{line} ")),
        note.clone() + &format!("{line}\n").repeat(MAX_SIGNATURES),
        "x".repeat(MAX_NOTE_BYTES) + &note,
    ];
    for note in &notes {
        let shown: String = note.chars().take(200).collect();
        assert_eq!(refused(note), Code::CheckpointInvalid, "{shown:?}");
    }
    let bytes = [b"\xff", note.as_bytes()].concat();
    let error = Checkpoint::verified(&bytes, &signer.verifier()).unwrap_err();
    assert_eq!(error.code(), Code::CheckpointInvalid);
    let most = note.clone() + &format!("{line}\n").repeat(MAX_SIGNATURES - 1);
    assert!(Checkpoint::verified(most.as_bytes(), &signer.verifier()).is_ok());
    // What no reader takes is not signed.
    for text in ["", "no end", "control \t\n"] {
        assert!(signer.sign(text).is_err(), "{text:?}");
    }
}

/// Proves STO-4: a key is read in its one form; no refusal repeats a word of it.
#[test]
fn sto_4_a_key_has_one_form() {
    let signer = signer();
    let (secret, public) = (signer.secret_text(), signer.verifier().text());
    let read = Signer::parse(&format!("{secret}\n")).unwrap();
    assert_eq!(read.verifier(), Verifier::parse(&public).unwrap());
    let key = public.rsplit_once('+').map(|(_, key)| key).unwrap();
    let zeros = "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let publics = [
        String::new(),
        secret.clone(),
        format!("{public}\n\n"),
        format!(" {public}"),
        public.replace("store-1", "store-2"),
        public.to_uppercase(),
        public.replace('+', " "),
        public.replace(key, ""),
        public.replace(key, &key[..40]),
        public.replace(key, zeros),
        public.replacen("praxis", "", 1),
    ];
    for text in &publics {
        let error = Verifier::parse(text).unwrap_err();
        assert_eq!(error.code(), Code::KeyInvalid, "{text:?}");
        assert!(matches!(error, NoteError::Key { .. }));
    }
    let material = secret.rsplit_once('+').map(|(_, key)| key).unwrap();
    let secrets = [
        public.clone(),
        secret.replace("PRIVATE", "private"),
        secret.replace(material, key),
        secret.replace(material, &material[..40]),
        format!("{secret} "),
    ];
    for text in &secrets {
        let error = Signer::parse(text).unwrap_err();
        assert_eq!(error.code(), Code::KeyInvalid);
        assert!(!error.to_string().contains(&material[..8]), "{error}");
    }
    for name in [
        "",
        "a b",
        "a+b",
        "a\n",
        "\u{2003}",
        &"x".repeat(MAX_KEY_NAME_BYTES + 1),
    ] {
        assert!(Signer::new(name, &[1; 32]).is_err(), "{name:?}");
    }
}
