//! Cases of the stages that every command passes. Invariant and use as in `cases`.

use aiws::error::Code;

use super::{cases, refused};
use crate::world::*;

cases! {
    /// Proves FV-RUN.4: a completed run starts nothing.
    #[test]
    fn an_ended_run_refuses_work() {
        let mut world = World::lin_done();
        world.finish().map_err(|error| error.to_string())?;
        refused(&world, Code::TerminalExecution, |world| world.finish())
    }
}
