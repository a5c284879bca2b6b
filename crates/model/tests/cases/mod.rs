//! Cases as data: given a world, when a command comes, then this and nothing else.
//! Invariant: a refused command leaves the world as it was (ERR-PREC.3). Used by `guards`.

mod admission;
mod boundary;
mod branches;
mod claims;
mod common;
mod evidence;
mod fork;
mod graph;
mod join_any;
mod join_skips;
mod loops;
mod pipeline;
mod skips;

use std::sync::OnceLock;

use aiws::error::Code;
use aiws::json::Value;
use praxis_model::decision::{Decision, Rejection};
use praxis_model::guard::Guard;

use crate::world::{Step, World};

/// One case.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Its doc comment, which begins with `Proves ID, ID: `.
    pub doc: &'static str,
    /// What it does.
    pub run: fn() -> Outcome,
}

/// Nothing, or what was wrong.
pub type Outcome = Result<(), String>;

impl Case {
    /// The requirements that it proves, as its doc comment says.
    pub fn proves(&self) -> Vec<&'static str> {
        let ids = self
            .doc
            .trim()
            .strip_prefix("Proves ")
            .and_then(|rest| rest.split_once(": "));
        ids.map(|(ids, _)| ids.split(", ").map(str::trim).collect())
            .unwrap_or_default()
    }
}

/// All cases of all files.
pub fn all() -> &'static [Case] {
    static ALL: OnceLock<Vec<Case>> = OnceLock::new();
    ALL.get_or_init(|| {
        let files = [
            admission::cases(),
            boundary::cases(),
            branches::cases(),
            claims::cases(),
            evidence::cases(),
            fork::cases(),
            graph::cases(),
            join_any::cases(),
            join_skips::cases(),
            loops::cases(),
            pipeline::cases(),
            skips::cases(),
        ];
        files.into_iter().flatten().collect()
    })
}

/// Makes a test of every function and a list of them all.
macro_rules! cases {
    ($($(#[doc = $doc:literal])* #[test] fn $name:ident() $body:block)*) => {
        $($(#[doc = $doc])*
        #[test]
        fn $name() {
            let _others_may_run = crate::GUARDS.read().unwrap_or_else(|poisoned| poisoned.into_inner());
            assert_eq!(run::$name(), Ok(()));
        })*

        mod run {
            #[allow(unused_imports)]
            use super::*;
            $(pub(super) fn $name() -> crate::cases::Outcome $body)*
        }

        /// The cases of this file.
        pub fn cases() -> Vec<crate::cases::Case> {
            vec![$(crate::cases::Case {
                name: stringify!($name),
                doc: concat!($($doc),*),
                run: run::$name,
            }),*]
        }
    };
}
pub(crate) use cases;

/// When `when` is done to the world, then it is refused with this code and nothing has changed.
pub fn refused(world: &World, code: Code, when: impl FnOnce(&mut World) -> Step) -> Outcome {
    let mut after = world.clone();
    let step = when(&mut after);
    match step {
        Ok(result) => Err(format!("expected {code}, found acceptance with {result}")),
        Err(error) if error.code() != code => Err(format!(
            "expected {code}, found {error} {:?}",
            error.details
        )),
        Err(_)
            if after.run != world.run
                || after.mission != world.mission
                || after.events != world.events =>
        {
            Err(format!("refused with {code}, but something changed"))
        }
        Err(_) => Ok(()),
    }
}

/// As `refused`, and it is this guard that refuses.
pub fn stopped(
    world: &World,
    guard: Guard,
    code: Code,
    when: impl FnOnce(&mut World) -> Step,
) -> Outcome {
    let mut by = None;
    refused(world, code, |world| {
        let step = when(world);
        by = step
            .as_ref()
            .err()
            .and_then(|error| error.details.get("requirement").cloned());
        step
    })?;
    let expected = Some(Value::from(guard.id()));
    ensure(
        by == expected,
        format!(
            "expected the refusal of {guard:?} {}, found {by:?}",
            guard.id()
        ),
    )
}

/// A decision that was asked for without doing anything is this guard's refusal.
pub fn refused_by(guard: Guard, decided: Result<Decision, Rejection>) -> Outcome {
    let error = match decided {
        Ok(_) => {
            return Err(format!(
                "expected the refusal of {guard:?}, found acceptance"
            ));
        }
        Err(error) => error,
    };
    let by = error.details.get("requirement").and_then(Value::as_str);
    let own = error.code() == guard.code() && by == Some(guard.id());
    let found = || format!("expected the refusal of {guard:?}, found {error} by {by:?}");
    ensure(own && error.message == guard.sentence(), found())
}

/// When `when` is done to the world, then it is accepted; gives the world after it.
pub fn accepted(world: &World, when: impl FnOnce(&mut World) -> Step) -> Result<World, String> {
    let mut after = world.clone();
    when(&mut after)
        .map_err(|error| format!("expected acceptance, found {error} {:?}", error.details))?;
    Ok(after)
}

/// A step of the setting, which must be accepted.
pub trait Must {
    /// The result, or what was refused.
    fn must(self) -> Result<Value, String>;
}

impl Must for Step {
    fn must(self) -> Result<Value, String> {
        self.map_err(|error| format!("the setting was refused: {error} {:?}", error.details))
    }
}

/// A plain condition.
pub fn ensure(holds: bool, what: impl Into<String>) -> Outcome {
    if holds { Ok(()) } else { Err(what.into()) }
}
