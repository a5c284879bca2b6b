//! Just enough of Rust's grammar to tell code from comments, literals and test items.
//! Invariant: what is removed becomes blanks, so lines and columns stay where they were.
//! `repo` calls it; the rules of `tidy` search what is left.

/// The source with comments and the insides of string and character literals blanked.
pub fn code_only(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = comment_end(&chars, at).or_else(|| literal_end(&chars, at));
        match end {
            Some(end) => {
                for &c in &chars[at..end] {
                    out.push(if c == '\n' { '\n' } else { ' ' });
                }
                at = end;
            }
            None => {
                out.push(chars[at]);
                at += 1;
            }
        }
    }
    out
}

/// The code without what `#[cfg(test)]` (alone or inside `all`) or `#[test]` stands above.
pub fn without_test_items(code: &str) -> String {
    let mut bytes = code.as_bytes().to_vec();
    for (start, item) in test_attributes(code) {
        let end = item_end(code, item);
        for byte in &mut bytes[start..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Names of the modules that are declared, without a body, for tests only.
pub fn test_modules(code: &str) -> Vec<String> {
    test_attributes(code)
        .into_iter()
        .filter_map(|(_, item)| {
            let rest = code[item..].trim_start();
            let rest = rest.strip_prefix("pub(crate) ").unwrap_or(rest);
            let (name, _) = rest.strip_prefix("mod ")?.split_once(';')?;
            let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
            is_name.then(|| name.to_owned())
        })
        .collect()
}

/// `(start of the attribute, start of what follows it)` for each attribute that makes an item test code.
fn test_attributes(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(offset) = code[from..].find("#[") {
        let start = from + offset;
        let Some(length) = bracket_length(&code[start + 1..], '[', ']') else {
            break;
        };
        let end = start + 1 + length;
        if makes_test_code(&code[start..end]) {
            found.push((start, end));
        }
        from = end;
    }
    found
}

fn makes_test_code(attribute: &str) -> bool {
    let inner: String = attribute
        .trim_start_matches("#[")
        .trim_end_matches(']')
        .split_whitespace()
        .collect();
    if let Some(condition) = inner.strip_prefix("cfg(") {
        return condition.starts_with("test)")
            || (condition.starts_with("all(")
                && condition.split(['(', ')', ',']).any(|word| word == "test")
                && !condition.contains("not(test"));
    }
    inner == "test" || inner.starts_with("tokio::test")
}

/// Where the item that begins at or after `from` ends: behind its block, or behind its semicolon.
fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0usize;
    for (offset, c) in code[from..].char_indices() {
        let at = from + offset;
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => return at + 1,
            '{' if depth == 0 => {
                return bracket_length(&code[at..], '{', '}')
                    .map_or(code.len(), |length| at + length);
            }
            _ => {}
        }
    }
    code.len()
}

/// Length in bytes of the bracketed text that `text` starts with, both brackets included.
pub fn bracket_length(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at + c.len_utf8());
            }
        }
    }
    None
}

fn comment_end(chars: &[char], at: usize) -> Option<usize> {
    match (chars.get(at)?, chars.get(at + 1)?) {
        ('/', '/') => Some(find_from(chars, at, '\n')),
        ('/', '*') => {
            let mut depth = 0usize;
            let mut here = at;
            while here < chars.len() {
                match (chars[here], chars.get(here + 1)) {
                    ('/', Some('*')) => {
                        depth += 1;
                        here += 2;
                    }
                    ('*', Some('/')) => {
                        depth -= 1;
                        here += 2;
                        if depth == 0 {
                            return Some(here);
                        }
                    }
                    _ => here += 1,
                }
            }
            Some(chars.len())
        }
        _ => None,
    }
}

fn literal_end(chars: &[char], at: usize) -> Option<usize> {
    let in_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    match chars[at] {
        '"' => Some(quoted_end(chars, at + 1)),
        'r' if !in_word => raw_end(chars, at + 1),
        'b' if !in_word && chars.get(at + 1) == Some(&'r') => raw_end(chars, at + 2),
        '\'' => char_end(chars, at),
        _ => None,
    }
}

fn quoted_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// `at` stands behind the `r` of a raw string; anything else is no literal.
fn raw_end(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
    if chars.get(at + hashes) != Some(&'"') {
        return None;
    }
    let mut here = at + hashes + 1;
    while here < chars.len() {
        let closes = chars[here] == '"'
            && chars[here + 1..].iter().take_while(|c| **c == '#').count() >= hashes;
        if closes {
            return Some(here + 1 + hashes);
        }
        here += 1;
    }
    Some(chars.len())
}

/// A character literal, as opposed to a lifetime.
fn char_end(chars: &[char], at: usize) -> Option<usize> {
    if chars.get(at + 1) == Some(&'\\') {
        return Some(find_from(chars, at + 3, '\'') + 1);
    }
    (chars.get(at + 2) == Some(&'\'')).then_some(at + 3)
}

fn find_from(chars: &[char], at: usize, wanted: char) -> usize {
    let rest = chars.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|c| **c != wanted).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_become_blanks_of_the_same_shape() {
        let cases = [
            ("a(\"x // y\"); // z", "a(        );     "),
            ("r#\"q\"w\"# + b", "         + b"),
            ("'\\n' 'x' <'a>", "         <'a>"),
            ("/* a /* b */ c */d", "                 d"),
            ("'\\'' x", "     x"),
            ("for r in 0", "for r in 0"),
        ];
        for (source, wanted) in cases {
            assert_eq!(code_only(source), wanted, "{source}");
        }
    }

    #[test]
    fn test_items_go_and_the_rest_stays() {
        let code = "fn a() {}\n#[cfg(test)]\nmod t { fn b() { {} } }\nfn c() {}\n#[test]\nfn d() -> [u8; 2] {}\n#[cfg(not(test))]\nfn e() {}\n";
        let left = without_test_items(code);
        let names: Vec<char> = "abcde"
            .chars()
            .filter(|n| left.contains(&format!("fn {n}")))
            .collect();
        assert_eq!(names, ['a', 'c', 'e']);
        assert_eq!(left.lines().count(), code.lines().count());
    }

    #[test]
    fn only_bodiless_test_modules_are_listed() {
        let code = "#[cfg(all(test, loom))]\nmod models;\n#[cfg(test)]\nmod inline {}\nmod real;\n";
        assert_eq!(test_modules(code), ["models"]);
    }
}
