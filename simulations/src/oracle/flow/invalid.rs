//! What no longer counts: hand-offs that were invalidated, and what rests on them (invariant 53).
//!
//! Invariant: what rests on a hand-off is known from what each activation was bound to. Part of the flow.

use super::*;

impl Run {
    /// Nothing is tried on what no longer counts.
    pub(super) fn tries(&self, event: &Event) -> Result<(), Broken> {
        if !["dispatch", "retry"].contains(&event.kind.as_str()) {
            return Ok(());
        }
        let operation = text(event.command()?, "operationId")?;
        let Some((_, activation)) = self.operations.get(operation) else {
            return Ok(());
        };
        let rests = self.bound.get(activation).and_then(|bound| {
            let mut all = bound.handoffs.iter();
            all.find(|id| self.handoffs.get(*id).is_some_and(|it| it.invalid))
        });
        match rests {
            None => Ok(()),
            Some(id) => {
                let what = format!(
                    "{} tries operation {operation}, which rests on {id}: that no longer counts",
                    event.named()
                );
                Err(Broken::new(Invariant::InvalidStops, what))
            }
        }
    }

    /// The record says what hangs on the hand-off, all of it has moved, and a live run is held.
    pub(super) fn invalidated(
        &mut self,
        event: &Event,
        record: &Value,
        rooms: &mut Rooms<'_>,
    ) -> Result<(), Broken> {
        let id = text(member(record, "handoff")?, "handoffId")?;
        let named = event.named();
        let broken = |what: String| {
            let what = format!("{named} invalidates {id}, and {what}");
            Err(Broken::new(Invariant::InvalidStops, what))
        };
        let Some(handoff) = self.handoffs.get_mut(id) else {
            return broken("there is no such hand-off".to_owned());
        };
        if std::mem::replace(&mut handoff.invalid, true) {
            return broken("it did not count before".to_owned());
        }
        rooms.marks.insert("invalidated");
        let own = self.deliveries.iter().filter(|(_, it)| it.handoff == id);
        for (delivery, it) in own {
            if !["INVALIDATED", "EXCLUDED"].contains(&it.state.as_str()) {
                return broken(format!("delivery {delivery} of it is {}", it.state));
            }
        }
        for (activation, bound) in &self.bound {
            if bound.valid && bound.handoffs.iter().any(|it| it == id) {
                return broken(format!(
                    "activation {activation}, which took it, still counts"
                ));
            }
        }
        let opened = event.transitions()?.into_iter().find_map(|(kind, it)| {
            let hold = it.get("hold").filter(|_| kind == "HOLD_OPENED")?;
            let reason = hold.get("reason").and_then(Value::as_str);
            let id = hold.get("holdId").and_then(Value::as_str);
            id.filter(|_| reason == Some("INVALIDATED_INPUT"))
        });
        let hold = record.get("holdId").and_then(Value::as_str);
        match opened {
            Some(opened) if hold == Some(opened) => {
                self.invalid_holds.insert(opened.to_owned());
                Ok(())
            }
            None if hold.is_none() && self.over => Ok(()),
            _ => broken("does not hold its run as it says".to_owned()),
        }
    }

    /// A hold for what no longer counts ends with the run alone.
    pub(super) fn let_go(&self, event: &Event, it: &Value) -> Result<(), Broken> {
        let id = text(it, "holdId")?;
        if text(it, "to")? == "RELEASED" && self.invalid_holds.contains(id) {
            let what = format!(
                "{} releases hold {id}, and its hand-off still does not count",
                event.named()
            );
            return Err(Broken::new(Invariant::InvalidStops, what));
        }
        Ok(())
    }
}
