//! The binary `praxis`.
fn main() {}
