//! `praxis clean`: trees of ended runs, and stored bytes that nothing names, go.
//! Invariant: nothing goes that a live run needs, that an event names, or that belongs to an attempt in doubt; no link
//! is followed out of the store. Called by the office: while an engine has the store, that one cleans.

pub mod named;
pub mod work;

use std::path::Path;

use aiws::error::Error;
use aiws::json::Value;
use praxis_artifacts::{ArtifactProvider, FileArtifacts};

use self::work::{Folder, Verdict};
use crate::answer::{Answer, View};
use crate::coding::workspace::remove;
use crate::render::{escape, json};
use crate::session::now_ms;
use crate::store::Reader;

/// A day, in milliseconds.
const DAY_MS: u64 = 86_400_000;
/// How long stored bytes that no event names are kept unless `--older-than` says otherwise, in days: whoever put them
/// may still be about to commit what names them.
const ORPHAN_DAYS: u32 = 7;
/// The least time that they are kept, in days, whatever `--older-than` says.
const ORPHAN_DAYS_LEAST: u32 = 1;

/// What went, or would go.
struct Done {
    folders: Vec<(Folder, u64)>,
    kept: Vec<Folder>,
    orphans: Vec<(String, u64)>,
    young: usize,
    failed: Vec<Error>,
}

/// Cleans an open store, and says what went and why the rest stays. No engine but this process's own may have it, and
/// with `dry_run` nothing goes; `older_than_days` is the least age of what goes.
///
/// # Errors
///
/// A store code when the log or the artifacts cannot be read; nothing has gone then. What could not be removed is said
/// in the answer.
pub fn answer(
    reader: &Reader,
    dry_run: bool,
    older_than_days: Option<u32>,
    view: View,
) -> Result<Answer, Error> {
    let now_ms = now_ms();
    let artifacts = FileArtifacts::open_as_it_is(&reader.path.join("artifacts"))
        .map_err(|error| Error::new(error.code(), error.to_string()))?;
    let days = |days: u32| u64::from(days) * DAY_MS;
    let before_ms = now_ms.saturating_sub(days(older_than_days.unwrap_or_default()));
    let folders = work::folders(reader, before_ms, now_ms);
    let (going, kept): (Vec<Folder>, Vec<Folder>) = folders.into_iter().partition(Folder::goes);
    // Before anything goes: a log that cannot be read to its end names nothing that could be relied on.
    let mut named = named::by_events(&reader.journal, &artifacts)?;
    let trees: Vec<&Path> = kept.iter().map(|folder| folder.path.as_path()).collect();
    named::add_by_trees(&trees, &artifacts, &mut named);
    let orphans = artifacts
        .orphans(&named)
        .map_err(|error| Error::new(error.code(), error.to_string()))?;

    let mut done = Done {
        folders: Vec::new(),
        kept,
        orphans: Vec::new(),
        young: 0,
        failed: Vec::new(),
    };
    for folder in going {
        let size = work::size(&folder.path);
        match dry_run {
            true => done.folders.push((folder, size)),
            false => match remove(&folder.path) {
                Ok(()) => done.folders.push((folder, size)),
                Err(error) => done.failed.push(error),
            },
        }
    }
    let orphan_days = older_than_days.unwrap_or(ORPHAN_DAYS);
    let retention_ms = days(orphan_days.max(ORPHAN_DAYS_LEAST));
    for orphan in orphans {
        let gone = match dry_run {
            true => Ok(orphan.is_past(retention_ms, now_ms)),
            false => artifacts.collect(&orphan, retention_ms, now_ms),
        };
        match gone {
            Ok(true) => done
                .orphans
                .push((orphan.digest.to_string(), orphan.size_bytes)),
            Ok(false) => done.young += 1,
            Err(error) => done
                .failed
                .push(Error::new(error.code(), error.to_string())),
        }
    }
    let value = value(&done, dry_run);
    Ok(Answer::done(value, view, |_| text(&done, dry_run)))
}

impl Verdict {
    fn why(&self) -> &'static str {
        match self {
            Self::Goes(why) | Self::Stays(why) => why,
        }
    }
}

impl Done {
    fn bytes(&self) -> u64 {
        let folders = self.folders.iter().map(|(_, size)| *size);
        let orphans = self.orphans.iter().map(|(_, size)| *size);
        folders.chain(orphans).fold(0, u64::saturating_add)
    }
}

fn value(done: &Done, dry_run: bool) -> Value {
    let tree = |folder: &Folder| {
        aiws::object! { "run": escape::line(&folder.name), "why": folder.verdict.why() }
    };
    let removed: Vec<Value> = done
        .folders
        .iter()
        .map(|(folder, size)| {
            aiws::object! {
                "run": escape::line(&folder.name),
                "why": folder.verdict.why(),
                "bytes": size.to_string(),
            }
        })
        .collect();
    let orphans: Vec<Value> = done
        .orphans
        .iter()
        .map(
            |(digest, size)| aiws::object! { "digest": digest.as_str(), "bytes": size.to_string() },
        )
        .collect();
    let members = aiws::object! {
        "dryRun": dry_run,
        "trees": removed,
        "artifacts": orphans,
        "bytes": done.bytes().to_string(),
        "kept": done.kept.iter().map(tree).collect::<Vec<Value>>(),
        "keptArtifacts": done.young.to_string(),
        "failed": done.failed.iter().map(Error::to_value).collect::<Vec<Value>>(),
    };
    json::object("clean", members)
}

fn text(done: &Done, dry_run: bool) -> String {
    let (goes, freed) = match dry_run {
        true => ("would go", "would be free"),
        false => ("gone", "free"),
    };
    let mut lines = Vec::new();
    for (folder, size) in &done.folders {
        let name = escape::line(&folder.name);
        lines.push(format!(
            "{goes:<9} {name:<12} {:>9}  {}",
            amount(*size),
            folder.verdict.why()
        ));
    }
    for (digest, size) in &done.orphans {
        let short: String = digest.chars().take(12).collect();
        let size = amount(*size);
        lines.push(format!(
            "{goes:<9} {short:<12} {size:>9}  stored bytes that nothing names"
        ));
    }
    for folder in &done.kept {
        let name = escape::line(&folder.name);
        lines.push(format!(
            "{:<9} {name:<12} {:>9}  {}",
            "kept",
            "",
            folder.verdict.why()
        ));
    }
    if done.young > 0 {
        lines.push(format!(
            "kept      {} stored files that nothing names yet: too young, or being stored",
            done.young
        ));
    }
    for error in &done.failed {
        let message = escape::line(&error.message);
        lines.push(format!("failed    {}: {message}", error.code()));
    }
    lines.push(match done.folders.is_empty() && done.orphans.is_empty() {
        true => "nothing to remove".to_owned(),
        false => format!("{} {freed}", amount(done.bytes())),
    });
    lines.join("\n")
}

/// An amount of bytes for people.
#[must_use]
pub fn amount(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut shown = bytes;
    let mut unit = 0;
    while shown >= 10_240 && unit + 1 < units.len() {
        shown /= 1_024;
        unit += 1;
    }
    format!("{shown} {}", units.get(unit).copied().unwrap_or("B"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        let cases = [
            (0, "0 B"),
            (10_239, "10239 B"),
            (10_240, "10 KiB"),
            (50 << 20, "50 MiB"),
            (u64::MAX, "16777215 TiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(amount(bytes), text);
        }
    }
}
