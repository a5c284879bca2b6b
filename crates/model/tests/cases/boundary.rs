//! Cases of commitBoundary. Invariant and use as in `cases`.

use aiws::error::Code;
use aiws::object;

use super::{cases, refused};
use crate::world::*;

cases! {
    /// Proves FV-GRAPH.16: a node that was never admitted has no boundary.
    #[test]
    fn a_boundary_needs_an_admission() {
        let world = World::with(lin());
        refused(&world, Code::NodeNotReady, |world| world.complete("a", object! {}))
    }
}
