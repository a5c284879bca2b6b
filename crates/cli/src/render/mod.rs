//! What people and programs see: escaped text, the tree, the report, JSON.
//! Invariant: rendering reads and never changes anything; text from outside passes `escape`.
//! Called by the verbs.

pub mod approval;
pub mod commands;
pub mod error;
pub mod escape;
pub mod holds;
pub mod inbox;
pub mod json;
pub mod list;
pub mod live;
pub mod page;
pub mod patch;
pub mod report;
pub mod rows;
pub mod style;
#[cfg(test)]
mod tests;
pub mod text;
pub mod unknown;
pub mod words;

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, OnceLock};

static PROGRAM: OnceLock<String> = OnceLock::new();

/// Remembers how this program has to be typed to reach the same store again.
pub fn remember_store(named: Option<&Path>) {
    let in_environment = std::env::var_os("PRAXIS_STORE").is_some();
    let typed = match named.filter(|_| !in_environment) {
        // In full: what is suggested is typed elsewhere, too.
        Some(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            format!("praxis --store {}", quoted(&path.display().to_string()))
        }
        None => "praxis".to_owned(),
    };
    // A program has one command line.
    let _ = PROGRAM.set(typed);
}

/// Says a line to whoever watches, on the standard error. Nobody has to: one that is closed or full stops no work.
pub fn say(text: &str) {
    let _ = std::io::stderr()
        .lock()
        .write_all(format!("{text}\n").as_bytes());
}

tokio::task_local! {
    /// How the program is typed where whoever asks sits: another terminal may name the store in another way.
    static ASKED: Arc<str>;
}

/// How this program is typed in what is suggested next.
#[must_use]
pub fn program() -> Arc<str> {
    let own = || PROGRAM.get().map_or("praxis", String::as_str).into();
    ASKED.try_with(Arc::clone).unwrap_or_else(|_| own())
}

/// Does work whose suggestions are for somebody who types the program like this.
pub async fn typed_as<T>(program: Arc<str>, work: impl Future<Output = T>) -> T {
    ASKED.scope(program, work).await
}

/// As [`typed_as`], for work that blocks.
pub fn typed_as_blocking<T>(program: Arc<str>, work: impl FnOnce() -> T) -> T {
    ASKED.sync_scope(program, work)
}

/// A path or name as a shell takes it.
#[must_use]
pub fn quoted(text: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_./:+@%,".contains(char);
    let text = escape::line(text);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
