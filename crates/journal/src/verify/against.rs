//! Comparing the log with heads that were kept outside: does it still begin with them?
//!
//! Invariant: a head is compared with the root of exactly its own size, over events that were read and hashed just now.
//! Called by the walk of a verification.

use aiws::digest::Digest;
use aiws::error::Code;
use praxis_journal_format::tree::{CompactRange, TreeHead};

/// How a log stands to a head that was kept outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It begins with the events of the head.
    Extends,
    /// It has fewer events: its end was cut off, or it was rolled back.
    Ahead,
    /// It has other events: it was rewritten, or rolled back and continued.
    Forked,
    /// An event before the head's end is missing or cannot be read, which has a finding of its own.
    Unknown,
}

impl Standing {
    /// The stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Extends => "EXTENDS",
            Self::Ahead => "AHEAD",
            Self::Forked => "FORKED",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// A head that was kept outside, compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The head.
    pub head: TreeHead,
    /// How the log stands to it.
    pub standing: Standing,
    /// The log's own root at that size, where it is known.
    pub found: Option<Digest>,
}

impl Compared {
    /// What is wrong, if the log does not extend the head.
    pub(super) fn finding(&self, end: u64) -> Option<(Code, String)> {
        let TreeHead { size, root } = self.head;
        match (self.standing, self.found) {
            (Standing::Ahead, _) => Some((
                Code::CheckpointAhead,
                format!("the checkpoint vouches for {size} events, the log has {end}"),
            )),
            (Standing::Forked, Some(found)) => Some((
                Code::CheckpointForked,
                format!("the checkpoint has root {root} over {size} events, the log has {found}"),
            )),
            _ => None,
        }
    }
}

/// The tree of the walk, and the heads to compare.
pub(super) struct Against {
    /// None once an event could not be read.
    tree: Option<CompactRange>,
    heads: Vec<(TreeHead, Option<Digest>)>,
    /// How many events the log has.
    end: u64,
}

impl Against {
    pub fn new(heads: &[TreeHead], end: u64) -> Self {
        let heads = heads.iter().map(|head| (*head, None)).collect();
        let mut against = Self {
            tree: Some(CompactRange::default()),
            heads,
            end,
        };
        against.look();
        against
    }

    /// How many events the log has.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Takes the hash of the next event.
    pub fn push(&mut self, hash: &Digest) {
        if self.heads.is_empty() {
            return;
        }
        if let Some(tree) = &mut self.tree {
            tree.push(hash.as_bytes());
        }
        self.look();
    }

    /// Goes past what could not be read.
    pub fn skip(&mut self) {
        self.tree = None;
    }

    /// How each head compares, in the order in which they were given.
    pub fn compared(&self) -> Vec<Compared> {
        let compared = |(head, found): &(TreeHead, Option<Digest>)| Compared {
            head: *head,
            standing: match found {
                Some(root) if *root == head.root => Standing::Extends,
                Some(_) => Standing::Forked,
                None if head.size > self.end => Standing::Ahead,
                None => Standing::Unknown,
            },
            found: *found,
        };
        self.heads.iter().map(compared).collect()
    }

    fn look(&mut self) {
        let Some(tree) = &self.tree else { return };
        let here = |(head, _): &&mut (TreeHead, Option<Digest>)| head.size == tree.size();
        for (_, found) in self.heads.iter_mut().filter(here) {
            *found = Some(tree.root());
        }
    }
}
