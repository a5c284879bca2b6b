//! `praxis-socket/1`: how terminals, scripts and workers reach the engine that has a store open.
//! Invariant: the socket is this user's alone; who asks is pinned when the connection is made; docs/SOCKET.md describes it.
//! Served by the process that has the engine, used by every other.

pub mod client;
pub mod line;
pub mod place;
pub mod server;
