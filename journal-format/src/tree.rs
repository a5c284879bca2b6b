//! The Merkle tree over the whole log (RFC 6962): its leaves are event hashes in the order of the sequence.
//!
//! Invariant: leaf and node hashes lie in different domains, so no node passes for a leaf; a root of size n depends on the
//! first n events and on nothing else. Extended by the journal's view, checked by verification and by readers of proofs.

use aiws::digest::{Digest, Hasher, sha256};

use crate::limits::{MAX_CONSISTENCY_HASHES, MAX_PROOF_HASHES};

/// The version of the tree: what a leaf is and how hashes are made. Every origin begins with it.
pub const TREE_VERSION: u8 = 0;

/// First byte of what a leaf hashes.
const LEAF: u8 = 0;

/// First byte of what a node hashes.
const NODE: u8 = 1;

/// The head of a log: how many events, and the root over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeHead {
    /// How many events.
    pub size: u64,
    /// The root over them.
    pub root: Digest,
}

/// The leaf hash of some bytes; a log's leaf is over the 32 bytes of an event hash.
pub fn leaf_hash(bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(&[LEAF]);
    hasher.update(bytes);
    hasher.finish()
}

/// The hash of the node above two others.
pub fn node_hash(left: &Digest, right: &Digest) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(&[NODE]);
    hasher.update(left.as_bytes());
    hasher.update(right.as_bytes());
    hasher.finish()
}

/// The root over nothing.
pub fn empty_root() -> Digest {
    sha256(b"")
}

/// A tree of which only the roots of its full subtrees are kept: at most one per bit of the size. It can be extended and
/// gives its root; proofs need a [`Tree`].
///
/// ```
/// use praxis_journal_format::tree::{CompactRange, empty_root, leaf_hash};
/// let mut range = CompactRange::default();
/// assert_eq!(range.root(), empty_root());
/// range.push(b"one");
/// assert_eq!((range.size(), range.root()), (1, leaf_hash(b"one")));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactRange {
    size: u64,
    /// Roots of the full subtrees, the largest first: one per set bit of the size.
    nodes: Vec<Digest>,
}

impl CompactRange {
    /// A range of nodes by their level, as [`CompactRange::node`] gives them; none if the levels are not those of the size.
    pub fn from_nodes(
        size: u64,
        nodes: impl IntoIterator<Item = (u64, Digest)>,
    ) -> Option<CompactRange> {
        let mut found: Vec<(u64, Digest)> = nodes.into_iter().collect();
        found.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
        let levels = found.iter().map(|(level, _)| *level);
        let expected = (0..64).rev().filter(|level| size >> level & 1 == 1);
        levels.eq(expected).then(|| CompactRange {
            size,
            nodes: found.into_iter().map(|(_, node)| node).collect(),
        })
    }

    /// How many leaves it has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes the next leaf.
    pub fn push(&mut self, leaf: &[u8]) {
        let mut node = leaf_hash(leaf);
        // Each full subtree of the same size joins with the new one, as ones carry in a sum.
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.nodes.pop() {
                node = node_hash(&left, &node);
            }
        }
        self.nodes.push(node);
        self.size = self.size.wrapping_add(1);
    }

    /// The root over all leaves.
    pub fn root(&self) -> Digest {
        let mut nodes = self.nodes.iter().rev();
        let Some(last) = nodes.next() else {
            return empty_root();
        };
        nodes.fold(*last, |right, left| node_hash(left, &right))
    }

    /// Size and root.
    pub fn head(&self) -> TreeHead {
        TreeHead {
            size: self.size,
            root: self.root(),
        }
    }

    /// The root of the full subtree of 2^level leaves, if the range has one.
    pub fn node(&self, level: u64) -> Option<&Digest> {
        let above = self.size.checked_shr(u32::try_from(level).ok()?)?;
        if above & 1 == 0 {
            return None;
        }
        let place = (above >> 1).count_ones();
        self.nodes.get(usize::try_from(place).ok()?)
    }
}

/// A tree with all its full subtrees, for proofs: 64 bytes of memory per event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// By level, the roots of the full subtrees of 2^level leaves, from the left.
    levels: Vec<Vec<Digest>>,
}

impl Tree {
    /// How many leaves it has.
    pub fn size(&self) -> u64 {
        self.levels.first().map_or(0, |leaves| leaves.len() as u64)
    }

    /// Takes the next leaf.
    pub fn push(&mut self, leaf: &[u8]) {
        let mut node = leaf_hash(leaf);
        let mut level = 0;
        loop {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            let row = &mut self.levels[level];
            row.push(node);
            let [.., left, right] = &row[..] else { return };
            if row.len() % 2 == 1 {
                return;
            }
            node = node_hash(left, right);
            level += 1;
        }
    }

    /// The root over the first `size` leaves; none beyond the tree.
    pub fn root(&self, size: u64) -> Option<Digest> {
        match size {
            0 => Some(empty_root()),
            size => self.over(0, size),
        }
    }

    /// The hashes that lead from the leaf at `index`, from 0, to the root over the first `size` leaves, the lowest first.
    /// None where the tree has no such leaf or size.
    pub fn inclusion(&self, index: u64, size: u64) -> Option<Vec<Digest>> {
        if index >= size || size > self.size() {
            return None;
        }
        let (mut start, mut end) = (0, size);
        let mut path = Vec::new();
        while end - start > 1 {
            let middle = start + below(end - start);
            match index < middle {
                true => {
                    path.push(self.over(middle, end)?);
                    end = middle;
                }
                false => {
                    path.push(self.over(start, middle)?);
                    start = middle;
                }
            }
        }
        path.reverse();
        Some(path)
    }

    /// The hashes that show that the first `size` leaves begin with the first `before` ones. None where the tree has no such
    /// sizes. Nothing has to be shown for no leaves, or for equal sizes.
    pub fn consistency(&self, before: u64, size: u64) -> Option<Vec<Digest>> {
        if before > size || size > self.size() {
            return None;
        }
        let mut path = Vec::new();
        if before == 0 || before == size {
            return Some(path);
        }
        let (mut start, mut end) = (0, size);
        // The part that both trees have whole needs its root only where it is not the old tree itself.
        while before != end {
            let middle = start + below(end - start);
            match before <= middle {
                true => {
                    path.push(self.over(middle, end)?);
                    end = middle;
                }
                false => {
                    path.push(self.over(start, middle)?);
                    start = middle;
                }
            }
        }
        if start > 0 {
            path.push(self.over(start, end)?);
        }
        path.reverse();
        Some(path)
    }

    /// The root over leaves from `start` to before `end`; a full subtree's is at hand.
    fn over(&self, start: u64, end: u64) -> Option<Digest> {
        let len = end.checked_sub(start).filter(|len| *len > 0)?;
        if len.is_power_of_two() {
            let level = usize::try_from(len.trailing_zeros()).ok()?;
            let at = usize::try_from(start / len).ok()?;
            return self.levels.get(level)?.get(at).copied();
        }
        let middle = start + below(len);
        Some(node_hash(
            &self.over(start, middle)?,
            &self.over(middle, end)?,
        ))
    }
}

/// The largest power of two below `len`, which is at least 2.
fn below(len: u64) -> u64 {
    1 << (len - 1).ilog2()
}

/// The root that an inclusion proof leads to from a leaf hash; none for a proof of another shape.
pub fn root_of_inclusion(leaf: &Digest, index: u64, size: u64, proof: &[Digest]) -> Option<Digest> {
    if index >= size || proof.len() > MAX_PROOF_HASHES {
        return None;
    }
    let (mut at, mut last, mut root) = (index, size - 1, *leaf);
    for hash in proof {
        if last == 0 {
            return None;
        }
        if at & 1 == 1 || at == last {
            root = node_hash(hash, &root);
            while at & 1 == 0 && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            root = node_hash(&root, hash);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    (last == 0).then_some(root)
}

/// Whether a proof shows that the leaf stands at `index`, from 0, under the head.
pub fn includes(head: &TreeHead, index: u64, leaf: &[u8], proof: &[Digest]) -> bool {
    root_of_inclusion(&leaf_hash(leaf), index, head.size, proof) == Some(head.root)
}

/// Whether a proof shows that the log of `after` begins with the log of `before`.
pub fn extends(before: &TreeHead, after: &TreeHead, proof: &[Digest]) -> bool {
    if before.size == 0 || before.size == after.size {
        let start = match before.size {
            0 => empty_root(),
            _ => after.root,
        };
        return proof.is_empty() && before.root == start;
    }
    consistent(before, after, proof).unwrap_or(false)
}

fn consistent(before: &TreeHead, after: &TreeHead, proof: &[Digest]) -> Option<bool> {
    if before.size > after.size || proof.len() > MAX_CONSISTENCY_HASHES {
        return None;
    }
    let (mut at, mut last) = (before.size - 1, after.size - 1);
    while at & 1 == 1 {
        (at, last) = (at >> 1, last >> 1);
    }
    // An old tree that is full is itself the first hash.
    let (first, rest) = match before.size.is_power_of_two() {
        true => (before.root, proof),
        false => proof.split_first().map(|(first, rest)| (*first, rest))?,
    };
    let (mut old, mut new) = (first, first);
    for hash in rest {
        if last == 0 {
            return None;
        }
        if at & 1 == 1 || at == last {
            old = node_hash(hash, &old);
            new = node_hash(hash, &new);
            while at & 1 == 0 && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            new = node_hash(&new, hash);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    Some(old == before.root && new == after.root && last == 0)
}
