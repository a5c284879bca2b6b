//! An error as people read it: its code, what was expected and found, and what to type.
//! Invariant: the code stands first; commands are not broken where the terminal is wide enough for them; a refusal says
//! both what has to hold and what was found.
//! Called where a verb ends with an error.

use std::fmt::Write;

use aiws::error::{Error, Stage};
use aiws::json::Value;

use super::escape;
use super::style::{Style, Tone};

/// The error, what to do about it, and where there is more.
#[must_use]
pub fn text(error: &Error, style: Style) -> String {
    let code = error.code();
    let pointer = error.pointer.as_ref();
    let place = pointer
        .map(|pointer| format!(" (at {})", escape::line(pointer)))
        .unwrap_or_default();
    // A guard says what has to hold; here it did not.
    let guard = error.details.get("requirement").and_then(Value::as_str);
    let rule = guard
        .map(|id| format!("this does not hold ({id}): "))
        .unwrap_or_default();
    let mut text = String::new();
    let message = format!(
        "praxis: {code}: {rule}{}{place}",
        escape::block(&error.message)
    );
    for (number, line) in message.lines().enumerate() {
        for (index, piece) in escape::wrap_whole(line, style.width.saturating_sub(2))
            .iter()
            .enumerate()
        {
            let indent = if number + index == 0 { "" } else { "  " };
            let _ = writeln!(text, "{indent}{piece}");
        }
    }
    if let (Some(_), Some(found)) = (guard, found(error)) {
        for line in escape::wrap_whole(&found, style.width.saturating_sub(2)) {
            let _ = writeln!(text, "  {line}");
        }
    }
    let head = format!("{code}");
    if let Some(at) = text.find(&head) {
        text.replace_range(at..at + head.len(), &style.paint(Tone::Bad, &head));
    }
    match error.details.get("mend").and_then(Value::as_str) {
        Some(mend) => {
            let _ = writeln!(text, "  try: {}", escape::line(mend));
        }
        None => {
            for line in escape::wrap_whole(code.remedy(), style.width.saturating_sub(2)) {
                let _ = writeln!(text, "  {line}");
            }
        }
    }
    if code.stage() != Stage::Usage {
        let more = format!("more: praxis explain {code}");
        let _ = writeln!(text, "  {}", style.paint(Tone::Dim, &more));
    }
    text
}

/// What a guard found, from the details that it gave: `found: holdId h-1, state RELEASED`. None where it gave none.
fn found(error: &Error) -> Option<String> {
    let told = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::Null => return None,
            Value::String(text) => escape::line(text),
            other => escape::line(&other.to_string()),
        };
        Some(format!("{} {value}", escape::line(name)))
    };
    let details = error.details.iter();
    let facts = details.filter(|(name, _)| !matches!(name.as_str(), "requirement" | "mend"));
    let facts: Vec<String> = facts.filter_map(told).collect();
    (!facts.is_empty()).then(|| format!("found: {}", facts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aiws::error::Code;

    #[test]
    fn a_refusal_says_what_has_to_hold_and_what_was_found() {
        let error = Error::new(Code::HoldState, "The hold is OPEN.")
            .with("requirement", "HS-01.1")
            .with("holdId", "h-1")
            .with("node", Value::Null)
            .with("state", "RELEASED");
        let shown = text(&error, Style::plain(200));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[..2],
            [
                "praxis: HOLD_STATE: this does not hold (HS-01.1): The hold is OPEN.",
                "  found: holdId h-1, state RELEASED"
            ]
        );
        // What is no guard's says what was found in its own words.
        let plain = Error::new(Code::RunNotFound, "expected a run, found none").with("run", "r-1");
        assert!(!text(&plain, Style::plain(200)).contains("found: "));
        let bare = Error::new(Code::HoldState, "The hold is OPEN.").with("requirement", "HS-01.1");
        assert!(!text(&bare, Style::plain(200)).contains("found: "));
    }

    #[test]
    fn an_error_fits_the_terminal_and_keeps_what_is_copied() {
        let path = "/home/alice/a/very/long/path/that/is/longer/than/the/terminal/is/wide";
        let error = Error::new(
            Code::RunNotFound,
            format!(
                "expected a run of the store {path}, found r-none; the latest ones are r-1 and r-2"
            ),
        );
        let shown = text(&error, Style::plain(40));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[..4],
            [
                "praxis: RUN_NOT_FOUND: expected a run",
                "  of the store",
                &format!("  {path},"),
                "  found r-none; the latest ones are r-1"
            ]
        );
        let painted = text(
            &error,
            Style {
                colour: true,
                width: 40,
            },
        );
        assert!(
            painted.starts_with("praxis: \u{1b}[31mRUN_NOT_FOUND\u{1b}[0m: "),
            "{painted}"
        );
    }
}
