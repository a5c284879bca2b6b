//! The command line of Praxis.
