//! Cases of claim, receipt and release. Invariant and use as in `cases`.

use aiws::error::Code;

use super::{accepted, cases, refused};
use crate::world::*;

cases! {
    /// Proves HD-02.4: a claim ends when its time is reached, and not before.
    #[test]
    fn a_claim_ends_at_equality() {
        let mut world = World::with(lin());
        world.work("a").map_err(|error| error.to_string())?;
        let delivery = world.pending("b");
        world.claim(AGENT, &delivery).map_err(|error| error.to_string())?;
        world.now_ms += 99;
        accepted(&world, |world| world.ack(AGENT, &delivery))?;
        world.now_ms += 1;
        refused(&world, Code::ClaimExpired, |world| world.ack(AGENT, &delivery))
    }
}
