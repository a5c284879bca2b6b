//! `praxis explain`: what an error code means and what to do about it.
//! Invariant: every code of the table has a page; the table is the only source.
//! Called by `verbs::run`.

use aiws::error::{Code, Error, Stage};
use aiws::json::Value;

use super::print;
use crate::args::Explain as Args;
use crate::exit::Exit;
use crate::render::{escape, json};

/// Runs it.
///
/// # Errors
///
/// `CODE_UNKNOWN` with the codes that look alike.
pub fn run(args: &Args, as_json: bool) -> Result<Exit, Error> {
    let Some(name) = &args.code else {
        return list(as_json);
    };
    let code = Code::parse(&name.to_ascii_uppercase()).ok_or_else(|| unknown(name))?;
    if as_json {
        print(&json::object("code", value(code)).to_string())?;
    } else {
        print(&page(code))?;
    }
    Ok(Exit::Done)
}

fn list(as_json: bool) -> Result<Exit, Error> {
    if as_json {
        let codes: Vec<Value> = Code::all().iter().map(|code| value(*code)).collect();
        print(&json::object("codes", aiws::object! { "codes": codes }).to_string())?;
    } else {
        let lines: Vec<String> = Code::all()
            .iter()
            .map(|code| format!("{:<24}{}", code.name(), code.sentence()))
            .collect();
        print(&lines.join("\n"))?;
    }
    Ok(Exit::Done)
}

/// The page of a code.
fn page(code: Code) -> String {
    let stage = match code.stage() {
        Stage::Store => "outside the order of checks: the store could not do it".to_owned(),
        Stage::Usage => "outside the order of checks: the call was wrong".to_owned(),
        stage => format!(
            "check {} of 9, {}",
            stage.number().unwrap_or_default(),
            stage.name()
        ),
    };
    format!(
        "{}\n\n  {}\n\n  what to do  {}\n  raised by   {stage}\n  exit code   {}\n  vocabulary  {}\n",
        code.name(),
        code.sentence(),
        code.remedy(),
        Exit::of(code) as i32,
        code.namespace().name()
    )
}

fn value(code: Code) -> Value {
    aiws::object! {
        "code": code.name(),
        "namespace": code.namespace().name(),
        "stage": code.stage().name(),
        "sentence": code.sentence(),
        "remedy": code.remedy(),
        "exit": Exit::of(code) as i32,
    }
}

fn unknown(name: &str) -> Error {
    let wanted = name.to_ascii_uppercase();
    let alike: Vec<&str> = Code::all()
        .iter()
        .map(|code| code.name())
        .filter(|known| {
            wanted
                .split('_')
                .any(|word| word.len() > 2 && known.contains(word))
        })
        .take(5)
        .collect();
    let hint = if alike.is_empty() {
        "praxis explain lists all of them".to_owned()
    } else {
        format!("did you mean {}?", alike.join(", "))
    };
    Error::new(
        Code::CodeUnknown,
        format!(
            "expected an error code, found {}; {hint}",
            escape::line(name)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page() {
        for code in Code::all() {
            let page = page(*code);
            assert!(
                page.contains(code.sentence()) && page.contains(code.remedy()),
                "{code}"
            );
        }
    }

    #[test]
    fn an_unknown_code_is_met_with_those_that_look_alike() {
        assert!(unknown("store_lock").message.contains("STORE_LOCKED"));
        assert!(unknown("zzz").message.contains("lists all"));
    }
}
