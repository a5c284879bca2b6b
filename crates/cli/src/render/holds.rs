//! Open holds: what stopped a run, what would clear it, and what may be typed about it.
//! Invariant: only decisions that a hold allows are offered.
//! Called by the verb `holds` and by the page of a run.

use std::fmt::Write;

use aiws::json::Value;
use aiws::record::{Hold, NodeSet};

use super::escape::wrap;
use super::json;
use super::page::{HoldLine, Page, short};
use super::style::{Style, Tone};
use super::words::{count, utc};

/// The open holds of these runs.
#[must_use]
pub fn text(pages: &[Page], style: Style) -> String {
    let all = || {
        pages
            .iter()
            .flat_map(|page| page.holds.iter().map(move |hold| (page, hold)))
    };
    let number = all().count();
    if number == 0 {
        return "No hold stands.\n".to_owned();
    }
    let mut text = format!("{}\n", count(number, "open hold"));
    for (page, hold) in all() {
        let _ = write!(text, "\n{}", block(&page.run, hold, style));
        let task = super::escape::clip(&page.task, style.width.saturating_sub(10));
        let _ = writeln!(text, "  {} {task}", style.paint(Tone::Dim, "task   "));
    }
    text
}

/// One hold.
#[must_use]
pub fn block(run: &str, hold: &HoldLine, style: Style) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} {} {}",
        style.paint(Tone::Bad, "hold"),
        style.paint(Tone::Strong, &short(&hold.id)),
        hold.reason.name()
    );
    let mut fact = |name: &str, value: &str| {
        for (index, line) in wrap(value, style.width.saturating_sub(10))
            .iter()
            .enumerate()
        {
            let name = if index == 0 { name } else { "" };
            let name = style.paint(Tone::Dim, &format!("{name:<7}"));
            let _ = writeln!(text, "  {name} {line}");
        }
    };
    fact("run", run);
    fact("since", &utc(hold.opened_ms));
    if !hold.nodes.is_empty() {
        fact("covers", &hold.nodes.join(", "));
    }
    fact("why", &hold.sentence);
    fact("clears", hold.clears);
    for (index, command) in hold.commands(run).iter().enumerate() {
        let name = style.paint(Tone::Dim, if index == 0 { "type   " } else { "  or   " });
        let _ = writeln!(text, "  {name} {command}");
    }
    text
}

/// The open holds of these runs, for programs.
#[must_use]
pub fn value(pages: &[Page]) -> Value {
    let holds: Vec<Value> = pages
        .iter()
        .flat_map(|page| page.holds.iter().map(move |hold| one(page, hold)))
        .collect();
    json::object("holds", aiws::object! { "holds": holds })
}

fn one(page: &Page, hold: &HoldLine) -> Value {
    let mut value = json::hold(hold, &page.run);
    if let Value::Object(members) = &mut value {
        members.insert("run".to_owned(), page.run.as_str().into());
        members.insert("task".to_owned(), page.task.as_str().into());
    }
    value
}

/// What a page has of a hold.
pub(super) fn line(hold: &Hold) -> HoldLine {
    let (sentence, clears) = super::page::hold_words(hold.reason);
    HoldLine {
        id: hold.hold_id.to_string(),
        reason: hold.reason,
        sentence: sentence.to_owned(),
        clears,
        nodes: nodes(hold),
        allowed: hold.allowed_decisions.clone(),
        opened_ms: hold.opened_at_ms.0,
    }
}

/// The nodes that a hold of a branch covers; none of a hold of the whole run.
pub(super) fn nodes(hold: &Hold) -> Vec<String> {
    let nodes = hold
        .members
        .iter()
        .flat_map(|member| match &member.node_ids {
            NodeSet::All => &[],
            NodeSet::Named(nodes) => nodes.as_slice(),
        });
    nodes
        .map(|node| super::escape::line(node.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use aiws::id::Id;
    use aiws::record::{
        ActorKind, HoldDecision, HoldReason, HoldScope, HoldScopeKind, HoldState, Ref,
    };
    use praxis_model::run::{NodeState, NodeStatus, RunState};
    use praxis_model::stream::Subject;

    use super::super::page::Standing;
    use super::*;
    use crate::authority::TYPED;
    use crate::coding::contract::{Job, tests::job_of};
    use crate::coding::graph;
    use crate::session::{Session, now_ms};

    /// A coding run in which nothing was done yet.
    async fn begun() -> (Job, RunState) {
        let dir = tempfile::TempDir::new().unwrap();
        let store = dir.path().join("store");
        crate::store::create_if_missing(&store).unwrap();
        let session = Session::open(&store).await.unwrap();
        let job = job_of(1, now_ms());
        let evidence = aiws::object! { "decision": "d" };
        let alice = "alice".parse().unwrap();
        let person = session
            .host
            .capability(alice, ActorKind::Human, TYPED, evidence);
        session.start(&job, &person).await.unwrap();
        let subject = Subject::run(job.mission_id.clone(), job.run_id.clone());
        let mut state = (*session.state(&subject).await.unwrap()).clone();
        // The engine may have begun to work; what is looked at here is the graph.
        (state.attempts, state.operations) = Default::default();
        (state.holds, state.consumptions) = Default::default();
        let nodes: Vec<_> = state.nodes.keys().cloned().collect();
        for id in nodes {
            let own = state.nodes.get(&id).unwrap().clone();
            let status = NodeStatus::Pending;
            state.nodes.insert_mut(id, NodeState { status, ..own });
        }
        (job, state)
    }

    fn held(state: &RunState, kind: HoldScopeKind, node: &str) -> RunState {
        let id = |text: &str| Id::new(text).unwrap();
        let graph = state.graph.as_ref().unwrap();
        let scope = HoldScope {
            kind,
            scope_ref: Ref {
                id: id(node),
                revision: graph.revision,
            },
            resolver_revision: graph.revision,
        };
        let hold = Hold {
            hold_id: id("h").into(),
            state: HoldState::Open,
            reason: HoldReason::Operator,
            owner: id("alice"),
            members: praxis_model::hold::members(state, &scope),
            scope,
            blockers: Vec::new(),
            allowed_decisions: vec![HoldDecision::Recheck],
            stop_disposition: Vec::new(),
            opened_by: "alice".parse().unwrap(),
            opened_at_ms: 1.into(),
            opened_revision: 1.into(),
            resolution: None,
        };
        let mut state = state.clone();
        state.holds.insert_mut(hold.hold_id.clone(), hold);
        state
    }

    /// Proves HS-01.8, HS-05.4, HS-05.5, HS-05.7: a run with a held branch is under way while something else can be done,
    /// and held once nothing can; the page names the nodes of the branch, and none of a hold of the whole run.
    #[tokio::test]
    async fn a_held_branch_is_told_beside_what_goes_on() {
        let (job, state) = begun().await;
        let standing = |state: &RunState| Standing::of(state, &job, now_ms());
        assert_eq!(standing(&state), Standing::Going);
        let end = held(&state, HoldScopeKind::Branch, graph::END);
        assert_eq!(standing(&end), Standing::Going);
        let all = held(&state, HoldScopeKind::Branch, graph::PLAN);
        assert_eq!(standing(&all), Standing::Held);
        let whole = held(&state, HoldScopeKind::Run, job.run_id.as_str());
        assert_eq!(standing(&whole), Standing::Held);
        let told = |state: &RunState| {
            let line = line(state.holds.values().next().unwrap());
            let value = json::hold(&line, "r");
            (block("r", &line, Style::plain(80)), value)
        };
        let (text, value) = told(&end);
        assert!(text.contains("covers  end\n"), "{text}");
        assert_eq!(
            value.pointer("/nodes/0").and_then(Value::as_str),
            Some("end")
        );
        let (text, value) = told(&whole);
        assert!(!text.contains("covers") && value.get("nodes").is_none());
    }
}
