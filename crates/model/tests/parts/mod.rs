//! A generated page that several test programs write together: each has its own part of it, between two marks.
//!
//! Invariant: without `PRAXIS_BLESS=1` nothing is written, and a part that differs is a failure. Called by the ablations.

/// The page, from this crate's directory.
const PAGE: &str = "../../docs/ABLATION.md";
/// What writes it anew.
const COMMAND: &str = "PRAXIS_BLESS=1 cargo test -p praxis-model ablation";

/// Compares a part with what it would be now; with `PRAXIS_BLESS=1` writes it instead.
///
/// # Errors
/// A sentence with the first line that differs and the command that writes the page anew.
pub fn check(name: &str, wanted: &str) -> Result<(), String> {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(&file).map_err(|error| format!("{PAGE}: {error}"))?;
    let (begin, end) = (
        format!("<!-- begin {name} -->\n"),
        format!("<!-- end {name} -->"),
    );
    let split = page
        .split_once(&begin)
        .and_then(|(head, rest)| Some((head, rest.split_once(&end)?)));
    let (head, (found, tail)) = split.ok_or_else(|| format!("{PAGE} has no part {name}"))?;
    if found == wanted {
        return Ok(());
    }
    if std::env::var_os("PRAXIS_BLESS").is_some_and(|value| value == "1") {
        let anew = format!("{head}{begin}{wanted}{end}{tail}");
        return std::fs::write(&file, anew).map_err(|error| format!("{PAGE}: {error}"));
    }
    let differs = wanted
        .lines()
        .zip(found.lines().chain(std::iter::repeat("")))
        .find(|(one, two)| one != two);
    Err(format!(
        "{PAGE} is out of date ({differs:?}); write it anew with: {COMMAND}"
    ))
}
