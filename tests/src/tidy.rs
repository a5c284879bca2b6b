//! The house rules, each a small function from the checkout to the list of what breaks it.
//! Invariant: a rule that finds nothing to look at fails; a rule never passes by reading too little.
//! `cargo test` calls them; CONTRIBUTING.md says them in words.

#[cfg(test)]
mod again;
pub mod crates;
pub mod docs;
pub mod golden;
#[cfg(test)]
mod handoff;
pub mod hops;
pub mod licences;
pub mod pages;
pub mod source;
pub mod veils;

/// Fails with every problem of a rule on a line of its own.
///
/// # Panics
/// When there is a problem.
pub fn require(rule: &str, problems: &[String]) {
    assert!(problems.is_empty(), "{rule}:\n  {}", problems.join("\n  "));
}
