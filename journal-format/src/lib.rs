//! Events to bytes and back: links, seals, frames and exports.
