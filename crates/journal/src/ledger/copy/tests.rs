//! What a copy must show before it is called one.
//!
//! Invariant: a copy that ends elsewhere than its original, or that would take no append, is no copy. Found by mutation
//! testing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use tempfile::TempDir;

use super::*;
use crate::disk::FileDisk;

/// A copy passes only if it ends at the very event where the original ended, and is open for appends.
#[test]
fn a_copy_ends_where_its_original_does() {
    let folder = TempDir::new().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(FileDisk::new(folder.path()));
    let ledger = Ledger::create(disk, "store".parse().unwrap(), &Options::default()).unwrap();
    let from = ledger.view();
    same_end(&from, &from).unwrap();
    let mut longer = View::clone(&from);
    longer.cursor.sequence += 1;
    let mut other = View::clone(&from);
    other.cursor.hash = Digest([1; 32]);
    for copy in [longer, other] {
        let refused = same_end(&from, &copy).unwrap_err();
        assert!(matches!(refused, StoreError::Internal { .. }), "{refused}");
    }
    let mut damaged = View::clone(&from);
    damaged.read_only = Some(StoreError::Closed);
    assert_eq!(same_end(&from, &damaged), Err(StoreError::Closed));
}
