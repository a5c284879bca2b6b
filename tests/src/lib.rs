//! House rules, conformance and end-to-end tests.
