//! Checkpoints (C2SP tlog-checkpoint): the head of a log as three lines of text, signed as a note.
//!
//! Invariant: a checkpoint has one text, and one is believed only behind its signature and for the log that it names.
//! Made and compared by the verbs `checkpoint`, `verify` and `export`.

use std::fmt;

use aiws::digest::Digest;
use aiws::id::StoreId;

use crate::base64::{decode, encode};
use crate::note::{Note, NoteError, Signer, Verifier, wrong};
use crate::tree::{TREE_VERSION, TreeHead};

/// Most characters of a foreign origin that a message repeats.
const SHOWN: usize = 80;

/// A head with the log that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which log: [`origin`] of its store.
    pub origin: String,
    /// Size and root.
    pub head: TreeHead,
}

/// The origin of a store's log: the tree's version and the store's id. What is no ASCII letter, digit, `.`, `_` or `-` is
/// written as `%` and two hex digits per byte, so that the origin may name a key, too.
pub fn origin(store: &StoreId) -> String {
    let mut text = format!("praxis-tree-{TREE_VERSION}/");
    for byte in store.as_str().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
                text.push(char::from(byte));
            }
            byte => text.push_str(&format!("%{byte:02x}")),
        }
    }
    text
}

impl Checkpoint {
    /// The checkpoint of a store's head.
    pub fn of(store: &StoreId, head: TreeHead) -> Self {
        Self {
            origin: origin(store),
            head,
        }
    }

    /// The signed note.
    ///
    /// # Errors
    /// [`NoteError::Note`] for an origin that is empty or has controls; none that [`origin`] makes does.
    pub fn signed(&self, signer: &Signer) -> Result<String, NoteError> {
        let text = self.to_string();
        match Self::parse(&text)? == *self {
            true => signer.sign(&text),
            false => Err(wrong("it would be read as another one")),
        }
    }

    /// Reads a signed checkpoint and checks its signature. Whether it is of this log has to be asked, too:
    /// [`Checkpoint::of_store`].
    ///
    /// # Errors
    /// [`NoteError::Note`], [`NoteError::Untrusted`].
    pub fn verified(note: &[u8], verifier: &Verifier) -> Result<Self, NoteError> {
        let note = Note::parse(note)?;
        Self::parse(note.verified(verifier)?)
    }

    /// Reads a signed checkpoint whose signature nobody can check here. What it says is only good for being compared with
    /// what a log has; whoever gets the note checks its signature.
    ///
    /// # Errors
    /// [`NoteError::Note`].
    pub fn unverified(note: &[u8]) -> Result<Self, NoteError> {
        Self::parse(Note::parse(note)?.unverified())
    }

    /// The head, if the checkpoint is of this store's log.
    ///
    /// # Errors
    /// [`NoteError::Foreign`].
    pub fn of_store(&self, store: &StoreId) -> Result<TreeHead, NoteError> {
        let expected = origin(store);
        match self.origin == expected {
            true => Ok(self.head),
            false => Err(NoteError::Foreign {
                expected,
                found: self.origin.chars().take(SHOWN).collect(),
            }),
        }
    }

    /// Reads the three lines. Lines of extensions, which no checkpoint of ours has, are refused.
    fn parse(text: &str) -> Result<Self, NoteError> {
        let lines: Vec<&str> = text.split_terminator('\n').collect();
        let [origin, size, root] = lines[..] else {
            return Err(wrong(
                "its text is not origin, size and root in three lines",
            ));
        };
        if origin.is_empty() {
            return Err(wrong("its origin is empty"));
        }
        let size: u64 = size
            .parse()
            .ok()
            .filter(|number: &u64| number.to_string() == size)
            .ok_or_else(|| wrong("its second line is not a size"))?;
        let root = decode(root).and_then(|bytes| bytes.try_into().ok());
        let root = root.ok_or_else(|| wrong("its third line is not the base 64 of a root"))?;
        Ok(Self {
            origin: origin.to_owned(),
            head: TreeHead {
                size,
                root: Digest(root),
            },
        })
    }
}

/// The text that is signed.
impl fmt::Display for Checkpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, head } = self;
        writeln!(
            out,
            "{origin}\n{}\n{}",
            head.size,
            encode(head.root.as_bytes())
        )
    }
}
