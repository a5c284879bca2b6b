//! Two steps of one owner as one append: the second is decided on what the first leads to (T-82).
//!
//! Invariant: nothing of either is swapped in, called or remembered before the append is answered; where the second
//! step is refused, the first goes alone. Part of the simulation.

use aiws::decimal::U64;
use praxis_journal_format::Sealed;
use praxis_model::event::Part;
use praxis_model::evolve;
use praxis_model::run::RunState;

use super::process::{By, Prepared, Process, Then};
use super::{Sim, hops};
use crate::invariant::Broken;
use crate::plan::Act;

impl Sim {
    /// The step with the one that follows from it.
    pub(super) fn paired(
        &mut self,
        process: &mut Process,
        act: &Act,
        number: u32,
        first: Prepared,
    ) -> Result<Prepared, Broken> {
        let quiet = matches!(first.then, Then::Nothing | Then::Token(..));
        let Some(before) = process
            .numbered(act.run, number)
            .map(|owner| (owner.state.clone(), owner.tokens.clone()))
            .filter(|_| quiet)
        else {
            return Ok(first);
        };
        let Some((sealed, between)) =
            part(&first.append.sealed, 1, None).and_then(|sealed| folded(before.0.clone(), sealed))
        else {
            return Ok(first);
        };
        // The owner looks as if the first step were stored, and no longer than it takes to decide the second.
        if let Some(owner) = process.numbered(act.run, number) {
            owner.state = between.clone();
            if let Then::Token(id, token, generation) = &first.then {
                owner.tokens.insert(id.clone(), (*token, *generation));
            }
        }
        let second = self.second(process, act, number);
        if let Some(owner) = process.numbered(act.run, number) {
            (owner.state, owner.tokens) = before;
        }
        Ok(match second? {
            Some(second) => joined(first, sealed, between, second),
            None => first,
        })
    }

    fn second(
        &mut self,
        process: &mut Process,
        act: &Act,
        number: u32,
    ) -> Result<Option<Prepared>, Broken> {
        let owners = process.owners.get(&act.run);
        let owner = owners.and_then(|all| all.iter().find(|owner| owner.number == number));
        let choice = owner.and_then(|owner| self.choices(process, owner).into_iter().next());
        let Some(choice) = choice else {
            return Ok(None);
        };
        self.trace
            .note(format_args!("  with it {}", crate::words::plain(&choice)));
        self.prepare_choice(process, act, number, &choice)
    }
}

/// Both as one append; the first alone where they do not go together.
fn joined(first: Prepared, sealed: Sealed, between: RunState, second: Prepared) -> Prepared {
    let behind = part(&second.append.sealed, 2, Some(&sealed));
    let Some((last, state)) = behind.and_then(|last| folded(between, last)) else {
        return first;
    };
    let (Prepared { by, append, then }, conditions) = (first, second.append.conditions);
    let By::Owner {
        run, number, epoch, ..
    } = by
    else {
        return Prepared { by, append, then };
    };
    Prepared {
        by: By::Owner {
            run,
            number,
            epoch,
            next: Box::new(state),
        },
        append: praxis_journal::Append {
            sealed: vec![sealed, last],
            conditions: append.conditions.and(conditions),
        },
        then: match second.then {
            Then::Nothing => then,
            other => other,
        },
    }
}

/// The only event of an append as part k of 2, under the request of the part before it.
fn part(sealed: &[Sealed], k: u64, before: Option<&Sealed>) -> Option<Sealed> {
    let [only] = sealed else { return None };
    let mut event = only.event.clone();
    event.part = Part {
        k: U64(k),
        of: U64(2),
    };
    if let Some(before) = before {
        event.request_id = before.event.request_id.clone();
        event.request_digest = before.event.request_digest;
    }
    hops::sealed(event).ok()
}

/// An event with the state behind it.
fn folded(state: RunState, sealed: Sealed) -> Option<(Sealed, RunState)> {
    let next = evolve::run(state, &sealed.event, &sealed.hash).ok()?;
    Some((sealed, next))
}
