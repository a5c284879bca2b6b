//! Outcomes: how an attempt moves, on what evidence, and how its reservation ends (invariants 27, 29, 43, 45 to 47).
//!
//! Invariant: what nobody knows is resolved by evidence that is there, from who may say so. Part of the effects.

use super::*;

/// How an attempt stood before it moves.
struct Before {
    uncertain: bool,
    by_rule: bool,
    applied: bool,
    /// What the event says that it cost; none where nobody knows yet.
    actual: Option<Dec>,
}

impl Effects {
    pub(super) fn moved(
        &mut self,
        event: &Event,
        it: &Value,
        posted: &mut Posted,
        around: Around<'_>,
        rooms: &mut Rooms<'_>,
    ) -> Result<(), Broken> {
        let (id, to) = (text(it, "attemptId")?, text(it, "to")?);
        let broken = |invariant, what: String| {
            let what = format!("{}: attempt {id} {what}", event.named());
            Err(Broken::new(invariant, what))
        };
        let Some(attempt) = self.attempts.get(id) else {
            return Err(unknown(format!(
                "{} moves attempt {id}, which is not there",
                event.named()
            )));
        };
        let from = attempt.status.as_str();
        if from.starts_with("CONFIRMED") {
            return broken(
                Invariant::ReservationEndsOnce,
                format!("is {from} and becomes {to}"),
            );
        }
        if text(it, "from")? != from {
            let what = format!("is {from}, and is moved from {}", text(it, "from")?);
            return broken(Invariant::ProjectionsReplay, what);
        }
        let mut by_rule = false;
        match (from, to) {
            ("PREPARED", "DISPATCHED") => {
                if attempt.epoch != around.epoch {
                    let what = format!(
                        "of epoch {} is dispatched in {}",
                        attempt.epoch, around.epoch
                    );
                    return broken(Invariant::EpochCurrent, what);
                }
                let operation = self.operations.get(&attempt.operation);
                let grant = operation.map_or("", |it| it.grant.as_str());
                granted(event, grant, attempt.reserved, around.registers)?;
            }
            (_, "DISPATCHED") => {
                let what = format!("is {from}, and is dispatched again");
                return broken(Invariant::NoRetryByItself, what);
            }
            ("DISPATCHED", "UNKNOWN") => {}
            (_, "CONFIRMED_APPLIED" | "CONFIRMED_NOT_APPLIED") => {
                let before = self.before(event, it, attempt, around)?;
                by_rule = before.by_rule;
                resolved(event, id, attempt, &before, rooms.world)?;
                charged(event, id, attempt, &before, around, posted)?;
                marked(event, &before, around, rooms);
            }
            _ => {
                let what = format!("moves from {from} to {to}");
                return broken(Invariant::ResolvedByEvidence, what);
            }
        }
        if let Some(attempt) = self.attempts.get_mut(id) {
            attempt.status = to.to_owned();
            attempt.by_rule = by_rule;
        }
        Ok(())
    }

    fn before(
        &self,
        event: &Event,
        it: &Value,
        attempt: &Attempt,
        around: Around<'_>,
    ) -> Result<Before, Broken> {
        let uncertain = match attempt.status.as_str() {
            "UNKNOWN" => true,
            "DISPATCHED" => attempt.epoch < around.epoch,
            _ => false,
        };
        let applied = text(it, "to")? == "CONFIRMED_APPLIED";
        let contract = self.contracts.get(&event.mission);
        let rule = contract.and_then(|contract| contract.lost_reads.as_ref());
        let by_rule = uncertain
            && !applied
            && event.actor_kind == "SYSTEM"
            && event.class == "LOST_READ_RULE"
            && rule.is_some()
            && event.decision_ref.as_ref() == rule
            && self.is_read(&attempt.operation);
        let actual = match maybe(it, "actual")? {
            Some(_) => Some(decimal(it, "actual")?),
            None => None,
        };
        Ok(Before {
            uncertain,
            by_rule,
            applied,
            actual,
        })
    }
}

/// Who says it may say it, on evidence that is there, and the world agrees.
fn resolved(
    event: &Event,
    id: &str,
    attempt: &Attempt,
    before: &Before,
    world: &World,
) -> Result<(), Broken> {
    let says = if before.applied {
        "applied"
    } else {
        "not applied"
    };
    let broken = |invariant, what: &str| {
        let what = format!(
            "{} by {} ({}, {}) says that attempt {id}, {}, was {says}: {what}",
            event.named(),
            event.actor,
            event.actor_kind,
            event.class,
            attempt.status
        );
        Err(Broken::new(invariant, what))
    };
    if attempt.status == "PREPARED" {
        return match before.applied {
            true => broken(Invariant::WorldAgrees, "it was never tried"),
            false => Ok(()),
        };
    }
    let guessed = !event.is_human() && !before.by_rule && world.only_lost(id);
    if guessed && attempt.status == "DISPATCHED" && !before.uncertain {
        return broken(Invariant::LostIsUnknown, "its answer was lost");
    }
    // What was never tried, or is ended with the run, is no matter of evidence.
    let evidence = items(event.command()?, "evidence");
    let there = items(event.facts()?, "clearEvidence");
    if before.uncertain && !before.by_rule {
        if evidence.is_empty() || !evidence.iter().all(|it| there.contains(it)) {
            return broken(Invariant::ResolvedByEvidence, "the evidence is not there");
        }
        let looked_up = event.actor_kind == "SYSTEM" && event.class == "LOOKUP";
        let free = event.kind == "settle" && before.applied;
        if !free && !event.is_human() && !looked_up {
            return broken(Invariant::ResolvedByEvidence, "who says so may not");
        }
    } else if !before.by_rule && evidence.is_empty() {
        return broken(Invariant::ResolvedByEvidence, "nothing shows it");
    }
    if guessed {
        return broken(Invariant::LostIsUnknown, "its answer was lost");
    }
    if before.by_rule {
        return Ok(());
    }
    world.agrees(id, &attempt.operation, before.applied)
}

/// The reservation ends, by what was really spent.
fn charged(
    event: &Event,
    id: &str,
    attempt: &Attempt,
    before: &Before,
    around: Around<'_>,
    posted: &mut Posted,
) -> Result<(), Broken> {
    let spends = before.applied || before.by_rule;
    let actual = before.actual.unwrap_or(Dec::ZERO);
    let wanted = (attempt.reserved, spends.then_some(actual));
    if let Some(place) = posted.ended.iter().position(|it| *it == wanted) {
        posted.ended.remove(place);
        return Ok(());
    }
    let other = posted.ended.iter().find(|it| it.0 == attempt.reserved);
    let late = before.uncertain && spends || !around.running;
    let invariant = match other {
        Some(_) if spends => Invariant::LateIsCharged,
        None if late => Invariant::LateIsCharged,
        _ => Invariant::ReservationEndsOnce,
    };
    let posts = match other {
        Some((_, Some(actual))) => format!("a spending of {actual}"),
        Some((_, None)) => "a release".to_owned(),
        None => "nothing".to_owned(),
    };
    let what = format!(
        "{} ends attempt {id} with {} reserved and {actual} spent, and posts {posts}",
        event.named(),
        attempt.reserved
    );
    Err(Broken::new(invariant, what))
}

fn marked(event: &Event, before: &Before, around: Around<'_>, rooms: &mut Rooms<'_>) {
    if !around.running {
        rooms.marks.insert("late-settlement");
    }
    if before.by_rule {
        rooms.marks.insert("lost-read-settled");
    } else if before.uncertain && event.kind == "reconcile" {
        rooms.marks.insert("unknown-reconciled");
    }
}
