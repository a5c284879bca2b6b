//! `praxis explain`: what an error code means and what to do about it.
//! Invariant: every code of the table has a page; so has every reason of a hold, with who may clear it and by which verb,
//! and every cause that the page of a run prints.
//! Called by `verbs::run`.

mod pages;

use aiws::error::{Code, Error, Stage};
use aiws::json::Value;

use super::print;
use crate::args::Explain as Args;
use crate::exit::Exit;
use crate::render::{escape, json};

/// Where the page of a run prints a word that is no error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// As the reason of a hold.
    Hold,
    /// As the cause of a run's end.
    Cause,
}

/// A word that the page of a run prints.
struct Word {
    name: &'static str,
    shown: Shown,
    sentence: &'static str,
    remedy: &'static str,
    /// Who may clear a hold, and by which verb; a cause is final.
    clears: Option<&'static str>,
}

const fn hold(
    name: &'static str,
    sentence: &'static str,
    remedy: &'static str,
    clears: &'static str,
) -> Word {
    let shown = Shown::Hold;
    Word {
        name,
        shown,
        sentence,
        remedy,
        clears: Some(clears),
    }
}

const fn cause(name: &'static str, sentence: &'static str, remedy: &'static str) -> Word {
    let shown = Shown::Cause;
    Word {
        name,
        shown,
        sentence,
        remedy,
        clears: None,
    }
}

/// The holds and causes. What is used up no verb gives back, so those say what another run needs.
const WORDS: &[Word] = &[
    hold(
        "ATTEMPT_LIMIT",
        "Every correction, or every start of one piece of work, is used up.",
        "start another run with more --max-corrections, or another agent; praxis show has the last output",
        "nobody, for no verb gives an attempt back; praxis cancel RUN ends the run",
    ),
    hold(
        "COST_LIMIT",
        "The budget has nothing left for the next run of the agent.",
        "start another run with more --budget",
        "a person, by praxis recheck HOLD, where a reservation came back since and leaves room; else praxis cancel RUN",
    ),
    hold(
        "TIME_LIMIT",
        "The deadline for new work has passed, thirty days after the start.",
        "start another run",
        "a person, by praxis recheck HOLD, and only while the deadline is ahead; else praxis cancel RUN",
    ),
    hold(
        "ARTIFACT",
        "Stored material that the run needs is missing or damaged.",
        "put the bytes back under artifacts/ in the store, then praxis recheck HOLD; it names what is missing",
        "a person, by praxis recheck HOLD, once every artifact that the run still hands on was read back whole",
    ),
    hold(
        "RESTART",
        "The run was taken over from an owner that failed too often in a short time.",
        "look with praxis log at what happened, and start another run",
        "a person, by praxis recheck HOLD and then praxis resume RUN",
    ),
    hold(
        "OPERATOR",
        "A person paused the run; what ran then ended by itself, and nothing new starts.",
        "praxis continue RUN lets it go on",
        "a person, by praxis continue RUN",
    ),
    hold(
        "UNCERTAIN_EFFECT",
        "Nobody knows what a run of the agent did.",
        "praxis unknown shows it and how to settle it",
        "a person, by praxis recheck HOLD, once praxis reconcile has settled every attempt that it waits for",
    ),
    hold(
        "INVALIDATED_INPUT",
        "What a node handed over was found to be wrong, and work that rests on it must not go on.",
        "praxis log shows what was invalidated and why; start another run",
        "nobody, for what hangs on that hand-off stays closed; praxis cancel RUN ends the run",
    ),
    hold(
        "RULE",
        "A rule of whoever runs this store stopped the run.",
        "praxis log shows when; do what the rule asks for, and recheck the hold",
        "a person, by praxis recheck HOLD",
    ),
    cause(
        "CANCELED",
        "A person canceled the run; what its agent was doing then was stopped and recorded.",
        "praxis code --from RUN begins it again",
    ),
    cause(
        "PLAN_FAILED",
        "The agent did not end its plan stage with a usable plan.md, so nothing was implemented.",
        "praxis show has its last output; mend the agent's command and start another run",
    ),
    cause(
        "APPROVAL_DENIED",
        "A person said no to the plan, so nothing was implemented.",
        "start another run with another task or agent",
    ),
    cause(
        "ACCEPTANCE_REJECTED",
        "A person said no to the result, so there is no branch.",
        "start another run with another task or agent",
    ),
];

impl Word {
    fn exit(&self) -> Exit {
        match self.shown {
            Shown::Hold if self.name == "UNCERTAIN_EFFECT" => Exit::Uncertain,
            Shown::Hold => Exit::Waits,
            Shown::Cause => Exit::Failed,
        }
    }

    fn place(&self) -> &'static str {
        match self.shown {
            Shown::Hold => "hold",
            Shown::Cause => "cause",
        }
    }

    fn page(&self) -> String {
        let clears = self.clears.map(|who| format!("  who clears  {who}\n"));
        format!(
            "{}\n\n  {}\n\n  what to do  {}\n{}  shown as    {} of a run\n  exit code   {}\n",
            self.name,
            self.sentence,
            self.remedy,
            clears.unwrap_or_default(),
            self.place(),
            self.exit() as i32
        )
    }

    fn value(&self) -> Value {
        aiws::object! {
            "word": self.name,
            "shownAs": self.place(),
            "sentence": self.sentence,
            "remedy": self.remedy,
            "clears": self.clears,
            "exit": self.exit() as i32,
        }
    }
}

/// Runs it.
///
/// # Errors
///
/// `CODE_UNKNOWN` with the codes that look alike.
pub fn run(args: &Args, as_json: bool) -> Result<Exit, Error> {
    let Some(name) = &args.code else {
        return list(as_json);
    };
    let wanted = name.to_ascii_uppercase();
    if let Some(word) = WORDS.iter().find(|word| word.name == wanted) {
        let shown = match as_json {
            true => json::object("word", word.value()).to_string(),
            false => word.page(),
        };
        print(&shown)?;
        return Ok(Exit::Done);
    }
    let code = Code::parse(&wanted).ok_or_else(|| unknown(name))?;
    if as_json {
        let mut members = value(code);
        if let (Value::Object(members), Some(page)) = (&mut members, pages::markdown(code.name())) {
            members.insert("page".to_owned(), page.into());
        }
        print(&json::object("code", members).to_string())?;
    } else {
        print(&page(code))?;
    }
    Ok(Exit::Done)
}

fn list(as_json: bool) -> Result<Exit, Error> {
    if as_json {
        let codes: Vec<Value> = Code::all().iter().map(|code| value(*code)).collect();
        let words: Vec<Value> = WORDS.iter().map(Word::value).collect();
        let members = aiws::object! { "codes": codes, "words": words };
        print(&json::object("codes", members).to_string())?;
    } else {
        let lines: Vec<String> = Code::all()
            .iter()
            .map(|code| (code.name(), code.sentence()))
            .chain(WORDS.iter().map(|word| (word.name, word.sentence)))
            .map(|(name, sentence)| format!("{name:<24}{sentence}"))
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
    let facts = format!(
        "  what to do  {}\n  raised by   {stage}\n  exit code   {}\n  vocabulary  {}\n",
        code.remedy(),
        Exit::of(code) as i32,
        code.namespace().name()
    );
    // The page begins with what the code means.
    let page = pages::text(code.name()).unwrap_or_else(|| format!("  {}\n", code.sentence()));
    format!("{}\n\n{facts}\n{page}", code.name())
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
        .chain(WORDS.iter().map(|word| word.name))
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
    use aiws::record::HoldReason;

    use super::*;

    #[test]
    fn every_code_has_a_page() {
        for code in Code::all() {
            let page = page(*code);
            let whole = page.contains("When it happens") && page.contains(code.remedy());
            assert!(whole, "{code}");
        }
    }

    /// A reason without a page would be answered with CODE_UNKNOWN by the very verb that the page of a run points to.
    #[test]
    fn every_reason_of_a_hold_says_who_clears_it_and_how() {
        for reason in HoldReason::ALL {
            let mut words = WORDS.iter();
            let word = words.find(|word| word.shown == Shown::Hold && word.name == reason.name());
            let word = word.unwrap_or_else(|| panic!("{} has no page", reason.name()));
            let page = word.page();
            let who = page.split_once("who clears  ").map(|(_, rest)| rest);
            let who = who.and_then(|rest| rest.lines().next()).unwrap_or_default();
            assert!(who.contains("praxis "), "{page}");
        }
        let holds = WORDS.iter().filter(|word| word.shown == Shown::Hold);
        assert_eq!(holds.count(), HoldReason::ALL.len());
    }

    /// A word that was an error code, too, would hide that one.
    #[test]
    fn words_of_a_page_are_no_error_codes() {
        for word in WORDS {
            assert_eq!(Code::parse(word.name), None, "{}", word.name);
            assert!(word.page().contains(word.remedy), "{}", word.name);
        }
    }

    #[test]
    fn an_unknown_code_is_met_with_those_that_look_alike() {
        assert!(unknown("store_lock").message.contains("STORE_LOCKED"));
        assert!(unknown("zzz").message.contains("lists all"));
    }
}
