//! Text from outside, made safe for a terminal.
//! Invariant: what leaves here moves no cursor, changes no colour and reorders nothing: controls and bidi marks are spelled out.
//! Called wherever text of an agent, a repository or a person is shown.

/// One line: everything that is not plainly printable, line ends included, is spelled out as `\u{..}`.
#[must_use]
pub fn line(text: &str) -> String {
    escape(text, false)
}

/// Several lines: as [`line()`], but line feeds and tabs stay.
#[must_use]
pub fn block(text: &str) -> String {
    escape(text, true)
}

fn escape(text: &str, keep_layout: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\t' if keep_layout => shown.push(char),
            _ if is_unsafe(char) => shown.extend(char.escape_unicode()),
            _ => shown.push(char),
        }
    }
    shown
}

/// Controls, bidirectional marks, invisible format characters, tags, and line separators.
fn is_unsafe(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The last `count` lines of a text, escaped.
#[must_use]
pub fn tail(text: &str, count: usize) -> Vec<String> {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines
        .iter()
        .skip(lines.len().saturating_sub(count))
        .map(|text| line(text.trim_end()))
        .collect()
}

/// How many columns of a terminal a character takes: none, one, or two.
#[must_use]
pub fn columns_of(char: char) -> usize {
    match char {
        '\u{300}'..='\u{36f}'
        | '\u{483}'..='\u{489}'
        | '\u{591}'..='\u{5bd}'
        | '\u{64b}'..='\u{65f}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe20}'..='\u{fe2f}'
        | '\u{e0100}'..='\u{e01ef}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{231a}'..='\u{231b}'
        | '\u{23e9}'..='\u{23f3}'
        | '\u{25fd}'..='\u{25fe}'
        | '\u{2614}'..='\u{2615}'
        | '\u{2648}'..='\u{2653}'
        | '\u{26a1}'
        | '\u{26bd}'..='\u{26be}'
        | '\u{26d4}'
        | '\u{2705}'
        | '\u{270a}'..='\u{270b}'
        | '\u{2728}'
        | '\u{274c}'
        | '\u{274e}'
        | '\u{2753}'..='\u{2757}'
        | '\u{2795}'..='\u{2797}'
        | '\u{27b0}'
        | '\u{2b1b}'..='\u{2b1c}'
        | '\u{2b50}'
        | '\u{2b55}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{33ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{a4cf}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{16fe0}'..='\u{18aff}'
        | '\u{1b000}'..='\u{1b2ff}'
        | '\u{1f004}'
        | '\u{1f0cf}'
        | '\u{1f18e}'
        | '\u{1f191}'..='\u{1f19a}'
        | '\u{1f1e6}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f7e0}'..='\u{1f7eb}'
        | '\u{1f900}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// How many columns of a terminal a text takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// At most `columns` columns, the last of them `~` when something was left out.
#[must_use]
pub fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut short, mut taken) = (String::new(), 0);
    for char in text.chars() {
        taken += columns_of(char);
        if taken >= columns {
            break;
        }
        short.push(char);
    }
    short.push('~');
    short
}

/// The text in `columns` columns exactly: clipped, or filled with spaces.
#[must_use]
pub fn fill(text: &str, columns: usize) -> String {
    let mut text = clip(text, columns);
    text.push_str(&" ".repeat(columns.saturating_sub(width(&text))));
    text
}

/// The words of a line in lines of at most `columns` columns; a word that is longer stands alone and is clipped.
#[must_use]
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let lines = wrap_whole(text, columns);
    lines.iter().map(|line| clip(line, columns)).collect()
}

/// As [`wrap()`], but a word that is longer is left whole: it may be a path that is there to be copied.
#[must_use]
pub fn wrap_whole(text: &str, columns: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split(' ') {
        if !line.is_empty() && width(&line) + 1 + width(word) > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// A line in pieces of at most `columns` columns, broken behind blanks where there are any. Nothing is left out; tabs
/// become blanks up to the next of the stops, which are eight columns apart.
#[must_use]
pub fn fold(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(8);
    let (mut pieces, mut piece, mut taken) = (Vec::new(), String::new(), 0);
    for char in spread(text).chars() {
        if taken + columns_of(char) > columns {
            let rest = match piece.rfind(' ').filter(|at| at * 2 > piece.len()) {
                Some(at) => piece.split_off(at + 1),
                None => String::new(),
            };
            pieces.push(std::mem::replace(&mut piece, rest));
            taken = width(&piece);
        }
        piece.push(char);
        taken += columns_of(char);
    }
    pieces.push(piece);
    pieces
}

/// Tabs as blanks.
fn spread(text: &str) -> String {
    let (mut spread, mut taken) = (String::with_capacity(text.len()), 0);
    for char in text.chars() {
        if char == '\t' {
            let blanks = 8 - taken % 8;
            spread.push_str(&" ".repeat(blanks));
            taken += blanks;
        } else {
            spread.push(char);
            taken += columns_of(char);
        }
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_and_bidi_marks_are_spelled_out() {
        assert_eq!(line("a\u{1b}[31mb"), "a\\u{1b}[31mb");
        assert_eq!(line("a\u{202e}b\nc"), "a\\u{202e}b\\u{a}c");
        assert_eq!(block("a\n\tb\r"), "a\n\tb\\u{d}");
    }

    #[test]
    fn a_tail_keeps_the_last_lines() {
        assert_eq!(tail("1\n2\n3\n", 2), ["2", "3"]);
    }

    #[test]
    fn a_clip_says_that_something_is_missing() {
        assert_eq!(clip("abcdef", 4), "abc~");
        assert_eq!(clip("abcd", 4), "abcd");
        assert_eq!(clip("\u{4e2d}\u{6587}ab", 4), "\u{4e2d}~");
        assert_eq!(fill("ab", 4), "ab  ");
    }

    #[test]
    fn folding_leaves_nothing_out() {
        assert_eq!(fold("  a man a plan", 8), ["  a man ", "a plan"]);
        assert_eq!(fold("abcdefghijkl", 8), ["abcdefgh", "ijkl"]);
        assert_eq!(fold("a\tb", 20), ["a       b"]);
        assert_eq!(fold("", 8), [""]);
    }

    #[test]
    fn words_are_kept_together() {
        assert_eq!(wrap("a man a plan", 5), ["a man", "a", "plan"]);
        assert_eq!(wrap("abcdefgh i", 5), ["abcd~", "i"]);
        assert_eq!(wrap("", 5), [""]);
    }
}
