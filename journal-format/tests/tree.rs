//! The Merkle tree: the known vectors, and every proof of every small tree against the recursion of RFC 6962 itself.
//!
//! Invariant: the reference below is the definition in the RFC, word for word, and shares no code with the crate.
//! Run by `cargo test`.

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aiws::digest::{Digest, sha256};
use praxis_journal_format::tree::{
    CompactRange, Tree, TreeHead, empty_root, extends, includes, leaf_hash,
};
use proptest::prelude::*;

/// MTH of RFC 6962, section 2.1.
fn mth(leaves: &[Vec<u8>]) -> Digest {
    match leaves {
        [] => sha256(b""),
        [leaf] => sha256(&[&[0], &leaf[..]].concat()),
        leaves => {
            let (left, right) = leaves.split_at(split(leaves.len()));
            sha256(&[&[1], &mth(left).0[..], &mth(right).0[..]].concat())
        }
    }
}

/// PATH of section 2.1.1.
fn path(at: usize, leaves: &[Vec<u8>]) -> Vec<Digest> {
    if leaves.len() == 1 {
        return Vec::new();
    }
    let (left, right) = leaves.split_at(split(leaves.len()));
    let (mut hashes, other) = match at < left.len() {
        true => (path(at, left), mth(right)),
        false => (path(at - left.len(), right), mth(left)),
    };
    hashes.push(other);
    hashes
}

/// SUBPROOF of section 2.1.2.
fn subproof(before: usize, leaves: &[Vec<u8>], whole: bool) -> Vec<Digest> {
    if before == leaves.len() {
        return if whole { vec![] } else { vec![mth(leaves)] };
    }
    let (left, right) = leaves.split_at(split(leaves.len()));
    let (mut hashes, other) = match before <= left.len() {
        true => (subproof(before, left, whole), mth(right)),
        false => (subproof(before - left.len(), right, false), mth(left)),
    };
    hashes.push(other);
    hashes
}

/// The largest power of two below a number of leaves.
fn split(leaves: usize) -> usize {
    let mut power = 1;
    while power * 2 < leaves {
        power *= 2;
    }
    power
}

fn numbered(count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| number.to_be_bytes().to_vec())
        .collect()
}

fn tree(leaves: &[Vec<u8>]) -> (Tree, CompactRange) {
    let (mut tree, mut range) = (Tree::default(), CompactRange::default());
    for leaf in leaves {
        tree.push(leaf);
        range.push(leaf);
    }
    (tree, range)
}

fn head(tree: &Tree, size: u64) -> TreeHead {
    let root = tree.root(size).unwrap();
    TreeHead { size, root }
}

fn digests(hex: &[&str]) -> Vec<Digest> {
    hex.iter().map(|hex| hex.parse().unwrap()).collect()
}

/// Proves T-01: the tree is the one of RFC 6962: the vectors that Certificate Transparency's implementations share.
#[test]
fn t_01_the_known_vectors_hold() {
    let leaves: Vec<Vec<u8>> = [
        &[][..],
        &[0x00],
        &[0x10],
        &[0x20, 0x21],
        &[0x30, 0x31],
        &[0x40, 0x41, 0x42, 0x43],
        &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
        b"`abcdefghijklmno",
    ]
    .iter()
    .map(|leaf| leaf.to_vec())
    .collect();
    let roots = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    let (whole, _) = tree(&leaves);
    for (size, root) in roots.iter().enumerate() {
        let (_, range) = tree(&leaves[..size]);
        assert_eq!(range.root().to_string(), *root, "{size}");
        assert_eq!(whole.root(size as u64).unwrap().to_string(), *root);
    }
    let (a, b, c) = (
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    );
    let (d, e) = (
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
    );
    let six = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a";
    let inclusions: [(u64, u64, &[&str]); 5] = [
        (0, 1, &[]),
        (0, 8, &[a, b, c]),
        (5, 8, &[d, e, roots[4]]),
        (2, 3, &[roots[2]]),
        (1, 5, &[roots[1], b, d]),
    ];
    for (index, size, expected) in inclusions {
        let proof = whole.inclusion(index, size).unwrap();
        assert_eq!(proof, digests(expected), "{index} of {size}");
    }
    let consistencies: [(u64, u64, &[&str]); 4] = [
        (1, 1, &[]),
        (1, 8, &[a, b, c]),
        (6, 8, &[six, e, roots[4]]),
        (2, 5, &[b, d]),
    ];
    for (before, size, expected) in consistencies {
        let proof = whole.consistency(before, size).unwrap();
        assert_eq!(proof, digests(expected), "{before} to {size}");
    }
}

/// Proves T-01: every root, every inclusion and every consistency of all trees up to 40 leaves is the definition's, and
/// holds for the one leaf, place, size and root that it is for.
#[test]
fn t_01_every_small_tree_is_the_definitions() {
    const MOST: usize = 40;
    let leaves = numbered(MOST);
    let (whole, _) = tree(&leaves);
    assert_eq!((whole.root(0), whole.size()), (Some(empty_root()), 40));
    assert_eq!(whole.root(41), None);
    for size in 1..=MOST {
        let of = &leaves[..size];
        let (_, range) = tree(of);
        let now = head(&whole, size as u64);
        assert_eq!((range.head(), now.root), (now, mth(of)));
        for index in 0..size {
            let proof = whole.inclusion(index as u64, size as u64).unwrap();
            assert_eq!(proof, path(index, of));
            for claimed in 0..size as u64 + 1 {
                let holds = includes(&now, claimed, &of[index], &proof);
                assert_eq!(
                    holds,
                    claimed == index as u64,
                    "{index} as {claimed} of {size}"
                );
            }
            assert!(!includes(&now, index as u64, b"another", &proof));
            for (at, hash) in proof.iter().enumerate() {
                let mut changed = proof.clone();
                changed[at] = leaf_hash(hash.as_bytes());
                assert!(!includes(&now, index as u64, &of[index], &changed));
            }
            let longer = [&proof[..], &[now.root]].concat();
            assert!(!includes(&now, index as u64, &of[index], &longer));
            if let Some((_, shorter)) = proof.split_last() {
                assert!(!includes(&now, index as u64, &of[index], shorter));
            }
        }
        assert_eq!(whole.inclusion(size as u64, size as u64), None);
        for before in 1..=size {
            let old = head(&whole, before as u64);
            let proof = whole.consistency(before as u64, size as u64).unwrap();
            assert_eq!(proof, subproof(before, of, true));
            assert!(extends(&old, &now, &proof), "{before} to {size}");
            let forked = TreeHead {
                root: leaf_hash(b"other"),
                ..old
            };
            assert!(!extends(&forked, &now, &proof), "{before} to {size}");
            assert!(!extends(
                &old,
                &TreeHead {
                    root: forked.root,
                    ..now
                },
                &proof
            ));
            if before < size {
                assert!(!extends(&now, &old, &proof), "{size} to {before}");
                assert!(!extends(&old, &now, &[]), "{before} to {size}");
                let longer = [&proof[..], &[now.root]].concat();
                assert!(!extends(&old, &now, &longer));
            }
        }
        let nothing = head(&whole, 0);
        assert!(extends(&nothing, &now, &[]));
        assert_eq!(whole.consistency(0, size as u64), Some(vec![]));
    }
    assert_eq!(whole.consistency(1, 41), None);
    assert_eq!(whole.consistency(3, 2), None);
}

/// Proves T-01: no node passes for a leaf: the hash of two children as one leaf gives another root.
#[test]
fn t_01_leaves_and_nodes_lie_in_different_domains() {
    let leaves = numbered(2);
    let children = [leaf_hash(&leaves[0]).0.as_slice(), &leaf_hash(&leaves[1]).0].concat();
    let (_, of_two) = tree(&leaves);
    let (_, of_one) = tree(&[children]);
    assert_ne!(of_two.root(), of_one.root());
}

/// Proves T-01: a range that was taken apart into its nodes by level is the same one again; other levels are none of it.
#[test]
fn t_01_a_range_is_put_together_again() {
    for size in 0..200 {
        let (_, range) = tree(&numbered(size));
        let size = size as u64;
        let nodes: Vec<(u64, Digest)> = (0..=64)
            .filter_map(|level| Some((level, *range.node(level)?)))
            .collect();
        let again = CompactRange::from_nodes(size, nodes.clone());
        assert_eq!(again, Some(range));
        assert_eq!(CompactRange::from_nodes(size + 1, nodes.clone()), None);
        let more = nodes.iter().copied().chain([(63, Digest::ZERO)]);
        assert_eq!(CompactRange::from_nodes(size, more), None);
        if size > 0 {
            assert_eq!(CompactRange::from_nodes(size, nodes[1..].to_vec()), None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves T-01: trees of any leaves and any size agree with the definition, in one place drawn from each.
    #[test]
    fn t_01_any_tree_is_the_definitions(
        leaves in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..300),
        at in any::<prop::sample::Index>(),
        until in any::<prop::sample::Index>(),
    ) {
        let (whole, range) = tree(&leaves);
        prop_assert_eq!(range.root(), mth(&leaves));
        let size = until.index(leaves.len()) + 1;
        let index = at.index(size);
        let proof = whole.inclusion(index as u64, size as u64).unwrap();
        prop_assert_eq!(&proof, &path(index, &leaves[..size]));
        prop_assert!(includes(&head(&whole, size as u64), index as u64, &leaves[index], &proof));
        let proof = whole.consistency(size as u64, leaves.len() as u64).unwrap();
        prop_assert_eq!(&proof, &subproof(size, &leaves, true));
        prop_assert!(extends(&head(&whole, size as u64), &range.head(), &proof));
    }
}
