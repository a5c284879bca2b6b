//! Effects: operations, attempts, their reservations and outcomes (invariants 24, 27, 29, 43 to 47).
//!
//! Invariant: an attempt's reservation begins with it and ends with its confirmed outcome. Called by the fold.

use std::collections::BTreeMap;

use aiws::decimal::Dec;
use aiws::json::Value;

use super::accounts::Posted;
use super::event::{Event, decimal, items, list, maybe, member, number, text, unknown};
use super::registers::Registers;
use super::state::Rooms;
use super::world::World;
use crate::invariant::{Broken, Invariant};

mod outcome;

#[derive(Clone, Debug)]
struct Attempt {
    operation: String,
    stream: String,
    epoch: u64,
    status: String,
    reserved: Dec,
    /// Settled by the contract's rule for lost reads.
    by_rule: bool,
    over: bool,
}

#[derive(Clone, Debug)]
struct Operation {
    effect: String,
    grant: String,
    attempts: Vec<String>,
}

#[derive(Clone, Debug)]
struct Contract {
    max_attempts: Dec,
    /// The decision under which lost reads are settled.
    lost_reads: Option<String>,
}

/// All operations and attempts.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    attempts: BTreeMap<String, Attempt>,
    operations: BTreeMap<String, Operation>,
    contracts: BTreeMap<String, Contract>,
}

/// What effects are judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around<'a> {
    pub registers: &'a Registers,
    /// The run's epoch before the event.
    pub epoch: u64,
    /// Whether the run was going on before the event.
    pub running: bool,
}

impl Effects {
    /// Folds what an event does to attempts; what it posted must be what follows from that.
    pub fn fold(
        &mut self,
        event: &Event,
        mut posted: Posted,
        around: Around<'_>,
        rooms: &mut Rooms<'_>,
    ) -> Result<(), Broken> {
        if event.kind == "openMission" {
            self.open(event)?;
        }
        let mut lost = false;
        for (kind, it) in event.transitions()? {
            match kind {
                "OPERATION_ADMITTED" => self.admit(event, it, &mut posted, around)?,
                "ATTEMPT_PREPARED" => {
                    self.retry(event, member(it, "attempt")?, &mut posted, around)?;
                    rooms.marks.insert("retried");
                }
                "ATTEMPT_MOVED" => {
                    lost |= text(it, "to")? == "UNKNOWN";
                    self.moved(event, it, &mut posted, around, rooms)?;
                }
                "LIFECYCLE_MOVED" => {
                    let to = text(it, "to")?;
                    self.end_of_run(event, to);
                    match to {
                        "COMPLETED" => rooms.marks.insert("completed"),
                        "CANCELED" => rooms.marks.insert("canceled"),
                        _ => false,
                    };
                }
                _ => {}
            }
        }
        if posted.overrun {
            rooms.marks.insert("overrun");
        }
        if let Some((ended, _)) = posted.ended.first() {
            let invariant = if lost {
                Invariant::UnknownReserves
            } else {
                Invariant::ReservationEndsOnce
            };
            let what = format!(
                "{} ends a reservation of {ended} that no attempt's end accounts for",
                event.named()
            );
            return Err(Broken::new(invariant, what));
        }
        if let Some(amount) = posted.reserved.first() {
            let what = format!("{} reserves {amount} for no attempt", event.named());
            return Err(Broken::new(Invariant::ReservationFits, what));
        }
        Ok(())
    }

    fn open(&mut self, event: &Event) -> Result<(), Broken> {
        let contract = member(event.command()?, "contract")?;
        let rule = contract.get("lostReads").filter(|rule| !rule.is_null());
        let lost_reads = rule.map(|rule| text(rule, "decisionRef")).transpose()?;
        let contract = Contract {
            max_attempts: decimal(contract, "maxAttempts")?,
            lost_reads: lost_reads.map(str::to_owned),
        };
        self.contracts.insert(event.mission.clone(), contract);
        Ok(())
    }

    fn end_of_run(&mut self, event: &Event, to: &str) {
        if ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].contains(&to) {
            let own = self.attempts.values_mut();
            own.filter(|it| it.stream == event.stream)
                .for_each(|it| it.over = true);
        }
    }

    fn admit(
        &mut self,
        event: &Event,
        it: &Value,
        posted: &mut Posted,
        around: Around<'_>,
    ) -> Result<(), Broken> {
        let operation = member(it, "operation")?;
        let id = text(operation, "operationId")?;
        let admitted = Operation {
            effect: text(operation, "effect")?.to_owned(),
            grant: text(operation, "grantId")?.to_owned(),
            attempts: Vec::new(),
        };
        if self.operations.insert(id.to_owned(), admitted).is_some() {
            let what = format!("{} admits operation {id} again", event.named());
            return Err(Broken::new(Invariant::AdmittedOnce, what));
        }
        self.prepare(event, member(it, "attempt")?, posted, around)
    }

    fn retry(
        &mut self,
        event: &Event,
        attempt: &Value,
        posted: &mut Posted,
        around: Around<'_>,
    ) -> Result<(), Broken> {
        let id = text(attempt, "operationId")?;
        let before = self.operations.get(id).and_then(|it| it.attempts.last());
        let status = before
            .and_then(|before| self.attempts.get(before))
            .map_or("nothing", |before| before.status.as_str());
        let invariant = match status {
            "CONFIRMED_NOT_APPLIED" => return self.prepare(event, attempt, posted, around),
            "UNKNOWN" | "DISPATCHED" => Invariant::NoRetryByItself,
            _ => Invariant::BoundsHold,
        };
        let what = format!(
            "{} tries operation {id} again after attempt {} that is {status}",
            event.named(),
            before.map_or("none", String::as_str)
        );
        Err(Broken::new(invariant, what))
    }

    /// A new attempt of a known operation, within the contract and the grant, with its reservation.
    fn prepare(
        &mut self,
        event: &Event,
        attempt: &Value,
        posted: &mut Posted,
        around: Around<'_>,
    ) -> Result<(), Broken> {
        let (id, of) = (text(attempt, "id")?, text(attempt, "operationId")?);
        let reserved = decimal(attempt, "reserved")?;
        let made = Attempt {
            operation: of.to_owned(),
            stream: event.stream.clone(),
            epoch: number(attempt, "epoch")?,
            status: text(attempt, "status")?.to_owned(),
            reserved,
            by_rule: false,
            over: false,
        };
        let operation = self
            .operations
            .get_mut(of)
            .ok_or_else(|| unknown(format!("{} prepares for no operation {of}", event.named())))?;
        operation.attempts.push(id.to_owned());
        let count = Dec::from_u64(operation.attempts.len() as u64);
        let bound = self.contracts.get(&event.mission).map(|it| it.max_attempts);
        if let Some(bound) = bound.filter(|bound| count > *bound) {
            let what = format!(
                "{} prepares attempt {id}, the {count}. of operation {of}, the contract allows {bound}",
                event.named()
            );
            return Err(Broken::new(Invariant::BoundsHold, what));
        }
        granted(event, &operation.grant, reserved, around.registers)?;
        let place = posted.reserved.iter().position(|it| *it == reserved);
        match place {
            Some(place) => posted.reserved.remove(place),
            None => {
                let what = format!(
                    "{} prepares attempt {id} without reserving {reserved}",
                    event.named()
                );
                return Err(Broken::new(Invariant::ReservationFits, what));
            }
        };
        if self.attempts.insert(id.to_owned(), made).is_some() {
            let what = format!("{} prepares attempt {id} again", event.named());
            return Err(Broken::new(Invariant::AdmittedOnce, what));
        }
        Ok(())
    }

    /// The stream and the epoch of an attempt that somebody calls for.
    pub fn callable(&self, attempt: &str) -> Result<(String, u64), Broken> {
        match self.attempts.get(attempt) {
            Some(it) => Ok((it.stream.clone(), it.epoch)),
            None => {
                let what =
                    format!("a provider is called for attempt {attempt}, which is not durable");
                Err(Broken::new(Invariant::EpochDurable, what))
            }
        }
    }

    /// An attempt that somebody calls for is dispatched.
    pub fn dispatched(&self, attempt: &str) -> Result<(), Broken> {
        let status = self.attempts.get(attempt).map(|it| it.status.as_str());
        let invariant = match status {
            Some("DISPATCHED") => return Ok(()),
            Some("PREPARED") | None => Invariant::EpochDurable,
            Some(_) => Invariant::NoRetryByItself,
        };
        let what = format!(
            "a provider is called for attempt {attempt}, which is {}",
            status.unwrap_or("not there")
        );
        Err(Broken::new(invariant, what))
    }

    /// Whether an operation only reads.
    pub fn is_read(&self, operation: &str) -> bool {
        let operation = self.operations.get(operation);
        operation.is_some_and(|it| it.effect == "READ")
    }

    /// Whether the log says that an attempt was not applied, and not by the rule for lost reads.
    pub fn is_denied(&self, attempt: &str) -> bool {
        let attempt = self.attempts.get(attempt);
        attempt.is_some_and(|it| it.status == "CONFIRMED_NOT_APPLIED" && !it.by_rule)
    }

    /// The healed end: nothing in flight, nothing reserved beside it, and the world agrees.
    pub fn rest(&self, reserved: Dec, world: &World) -> Result<(), Broken> {
        let mut held = Dec::ZERO;
        for (id, attempt) in &self.attempts {
            let applied = match attempt.status.as_str() {
                "CONFIRMED_APPLIED" => true,
                "CONFIRMED_NOT_APPLIED" if attempt.by_rule => continue,
                "CONFIRMED_NOT_APPLIED" => false,
                "PREPARED" if !attempt.over => {
                    held = held.checked_add(attempt.reserved).unwrap_or(Dec::max());
                    continue;
                }
                status => {
                    let what = format!("attempt {id} is {status} at rest");
                    return Err(Broken::new(Invariant::ComesToRest, what));
                }
            };
            world.agrees(id, &attempt.operation, applied)?;
        }
        if held == reserved {
            return Ok(());
        }
        let what = format!("{reserved} is reserved at rest, prepared attempts hold {held}");
        Err(Broken::new(Invariant::ReservationEndsOnce, what))
    }
}

/// The grant is current as it was read, and covers the amount.
fn granted(event: &Event, id: &str, amount: Dec, registers: &Registers) -> Result<(), Broken> {
    let broken = |what: String| {
        let what = format!("{} rests on grant {id}, {what}", event.named());
        Err(Broken::new(Invariant::BoundsHold, what))
    };
    let Some(grant) = registers.grant(&event.mission, id) else {
        return broken("which is not in force".to_owned());
    };
    if amount > grant.max_amount {
        return broken(format!("which covers {}, for {amount}", grant.max_amount));
    }
    if Dec::from_u64(event.at_ms) >= grant.not_after_ms {
        return broken(format!(
            "which ended at {} ms, at {} ms",
            grant.not_after_ms, event.at_ms
        ));
    }
    for read in list(event.facts()?, "registers")? {
        let register = member(read, "register")?;
        let own = text(register, "kind")? == "GRANT" && text(register, "key")? == id;
        let revision = number(read, "revision")?;
        if own && revision != grant.revision {
            return broken(format!(
                "read at revision {revision}, now at {}",
                grant.revision
            ));
        }
    }
    Ok(())
}
