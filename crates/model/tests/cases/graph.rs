//! Cases of activateGraph. Invariant and use as in `cases`.

use std::sync::Arc;

use aiws::decimal::Ms;
use aiws::error::Code;
use aiws::json::Value;
use aiws::object;
use aiws::record::{Contract, Graph, HandoffConfig, Node, NodeKind, OutcomeStatus};
use praxis_model::guard::Guard;

use super::{Must, Outcome, accepted, cases, ensure, stopped};
use crate::world::*;

/// The graph is refused by this guard under this configuration.
fn invalid(guard: Guard, graph: Graph, change: impl FnOnce(&mut HandoffConfig)) -> Outcome {
    let mut config = config();
    change(&mut config);
    let world = World::started(contract(), config);
    stopped(&world, guard, Code::GraphInvalid, |world| {
        world.activate(graph)
    })
}

fn with_input_schema(schema: Value) -> Graph {
    graph(vec![
        Node {
            input_schema: Some(schema),
            ..task("a", &[])
        },
        end(&["a"]),
    ])
}

cases! {
    /// Proves FV-GRAPH.1: the activation records id and revision, and nodes begin in their derived activation.
    #[test]
    fn a_graph_is_pinned() {
        let world = World::with(lin());
        let pinned = world.state().graph.clone().ok_or("no graph")?;
        ensure(*pinned == lin(), "another graph was pinned")?;
        for node in &pinned.nodes {
            let expected = praxis_model::stream::activation(&world.state().stream, &node.id, 1);
            let own = world.state().nodes.get(&node.id).ok_or("no node")?;
            ensure(own.activation_id == expected, "another activation")?;
        }
        Ok(())
    }

    /// Proves FV-GRAPH.6, FV-GRAPH.1: a graph is pinned once, before any operation, and never changed.
    #[test]
    fn a_graph_is_never_changed() {
        let mut world = World::with(lin());
        stopped(&world, Guard::GraphUnset, Code::StateInvalid, |world| world.activate(lin()))?;
        world.admit("a").must()?;
        stopped(&world, Guard::GraphUnset, Code::StateInvalid, |world| world.activate(lin()))
    }

    /// Proves HM-01.1: without negotiation no graph that needs the protocol is activated.
    #[test]
    fn a_graph_needs_the_negotiated_protocol() {
        let mut world = World::started(contract(), config());
        if let Some(run) = &mut world.run {
            run.contract = Arc::new(Contract { extensions: None, ..contract() });
        }
        stopped(&world, Guard::GraphNegotiated, Code::UnsupportedProtocol, |world| world.activate(lin()))
    }

    /// Proves HF-01.5: more direct dependents than one boundary may have are refused, not cut off.
    #[test]
    fn an_oversized_fan_out_is_refused() {
        let names: Vec<String> = (0..9).map(|at| format!("n{at}")).collect();
        let fan = |count: usize| {
            let mut nodes = vec![task("a", &[])];
            nodes.extend(names.iter().take(count).map(|name| task(name, &["a"])));
            let last: Vec<&str> = names.iter().take(count).map(String::as_str).collect();
            nodes.push(end(&last));
            graph(nodes)
        };
        invalid(Guard::GraphBounded, fan(9), |_| {})?;
        // Every node depends on the seven before it: few nodes, and too many edges.
        let dense = |nodes: usize| {
            let name = |index: usize| format!("n{index}");
            let one = |index: usize| {
                let before: Vec<String> = (index.saturating_sub(7)..index).map(name).collect();
                let before: Vec<&str> = before.iter().map(String::as_str).collect();
                task(&name(index), &before)
            };
            let mut nodes: Vec<Node> = (0..nodes).map(one).collect();
            nodes.push(end(&[name(nodes.len() - 1).as_str()]));
            graph(nodes)
        };
        invalid(Guard::GraphBounded, dense(600), |_| {})?;
        accepted(&World::started(contract(), config()), |world| world.activate(dense(500)))?;
        accepted(&World::started(contract(), config()), |world| world.activate(fan(8))).map(drop)
    }

    /// Proves FV-GRAPH.2: node ids are unique, dependencies exist and stand once.
    #[test]
    fn names_are_unique_and_exist() {
        invalid(Guard::GraphUnique, graph(vec![task("a", &[]), task("a", &[]), end(&["a"])]), |_| {})?;
        invalid(Guard::GraphDependencies, graph(vec![task("a", &["ghost"]), end(&["a"])]), |_| {})?;
        invalid(Guard::GraphDependencies, graph(vec![task("a", &[]), end(&["a", "a"])]), |_| {})
    }

    /// Proves FV-GRAPH.3, FV-GRAPH.5: cycles are refused, of one node and of several, also behind a root.
    #[test]
    fn a_cycle_is_refused() {
        invalid(Guard::GraphAcyclic, graph(vec![task("a", &["a"]), end(&["a"])]), |_| {})?;
        invalid(Guard::GraphAcyclic, graph(vec![task("a", &["b"]), task("b", &["a"]), end(&["b"])]), |_| {})?;
        let behind = graph(vec![task("r", &[]), task("a", &["r", "b"]), task("b", &["a"]), end(&["b"])]);
        invalid(Guard::GraphAcyclic, behind, |_| {})
    }

    /// Proves FV-GRAPH.4: every node reaches an END, and nothing comes after one.
    #[test]
    fn every_node_reaches_end() {
        invalid(Guard::GraphReachesEnd, graph(vec![task("a", &[]), task("stranded", &["a"]), end(&["a"])]), |_| {})?;
        invalid(Guard::GraphReachesEnd, graph(vec![task("a", &[])]), |_| {})?;
        let after = graph(vec![end(&[]), task("a", &["end"]), node("end2", NodeKind::End, &["a"])]);
        invalid(Guard::GraphReachesEnd, after, |_| {})
    }

    /// Proves FV-NODE-DECISION.1: both branches are direct dependents, and there is no third.
    #[test]
    fn branches_are_the_direct_dependents() {
        let far = graph(vec![decision("d", &[], "x", "y"), task("x", &["d"]), task("y", &["x"]), end(&["y"])]);
        invalid(Guard::GraphBranches, far, |_| {})?;
        let third = vec![decision("d", &[], "x", "y"), task("x", &["d"]), task("y", &["d"]), task("z", &["d"])];
        let third = graph([third, vec![end(&["x", "y", "z"])]].concat());
        invalid(Guard::GraphBranches, third, |_| {})?;
        let same = graph(vec![decision("d", &[], "x", "x"), task("x", &["d"]), end(&["x"])]);
        invalid(Guard::GraphBranches, same, |_| {})
    }

    /// Proves HD-04.4: a branch cannot take its decision as an optional input, for then nothing would say that it was skipped.
    #[test]
    fn a_branch_needs_its_decision() {
        invalid(Guard::GraphBranchRequired, dec_graph(), |config| config.optional_inputs = vec![optional("x", "d")])
    }

    /// Proves HD-04.6, HD-04.7: an ANY join has inputs, none of them optional, and a join policy is of an ANY join of the graph.
    #[test]
    fn any_joins_and_their_policies_are_checked() {
        invalid(Guard::GraphAnyInputs, any_graph(), |config| config.optional_inputs = vec![optional("j", "x")])?;
        let lone = graph(vec![join_any("j", &[]), end(&["j"])]);
        invalid(Guard::GraphAnyInputs, lone, |_| {})?;
        for (graph, join) in [(all_graph(), "j"), (any_graph(), "x")] {
            invalid(Guard::GraphJoinPolicy, graph, |config| config.join_policy = vec![excluding(join)])?;
        }
        // A policy for a join of another graph is none of this one's business.
        let mut config = config();
        config.join_policy = vec![excluding("j"), excluding("elsewhere")];
        accepted(&World::started(contract(), config), |world| world.activate(any_graph())).map(drop)
    }

    /// Proves HF-03.10: mappings and optional inputs are of direct dependencies, one port each.
    #[test]
    fn ports_are_direct_dependencies() {
        let accepts = [OutcomeStatus::Completed];
        invalid(Guard::GraphPorts, lin(), |config| config.mappings = vec![mapping("end", "in", "a", &accepts, None)])?;
        invalid(Guard::GraphPorts, lin(), |config| config.optional_inputs = vec![optional("b", "ghost")])?;
        invalid(Guard::GraphPorts, lin(), |config| {
            config.mappings = vec![mapping("b", "one", "a", &accepts, None), mapping("b", "two", "a", &accepts, None)];
        })?;
        let two = || graph(vec![task("a", &[]), task("b", &[]), join("j", &["a", "b"]), end(&["j"])]);
        invalid(Guard::GraphPorts, two(), |config| {
            config.mappings = vec![mapping("j", "in", "a", &accepts, None), mapping("j", "in", "b", &accepts, None)];
        })?;
        invalid(Guard::GraphPorts, two(), |config| config.mappings = vec![mapping("j", "b", "a", &accepts, None)])
    }

    /// Proves FV-GRAPH.9, HF-04.6: remote and dynamic references and format are refused when the graph is activated.
    #[test]
    fn schemas_are_local_and_supported() {
        for schema in [
            object! { "$ref": "https://example.invalid/schema.json" },
            object! { "$dynamicRef": "#node" },
            object! { "type": "object", "properties": object! { "at": object! { "type": "string", "format": "date" } } },
        ] {
            invalid(Guard::GraphSchemas, with_input_schema(schema.clone()), |_| {})?;
            invalid(Guard::GraphSchemas, lin(), |config| {
                config.mappings = vec![mapping("b", "in", "a", &[OutcomeStatus::Completed], Some(schema))];
            })?;
        }
        let good = with_input_schema(object! { "type": "object", "required": vec!["what"] });
        accepted(&World::started(contract(), config()), |world| world.activate(good)).map(drop)
    }

    /// Proves FV-CON.3: a node's deadline lies within the contract's.
    #[test]
    fn no_node_outlives_the_contract() {
        let at = |ms| graph(vec![Node { deadline_ms: Some(Ms::from_u64(ms)), ..task("a", &[]) }, end(&["a"])]);
        invalid(Guard::GraphDeadlines, at(100_001), |_| {})?;
        accepted(&World::started(contract(), config()), |world| world.activate(at(100_000))).map(drop)
    }
}
