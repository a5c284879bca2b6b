//! Cases of activateGraph. Invariant and use as in `cases`.

use aiws::error::Code;

use super::{cases, refused};
use crate::world::*;

cases! {
    /// Proves FV-GRAPH.3: a cycle is refused, also of one node alone.
    #[test]
    fn a_cycle_is_refused() {
        let world = World::started(contract(), config());
        let two = graph(vec![task("a", &["b"]), task("b", &["a"]), end(&["b"])]);
        refused(&world, Code::GraphInvalid, |world| world.activate(two))?;
        let one = graph(vec![task("a", &["a"]), end(&["a"])]);
        refused(&world, Code::GraphInvalid, |world| world.activate(one))
    }
}
