//! Inputs: with what a node begins (invariants 22, 50, 51, and of 52 what an ANY join leaves out).
//!
//! Invariant: what arrived where is known from the deliveries alone. Part of the flow.

use super::*;

impl Run {
    /// A node is admitted with its inputs.
    pub(super) fn admitted(
        &mut self,
        event: &Event,
        consumption: &Value,
        rules: &Rules,
        rooms: &mut Rooms<'_>,
    ) -> Result<(), Broken> {
        let id = text(consumption, "nodeId")?;
        let named = event.named();
        let broken = |invariant, what: String| {
            Err(Broken::new(invariant, format!("{named}: node {id} {what}")))
        };
        let node = self.node(event, id)?.clone();
        if node.admitted > node.ended {
            return broken(Invariant::AdmittedOnce, "is admitted again".to_owned());
        }
        if node.admitted >= node.most {
            let (next, most) = (node.admitted + 1, node.most);
            let what = format!("begins iteration {next}, its bound is {most}");
            return broken(Invariant::LoopBound, what);
        }
        let mut handoffs = Vec::new();
        let mut taken = Vec::new();
        for input in items(consumption, "inputs") {
            let delivery = text(input, "deliveryId")?;
            let Some(found) = self.deliveries.get(delivery).filter(|it| it.to == id) else {
                let what = format!("takes delivery {delivery}, which is not for it");
                return broken(Invariant::InputsWhole, what);
            };
            let Some(handoff) = self.handoffs.get(&found.handoff) else {
                let what = format!("takes delivery {delivery} of nothing");
                return broken(Invariant::InputsWhole, what);
            };
            if handoff.invalid {
                let what = format!("takes {}, which no longer counts", found.handoff);
                return broken(Invariant::InvalidStops, what);
            }
            let skipped = handoff.status == "SKIPPED";
            let optional = (id.to_owned(), handoff.node.clone());
            if handoff.status != "COMPLETED" && !(skipped && rules.optional.contains(&optional)) {
                let what = format!("takes the hand-off of {}, {}", handoff.node, handoff.status);
                return broken(Invariant::InputsWhole, what);
            }
            handoffs.push(found.handoff.clone());
            taken.push((delivery.to_owned(), handoff.node.clone()));
        }
        let from: Vec<&String> = taken.iter().map(|(_, from)| from).collect();
        let distinct: BTreeSet<&String> = from.iter().copied().collect();
        let awaited: BTreeSet<&String> = node.after.iter().collect();
        let whole = match node.any {
            true => from.len() == 1 && awaited.is_superset(&distinct),
            false => from.len() == distinct.len() && awaited == distinct,
        };
        if !whole {
            let what = format!("waits for {:?} and begins with {from:?}", node.after);
            return broken(Invariant::InputsWhole, what);
        }
        if let (true, [(delivery, _)]) = (node.any, &taken[..]) {
            self.chosen(event, id, &node, delivery, rules, rooms)?;
        }
        let bound = Bound {
            handoffs,
            valid: true,
        };
        self.bound
            .insert(text(consumption, "activationId")?.to_owned(), bound);
        self.node(event, id)?.admitted += 1;
        Ok(())
    }

    /// An ANY join took one: of the others none has work under way, and without a policy each is done and received.
    fn chosen(
        &self,
        event: &Event,
        id: &str,
        node: &Node,
        taken: &str,
        rules: &Rules,
        rooms: &mut Rooms<'_>,
    ) -> Result<(), Broken> {
        let broken = |other: &str, what: &str| {
            let what = format!("{}: join {id} leaves out {other}, {what}", event.named());
            Err(Broken::new(Invariant::NothingAbandoned, what))
        };
        let policy = rules.excludes.contains(id);
        rooms.marks.insert(match policy {
            true => "joined-by-policy",
            false => "joined-without-policy",
        });
        for other in &node.after {
            let Some(candidate) = self.nodes.get(other) else {
                continue;
            };
            if candidate.is_begun() {
                return broken(other, "which has begun");
            }
            if candidate.status == "PENDING" && !policy {
                return broken(other, "which is not done, and has no policy for it");
            }
        }
        let activation = self.deliveries.get(taken).map(|it| &it.activation);
        for (delivery, it) in &self.deliveries {
            let mine = it.to == id && Some(&it.activation) == activation && delivery != taken;
            let open = ["PENDING", "CLAIMED"].contains(&it.state.as_str());
            let made = self.handoffs.get(&it.handoff);
            let done = made.is_some_and(|made| made.status == "COMPLETED");
            if mine && open && done && !policy {
                return broken(&it.handoff, "which is done, and has no policy for it");
            }
        }
        Ok(())
    }
}
