//! The AIWS hand-off SDK surface over the Praxis engine.
