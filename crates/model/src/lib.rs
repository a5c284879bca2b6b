//! What a mission and a run are and decide: pure, synchronous, total.
