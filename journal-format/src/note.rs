//! Signed notes (C2SP signed-note) with Ed25519 keys: the envelope of a checkpoint, and the two texts of a key.
//!
//! Invariant: a text is given out only behind a signature of the key that was named; a key is read only in the one form
//! that is written. Keys come from seeds that the caller draws. Called by `checkpoint` and by the verbs of keys.

use aiws::digest::sha256;
use aiws::error::Code;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

use crate::base64::{decode, encode};
use crate::limits::{MAX_KEY_NAME_BYTES, MAX_NOTE_BYTES, MAX_SIGNATURES};

/// The signature type of Ed25519, the first byte of a key's material.
const ED25519: u8 = 1;

/// What a signing key's text begins with, so that nobody takes it for a verifier key.
const PRIVATE: &str = "PRIVATE+KEY+";

/// What a line of a signature begins with: an em dash.
const MARK: &str = "\u{2014} ";

/// Why a note or a key is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoteError {
    /// The bytes are no signed note, or its text is no checkpoint.
    #[error("expected a signed checkpoint: {what}")]
    Note {
        /// What is wrong.
        what: String,
    },
    /// No key of that text.
    #[error("expected a key of praxis keygen: {what}")]
    Key {
        /// What is wrong; never a word of the key.
        what: &'static str,
    },
    /// The note has no valid signature of the key.
    #[error("expected a signature of the key {name}: {what}")]
    Untrusted {
        /// The key's name.
        name: String,
        /// What was found.
        what: &'static str,
    },
    /// The checkpoint is of another log.
    #[error("expected a checkpoint of {expected}, found one of {found}")]
    Foreign {
        /// This log's origin.
        expected: String,
        /// The checkpoint's, as far as it is shown.
        found: String,
    },
}

impl NoteError {
    /// The code that callers branch on.
    pub fn code(&self) -> Code {
        match self {
            Self::Note { .. } => Code::CheckpointInvalid,
            Self::Key { .. } => Code::KeyInvalid,
            Self::Untrusted { .. } | Self::Foreign { .. } => Code::CheckpointUntrusted,
        }
    }
}

/// A signing key with its name.
pub struct Signer {
    name: String,
    key: SigningKey,
}

// By hand: a signing key is shown to nobody.
impl std::fmt::Debug for Signer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Signer")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A public key with its name: what a note is checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifier {
    name: String,
    key: VerifyingKey,
}

/// A note whose form is right and whose signatures nobody has checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<Line>,
}

// By hand: a text that nobody has checked is not shown.
impl std::fmt::Debug for Note {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Note")
            .field("signatures", &self.signatures.len())
            .finish_non_exhaustive()
    }
}

/// A line of a signature.
#[derive(Clone, PartialEq, Eq)]
struct Line {
    name: String,
    /// Key id and signature.
    bytes: Vec<u8>,
}

impl Signer {
    /// The key of a seed of 32 random bytes.
    ///
    /// # Errors
    /// [`NoteError::Key`] for a name that is empty, too long, or has spaces, controls or `+`.
    pub fn new(name: &str, seed: &[u8; 32]) -> Result<Self, NoteError> {
        check_name(name).map_err(|what| NoteError::Key { what })?;
        Ok(Self {
            name: name.to_owned(),
            key: SigningKey::from_bytes(seed),
        })
    }

    /// Reads the text of [`Signer::secret_text`], with or without a line feed at its end.
    ///
    /// # Errors
    /// [`NoteError::Key`].
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let refused = |what| NoteError::Key { what };
        let text = text.strip_suffix('\n').unwrap_or(text);
        let rest = text
            .strip_prefix(PRIVATE)
            .ok_or_else(|| refused("it is no signing key"))?;
        let (name, id, seed) = parts(rest)?;
        let signer = Self::new(name, &seed)?;
        match id == signer.verifier().id() {
            true => Ok(signer),
            false => Err(refused("the key's id is not that of its name and key")),
        }
    }

    /// The key's text, to be kept secret: `PRIVATE+KEY+NAME+ID+` and the base 64 of type and seed.
    pub fn secret_text(&self) -> String {
        format!("{PRIVATE}{}", self.verifier().with(self.key.as_bytes()))
    }

    /// The public half.
    pub fn verifier(&self) -> Verifier {
        Verifier {
            name: self.name.clone(),
            key: self.key.verifying_key(),
        }
    }

    /// The signed note of a text.
    ///
    /// # Errors
    /// [`NoteError::Note`] for a text that a note cannot have.
    pub fn sign(&self, text: &str) -> Result<String, NoteError> {
        let signature = self.key.sign(text.as_bytes());
        let bytes = [&self.verifier().id()[..], &signature.to_bytes()].concat();
        let note = format!("{text}\n{MARK}{} {}\n", self.name, encode(&bytes));
        // What no reader takes is not written.
        let read = Note::parse(note.as_bytes())?;
        match read.text == text {
            true => Ok(note),
            false => Err(wrong("the text does not end in one line feed")),
        }
    }
}

impl Verifier {
    /// Reads a verifier key: `NAME+ID+` and the base 64 of type and public key, with or without a line feed at its end.
    ///
    /// # Errors
    /// [`NoteError::Key`].
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let refused = |what| NoteError::Key { what };
        let text = text.strip_suffix('\n').unwrap_or(text);
        if text.starts_with(PRIVATE) {
            return Err(refused("this is the signing key; keep it secret"));
        }
        let (name, id, public) = parts(text)?;
        check_name(name).map_err(refused)?;
        let key = VerifyingKey::from_bytes(&public).ok();
        let key = key.filter(|key| !key.is_weak());
        let verifier = Self {
            name: name.to_owned(),
            key: key.ok_or_else(|| refused("its bytes are no public key"))?,
        };
        match id == verifier.id() {
            true => Ok(verifier),
            false => Err(refused("the key's id is not that of its name and key")),
        }
    }

    /// The key's text, for anybody.
    pub fn text(&self) -> String {
        self.with(self.key.as_bytes())
    }

    /// The key's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first four bytes of the digest of name and public key.
    fn id(&self) -> [u8; 4] {
        let material = [self.name.as_bytes(), b"\n", &[ED25519], self.key.as_bytes()].concat();
        let digest = sha256(&material);
        let [a, b, c, d, ..] = *digest.as_bytes();
        [a, b, c, d]
    }

    fn with(&self, material: &[u8]) -> String {
        let id = u32::from_be_bytes(self.id());
        let key = encode(&[&[ED25519], material].concat());
        format!("{}+{id:08x}+{key}", self.name)
    }
}

impl Note {
    /// Reads a note. Its text stays shut until [`Note::verified`].
    ///
    /// # Errors
    /// [`NoteError::Note`].
    pub fn parse(bytes: &[u8]) -> Result<Self, NoteError> {
        if bytes.len() > MAX_NOTE_BYTES {
            return Err(wrong(&format!("it has more than {MAX_NOTE_BYTES} bytes")));
        }
        let note = std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8"))?;
        if note.chars().any(|char| char < ' ' && char != '\n') {
            return Err(wrong("it has control characters"));
        }
        let (text, signatures) = note
            .rsplit_once("\n\n")
            .ok_or_else(|| wrong("it has no empty line before its signatures"))?;
        let lines = signatures
            .strip_suffix('\n')
            .ok_or_else(|| wrong("its last line does not end in a line feed"))?;
        let signatures: Vec<Line> = lines
            .split('\n')
            .take(MAX_SIGNATURES + 1)
            .map(signature)
            .collect::<Result<_, _>>()?;
        if signatures.len() > MAX_SIGNATURES {
            return Err(wrong(&format!(
                "it has more than {MAX_SIGNATURES} signatures"
            )));
        }
        Ok(Self {
            text: format!("{text}\n"),
            signatures,
        })
    }

    /// The text, behind a signature of this key. Signatures of other keys are passed over.
    ///
    /// # Errors
    /// [`NoteError::Untrusted`].
    pub fn verified(&self, verifier: &Verifier) -> Result<&str, NoteError> {
        let untrusted = |what| NoteError::Untrusted {
            name: verifier.name.clone(),
            what,
        };
        let id = verifier.id();
        let mut found = false;
        for line in self.signatures.iter().filter(|l| l.name == verifier.name) {
            let Some((_, rest)) = line.bytes.split_first_chunk().filter(|(of, _)| **of == id)
            else {
                continue;
            };
            let signature = Signature::from_slice(rest).ok();
            let holds = signature.is_some_and(|signature| {
                let message = self.text.as_bytes();
                verifier.key.verify_strict(message, &signature).is_ok()
            });
            if !holds {
                return Err(untrusted("its signature does not hold for this text"));
            }
            found = true;
        }
        match found {
            true => Ok(&self.text),
            false => Err(untrusted("it has none")),
        }
    }

    /// The text, whoever signed it: for comparing with what is known already, never to be believed.
    pub(crate) fn unverified(&self) -> &str {
        &self.text
    }
}

fn signature(line: &str) -> Result<Line, NoteError> {
    let refused = || wrong("a line of a signature is not written as one");
    let rest = line.strip_prefix(MARK).ok_or_else(refused)?;
    let (name, text) = rest.split_once(' ').ok_or_else(refused)?;
    check_name(name).map_err(|_| refused())?;
    let bytes = decode(text).filter(|bytes| bytes.len() > 4);
    Ok(Line {
        name: name.to_owned(),
        bytes: bytes.ok_or_else(refused)?,
    })
}

/// Name, key id and 32 bytes of a key's text.
fn parts(text: &str) -> Result<(&str, [u8; 4], [u8; 32]), NoteError> {
    let refused = |what| NoteError::Key { what };
    let mut parts = text.splitn(3, '+');
    let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(refused("it is not name, id and key with + between"));
    };
    let digits = id.len() == 8 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let id = u32::from_str_radix(id, 16).ok().filter(|_| digits);
    let id = id.ok_or_else(|| refused("its id is not 8 lowercase hex digits"))?;
    let bytes = decode(key).ok_or_else(|| refused("its last part is not base 64"))?;
    match bytes.split_first() {
        Some((&ED25519, key)) => {
            let key = key.try_into();
            let key = key.map_err(|_| refused("an Ed25519 key has 32 bytes"))?;
            Ok((name, id.to_be_bytes(), key))
        }
        _ => Err(refused("it is no Ed25519 key (type 1)")),
    }
}

fn check_name(name: &str) -> Result<(), &'static str> {
    let fits = |char: char| char >= ' ' && !char.is_whitespace() && char != '+';
    match name {
        "" => Err("its name is empty"),
        name if name.len() > MAX_KEY_NAME_BYTES => Err("its name is too long"),
        name if name.chars().all(fits) => Ok(()),
        _ => Err("its name has a space, a control character or +"),
    }
}

pub(crate) fn wrong(what: &str) -> NoteError {
    NoteError::Note {
        what: what.to_owned(),
    }
}
