//! The hand-made concurrent pieces: commit queue, published snapshot, fence; model-checked with loom.
