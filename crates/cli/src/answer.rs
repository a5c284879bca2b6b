//! What a verb answers: the same thing for programs and for people, and how the program ends with it.
//! Invariant: made from what an open store has; whoever shows it adds nothing.
//! Made by the verbs, carried by `socket`, shown by `verbs::say`.

use aiws::json::Value;

use crate::exit::Exit;
use crate::render::text::Style;

/// An answer.
#[derive(Clone, PartialEq)]
pub struct Answer {
    /// For programs: what `--json` prints.
    pub value: Value,
    /// For people; empty where only programs asked.
    pub text: String,
    /// How the program ends.
    pub exit: Exit,
}

aiws::veiled! { Answer { value exit } text; }

impl Answer {
    /// An answer that did what it was asked. `text` is made only where people asked.
    #[must_use]
    pub fn done(value: Value, view: View, text: impl FnOnce(Style) -> String) -> Self {
        Self {
            value,
            text: view.style.map(text).unwrap_or_default(),
            exit: Exit::Done,
        }
    }

    /// The same answer with another end.
    #[must_use]
    pub fn with_exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }
}

/// Who looks at the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// How text for people is dressed; none where a program asks.
    pub style: Option<Style>,
}

impl View {
    /// A program.
    pub const PROGRAM: Self = Self { style: None };

    /// Whoever reads the standard output, unless JSON is wanted.
    #[must_use]
    pub fn of_output(json: bool) -> Self {
        Self {
            style: (!json).then(|| Style::of(&std::io::stdout())),
        }
    }
}
