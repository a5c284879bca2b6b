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
    let lines: Vec<&str> = text.lines().collect();
    lines
        .iter()
        .skip(lines.len().saturating_sub(count))
        .map(|text| line(text.trim_end()))
        .collect()
}

/// At most `width` characters, the last of them `~` when something was left out.
#[must_use]
pub fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('~');
    short
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
    }
}
