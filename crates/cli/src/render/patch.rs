//! A patch as people read it, and what it changes in numbers.
//! Invariant: every line of a patch is shown or counted; what looks like a header inside a change is part of the change.
//! Called by the verb `diff` and where a result waits for acceptance.

use std::fmt::Write;

use super::escape;
use super::style::{Style, Tone};
use super::words::count;

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Its content or mode changed.
    Changed,
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// It has another name.
    Renamed,
}

impl Change {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Changed => "CHANGED",
            Self::Added => "ADDED",
            Self::Deleted => "DELETED",
            Self::Renamed => "RENAMED",
        }
    }
}

/// A file of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// Its path, as git writes it, escaped.
    pub path: String,
    /// What became of it.
    pub change: Change,
    /// Lines that came.
    pub added: usize,
    /// Lines that went.
    pub removed: usize,
    /// Whether it is not text, so that no lines are counted.
    pub binary: bool,
}

/// What a line of a patch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    File,
    Header,
    Hunk,
    Added,
    Removed,
    Same,
    Binary,
}

/// Reads a patch line by line: inside a hunk the numbers of its head say how far it goes.
#[derive(Default)]
struct Reader {
    old: usize,
    new: usize,
    binary: bool,
}

impl Reader {
    fn part(&mut self, line: &str) -> Part {
        if self.old > 0 || self.new > 0 {
            let part = match line.as_bytes().first() {
                Some(b'+') => Part::Added,
                Some(b'-') => Part::Removed,
                Some(b'\\') => Part::Header,
                _ => Part::Same,
            };
            self.old -= usize::from(self.old > 0 && matches!(part, Part::Removed | Part::Same));
            self.new -= usize::from(self.new > 0 && matches!(part, Part::Added | Part::Same));
            return part;
        }
        if line.starts_with("diff --git ") {
            self.binary = false;
            return Part::File;
        }
        if let Some([old, new]) = hunk(line) {
            (self.old, self.new) = (old, new);
            return Part::Hunk;
        }
        if line == "GIT binary patch" {
            self.binary = true;
        }
        match self.binary {
            true => Part::Binary,
            false => Part::Header,
        }
    }
}

/// The line counts in a hunk's head, `@@ -1,2 +3,4 @@`.
fn hunk(line: &str) -> Option<[usize; 2]> {
    let mut ranges = line.strip_prefix("@@ -")?.split(" @@").next()?.split(" +");
    let mut length = || match ranges.next()?.split_once(',') {
        Some((_, length)) => length.parse().ok(),
        None => Some(1),
    };
    Some([length()?, length()?])
}

/// What a patch changes, file by file, in its order.
#[must_use]
pub fn stat(patch: &str) -> Vec<FileStat> {
    let mut files: Vec<FileStat> = Vec::new();
    let mut reader = Reader::default();
    for line in patch.lines() {
        let part = reader.part(line);
        if part == Part::File {
            files.push(FileStat {
                path: named(line),
                change: Change::Changed,
                added: 0,
                removed: 0,
                binary: false,
            });
            continue;
        }
        let Some(file) = files.last_mut() else {
            continue;
        };
        match part {
            Part::Added => file.added += 1,
            Part::Removed => file.removed += 1,
            Part::Binary => file.binary = true,
            Part::Header => header(file, line),
            Part::File | Part::Hunk | Part::Same => {}
        }
    }
    files
}

fn header(file: &mut FileStat, line: &str) {
    if line.starts_with("new file mode ") {
        file.change = Change::Added;
    } else if line.starts_with("deleted file mode ") {
        file.change = Change::Deleted;
    } else if let Some(path) = line.strip_prefix("rename to ") {
        file.change = Change::Renamed;
        file.path = escape::line(path);
    } else if line.starts_with("Binary files ") {
        file.binary = true;
    } else if let Some(path) = line
        .strip_prefix("+++ ")
        .filter(|path| *path != "/dev/null")
    {
        file.path = plain(path, "b/");
    }
}

/// The path in a file's first line. Both sides have it unless it was renamed, which has lines of its own.
fn named(line: &str) -> String {
    let both = line.strip_prefix("diff --git ").unwrap_or_default();
    let half = both.len() / 2;
    let second = both
        .get(half + 1..)
        .filter(|_| both.as_bytes().get(half) == Some(&b' '));
    plain(second.unwrap_or(both), "b/")
}

fn plain(path: &str, side: &str) -> String {
    // Git ends the name in a header with a tab where it has blanks.
    let path = path.trim_end_matches('\t');
    let bare = path
        .strip_prefix('"')
        .and_then(|path| path.strip_suffix('"'))
        .unwrap_or(path);
    escape::line(bare.strip_prefix(side).unwrap_or(bare))
}

/// The numbers of a patch: one line per file, and a sum.
#[must_use]
pub fn stat_text(files: &[FileStat], style: Style) -> String {
    let mut text = String::new();
    let shown = files.iter().take(FILES);
    let longest = shown
        .clone()
        .map(|file| escape::width(&file.path))
        .max()
        .unwrap_or(0);
    let path = longest.min(style.width.saturating_sub(32)).max(10);
    for file in shown {
        let name = escape::fill(&file.path, path);
        let _ = writeln!(
            text,
            "  {name}  {}{}",
            numbers(file, style),
            said(file.change)
        );
    }
    if files.len() > FILES {
        let _ = writeln!(text, "  and {}", more(files.len() - FILES, "file"));
    }
    let sum = |of: &dyn Fn(&FileStat) -> usize| files.iter().map(of).sum::<usize>();
    let sentence = format!(
        "{} changed, {} added, {} removed",
        count(files.len(), "file"),
        count(sum(&|file| file.added), "line"),
        sum(&|file| file.removed)
    );
    for line in escape::wrap(&sentence, style.width.saturating_sub(2)) {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// Most files that are listed one by one.
const FILES: usize = 30;

fn numbers(file: &FileStat, style: Style) -> String {
    if file.binary {
        return style.paint(Tone::Dim, "not text");
    }
    let added = style.paint(Tone::Good, &format!("+{}", file.added));
    let removed = style.paint(Tone::Bad, &format!("-{}", file.removed));
    format!("{added} {removed}")
}

fn said(change: Change) -> &'static str {
    match change {
        Change::Changed => "",
        Change::Added => "  new",
        Change::Deleted => "  deleted",
        Change::Renamed => "  renamed",
    }
}

/// The lines of a patch with their colours. The data of files that are no text is left out and counted.
pub(super) fn lines(patch: &str) -> Vec<(Tone, String)> {
    let mut lines: Vec<(Tone, String)> = Vec::new();
    let (mut reader, mut hidden) = (Reader::default(), 0);
    for line in patch.lines() {
        let part = reader.part(line);
        if part == Part::Binary {
            hidden += 1;
            continue;
        }
        close(&mut lines, &mut hidden);
        let tone = match part {
            Part::File => Tone::Strong,
            Part::Hunk => Tone::Live,
            Part::Added => Tone::Good,
            Part::Removed => Tone::Bad,
            Part::Header => Tone::Dim,
            Part::Same | Part::Binary => Tone::Plain,
        };
        lines.push((tone, escape::block(line)));
    }
    close(&mut lines, &mut hidden);
    lines
}

fn close(lines: &mut Vec<(Tone, String)>, hidden: &mut usize) {
    if *hidden > 0 {
        let said = format!(
            "[the data of a file that is not text: {}]",
            count(*hidden, "line")
        );
        lines.push((Tone::Dim, said));
        *hidden = 0;
    }
}

/// A patch in colours, its first `limit` lines or all. Lines are as long as they are: they may be read by a program.
#[must_use]
pub fn text(patch: &str, style: Style, limit: Option<usize>) -> String {
    let lines = lines(patch);
    if lines.is_empty() {
        return "[the patch is empty: nothing changes]\n".to_owned();
    }
    let most = limit.unwrap_or(lines.len());
    let mut text = String::new();
    for (tone, line) in lines.iter().take(most) {
        let _ = writeln!(text, "{}", style.paint(*tone, line));
    }
    if lines.len() > most {
        let _ = writeln!(text, "[{}]", more(lines.len() - most, "line"));
    }
    text
}

pub(super) fn more(number: usize, noun: &str) -> String {
    format!("{} more", count(number, noun))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,3 @@ fn a\n same\n--- looks like a header\n+++ so does this\n same\n\
        diff --git a/new file.txt b/new file.txt\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/new file.txt\t\n@@ -0,0 +1 @@\n+one \u{1b}[2J\n\\ No newline at end of file\n\
        diff --git a/old b/moved\nsimilarity index 100%\nrename from old\nrename to moved\n\
        diff --git a/gone b/gone\ndeleted file mode 100644\nindex 1..0\n--- a/gone\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n\
        diff --git a/p.png b/p.png\nnew file mode 100644\nindex 0..1\nGIT binary patch\nliteral 3\nKcmZ\n\nliteral 0\nHcm\n";

    #[test]
    fn files_are_counted_and_what_looks_like_a_header_is_content() {
        let shown: Vec<String> = stat(PATCH)
            .iter()
            .map(|file| {
                let FileStat {
                    path,
                    change,
                    added,
                    removed,
                    binary,
                } = file;
                format!("{path} {} +{added} -{removed} {binary}", change.name())
            })
            .collect();
        assert_eq!(
            shown,
            [
                "src/a.rs CHANGED +1 -1 false",
                "new file.txt ADDED +1 -0 false",
                "moved RENAMED +0 -0 false",
                "gone DELETED +0 -2 false",
                "p.png ADDED +0 -0 true",
            ]
        );
        let text = stat_text(&stat(PATCH), Style::plain(80));
        assert!(
            text.ends_with("  5 files changed, 2 lines added, 3 removed\n"),
            "{text}"
        );
        assert!(text.contains("  gone          +0 -2  deleted\n"), "{text}");
    }

    #[test]
    fn a_patch_is_shown_in_colours_and_draws_nothing_by_itself() {
        let colours = Style {
            colour: true,
            width: 80,
        };
        let text = text(PATCH, colours, None);
        assert!(
            text.contains("\u{1b}[32m+one \\u{1b}[2J\u{1b}[0m\n"),
            "{text}"
        );
        assert!(
            text.contains("\u{1b}[31m--- looks like a header\u{1b}[0m"),
            "{text}"
        );
        assert!(
            text.contains("[the data of a file that is not text: 6 lines]"),
            "{text}"
        );
    }

    #[test]
    fn a_long_patch_is_cut_and_says_so() {
        let short = text(PATCH, Style::plain(80), Some(2));
        assert_eq!(
            short,
            "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n[31 lines more]\n"
        );
        assert_eq!(
            text("", Style::plain(80), None),
            "[the patch is empty: nothing changes]\n"
        );
    }
}
