//! What is left out: nodes that a choice or a join skips (invariant 52).
//!
//! Invariant: judged over a whole event, from how the nodes stood before it. Part of the flow.

use super::*;

impl Run {
    /// Whoever is skipped was never begun, and is skipped for a reason; no work is left that nobody waits for.
    pub(super) fn left_out(
        &self,
        event: &Event,
        before: &BTreeMap<String, (String, bool)>,
        rules: &Rules,
        rooms: &mut Rooms<'_>,
    ) -> Result<(), Broken> {
        let broken = |id: &str, what: &str| {
            let what = format!("{} leaves out {id}, {what}", event.named());
            Err(Broken::new(Invariant::NothingAbandoned, what))
        };
        let mut skipped: BTreeSet<&str> = BTreeSet::new();
        let mut joined: BTreeSet<&str> = BTreeSet::new();
        for (kind, it) in event.transitions()? {
            if kind != "NODE_MOVED" || text(it, "to")? != "SKIPPED" {
                continue;
            }
            let id = text(it, "nodeId")?;
            rooms.marks.insert("left-out");
            if before
                .get(id)
                .is_none_or(|(was, begun)| was != "PENDING" || *begun)
            {
                return broken(id, "which has begun or is over");
            }
            let by = text(it, "skippedBy")?;
            let Some(cause) = self.nodes.get(by) else {
                return broken(id, "and names no node for it");
            };
            match cause.kind.as_str() {
                "DECISION" => {}
                "JOIN" if cause.any && rules.excludes.contains(by) => {
                    joined.insert(id);
                }
                _ => return broken(id, "and neither a choice nor a policy says so"),
            }
            skipped.insert(id);
        }
        for id in &skipped {
            self.has_a_reason(event, id, rules)?;
        }
        // What was begun and led to nothing but what a join leaves out was begun in vain (T-41). A choice may lead away from
        // work that is under way: what that hands over then goes to nobody (T-42, T-75).
        for (id, node) in self.nodes.iter().filter(|(_, node)| node.is_begun()) {
            let next: Vec<_> = self
                .nodes
                .iter()
                .filter(|(_, next)| next.after.contains(id))
                .collect();
            let fed = next.iter().any(|(next, _)| joined.contains(next.as_str()));
            let wanted = next.iter().any(|(_, next)| next.status == "PENDING");
            if fed && !wanted && node.kind != "DECISION" {
                return broken(id, "whose work is under way");
            }
        }
        Ok(())
    }

    /// A choice led elsewhere, or what it waited for is gone; or nobody waits for it but a join that has taken another.
    fn has_a_reason(&self, event: &Event, id: &str, rules: &Rules) -> Result<(), Broken> {
        let Some(node) = self.nodes.get(id) else {
            return Ok(());
        };
        let is = |id: &String, wanted: &str| {
            let node = self.nodes.get(id);
            node.is_some_and(|node| node.status == wanted)
        };
        let decides = |id: &String| {
            let node = self.nodes.get(id);
            node.is_some_and(|node| node.kind == "DECISION" && node.status == "COMPLETED")
        };
        // A decision that is over and sent it nothing has led elsewhere.
        let told = |from: &String| {
            let mut all = self.deliveries.values();
            all.any(|it| {
                let handoff = self.handoffs.get(&it.handoff);
                it.to == id && handoff.is_some_and(|handoff| handoff.node == *from)
            })
        };
        let gone = |from: &&String| is(from, "SKIPPED") || decides(from) && !told(from);
        let required = |from: &&String| {
            let optional = (id.to_owned(), (*from).clone());
            gone(from) && !rules.optional.contains(&optional)
        };
        let all = !node.after.is_empty() && node.after.iter().all(|from| gone(&from));
        let by_choice = match node.any {
            true => all,
            false => all || node.after.iter().any(|from| required(&from)),
        };
        let next = self.nodes.iter().filter(|(_, next)| {
            let mut after = next.after.iter();
            after.any(|from| from == id)
        });
        let next: Vec<_> = next.collect();
        // Who was skipped before waits for nobody either.
        let unwanted = !next.is_empty()
            && next
                .iter()
                .all(|(_, it)| it.status == "SKIPPED" || it.any && it.status != "PENDING");
        match by_choice || unwanted {
            true => Ok(()),
            false => {
                let what = format!("{} leaves out {id}, which others wait for", event.named());
                Err(Broken::new(Invariant::NothingAbandoned, what))
            }
        }
    }
}
