//! The durable store: log segments, conditions, index, replay and verification.
