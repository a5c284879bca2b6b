//! Scenes: a command that is accepted as it stands, and every rule of it that can be broken, each by itself.
//!
//! Invariant: a break changes the data that it names as its slots and nothing else, so that breaks without a common slot
//! can be put together. Filled by the files of the commands, read by the tables and by `precedence`.

use std::sync::{Arc, RwLock, RwLockReadGuard};

use aiws::decimal::U64;
use aiws::error::Code;
use aiws::id::DeliveryId;
use aiws::record::{
    Hold, HoldDecision, HoldMember, HoldReason, HoldScope, HoldState, Lifecycle, NodeSet,
};
use praxis_model::command::{Body, Command, CommandType};
use praxis_model::decide;
use praxis_model::decision::{Decision, Rejection};
use praxis_model::event::Gate;
use praxis_model::facts::Facts;
use praxis_model::guard::Guard;
use praxis_model::mission::MissionState;
use praxis_model::run::RunState;
use praxis_model::table::{self, StreamKind};

use crate::order::Place;
use crate::world::*;

/// Rows of the guards are switched off for the whole program: whoever decides holds this for reading meanwhile.
static ALL_GUARDS_ON: RwLock<()> = RwLock::new(());

/// Keeps every guard switched on while it lives.
pub fn guarded() -> RwLockReadGuard<'static, ()> {
    let held = ALL_GUARDS_ON.read();
    held.unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Nobody else decides while it lives.
#[cfg(debug_assertions)]
pub fn alone() -> std::sync::RwLockWriteGuard<'static, ()> {
    let held = ALL_GUARDS_ON.write();
    held.unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A command about to be decided.
#[derive(Clone)]
pub struct Try {
    pub world: World,
    pub command: Command,
    pub facts: Facts,
    /// The delivery that the tables are about.
    pub delivery: Option<DeliveryId>,
}

impl Try {
    /// The actor asks for a body at the current revision and epoch.
    pub fn of(world: World, actor: &str, body: Body) -> Try {
        let (command, facts) = (world.command(body), world.facts(actor));
        Try {
            world,
            command,
            facts,
            delivery: None,
        }
    }

    pub fn about(mut self, delivery: DeliveryId) -> Try {
        self.delivery = Some(delivery);
        self
    }

    /// The run's state, to be damaged.
    pub fn run(&mut self) -> &mut RunState {
        self.world.run.as_mut().expect("a run")
    }

    /// The mission's state, to be damaged.
    pub fn mission(&mut self) -> &mut MissionState {
        self.world.mission.as_mut().expect("a mission")
    }

    /// The pinned graph, to be damaged.
    pub fn graph(&mut self) -> &mut aiws::record::Graph {
        Arc::make_mut(self.run().graph.as_mut().expect("a graph"))
    }

    /// The hand-off configuration, to be damaged.
    pub fn config(&mut self) -> &mut aiws::record::HandoffConfig {
        Arc::make_mut(&mut self.run().config)
    }

    /// What decide says; nothing is changed.
    pub fn decide(&self) -> Result<Decision, Rejection> {
        match table::row(self.command.body.kind()).stream {
            StreamKind::Run => decide::run(self.world.state(), &self.command, &self.facts),
            StreamKind::Mission => {
                decide::mission(self.world.mission.as_ref(), &self.command, &self.facts)
            }
        }
    }

    /// Decides and folds.
    pub fn apply(&mut self) -> Step {
        let (command, facts) = (self.command.clone(), self.facts.clone());
        self.world.apply(&command, &facts)
    }

    /// The grant's register as the host read it, to be damaged.
    pub fn grant(&mut self, change: impl FnOnce(&mut aiws::record::Grant)) {
        let grants = praxis_model::register::RegisterKind::Grant;
        let mut all = self.facts.registers.iter_mut();
        let read = all.find(|read| read.register.kind == grants);
        let Some(read) = read else { return };
        let mut grant = aiws::canonical::from_value(&read.value).expect("a grant");
        change(&mut grant);
        read.value = aiws::canonical::to_value(&grant).expect("a value");
    }
}

/// One rule, and how to break it.
#[derive(Clone, Copy)]
pub struct Break {
    pub guard: Guard,
    pub place: Place,
    pub code: Code,
    /// The data that it changes, and with a `?` before it what must be there for it. What one changes no other one can
    /// change or need at the same time.
    pub slots: &'static [&'static str],
    pub apply: fn(&mut Try),
}

/// A command that is accepted, with its rules.
pub struct Scene {
    pub name: &'static str,
    pub kind: CommandType,
    pub make: fn() -> Try,
    pub breaks: Vec<Break>,
}

/// Changes a value of a persistent map.
macro_rules! edit {
    ($map:expr, $key:expr, $value:ident => $change:block) => {{
        let key = $key;
        let mut $value = $map.get(&key).cloned().expect("it is there");
        $change
        $map.insert_mut(key, $value);
    }};
}
pub(crate) use edit;

/// The body of a command, of this type.
macro_rules! body {
    ($try:expr, $kind:ident) => {
        match &mut $try.command.body {
            praxis_model::command::Body::$kind(body) => body,
            _ => panic!("another body"),
        }
    };
}
pub(crate) use body;

/// One break per line: guard, place, code, slots, what is done to the attempt.
macro_rules! breaks {
    ($($guard:ident $place:ident $code:ident [$($slot:literal),*] $apply:expr;)*) => {
        vec![$(crate::scene::Break {
            guard: praxis_model::guard::Guard::$guard,
            place: crate::order::Place::$place,
            code: aiws::error::Code::$code,
            slots: &[$($slot),*],
            apply: $apply,
        }),*]
    };
}
pub(crate) use breaks;

/// All breaks of these lists.
pub fn together(lists: Vec<Vec<Break>>) -> Vec<Break> {
    lists.concat()
}

/// Stages 4 to 6 of every command.
pub fn every() -> Vec<Break> {
    breaks! {
        ExpectedRevision Revision RevisionConflict ["expectedRevision"] |t| t.command.expected_revision = Some(dec(99));
        SubjectAgrees Ownership StaleOwner ["missionId"] |t| t.command.mission_id = id("another");
        PolicyAllows Authority AuthorizationDenied ["policy"] |t| t.facts.allowed = false;
        AuthorizedInTime Authority AuthorizationDenied ["authorizedAtMs"] |t| t.facts.authorized_at_ms = u64::MAX;
    }
}

/// Stages 4 to 6 of every command of a run.
pub fn of_run() -> Vec<Break> {
    together(vec![
        every(),
        breaks! { EpochCurrent Ownership StaleOwner ["ownerEpoch"] |t| t.command.owner_epoch = Some(dec(99)); },
    ])
}

/// Only a human decides.
pub fn human() -> Vec<Break> {
    breaks! { HumanDecides Authority HumanRequired ["decisionRef"] |t| t.facts.decision_ref = None; }
}

/// The end of the run is in the way.
pub fn ends() -> Vec<Break> {
    breaks! { NotTerminal Gates TerminalExecution ["lifecycle"] |t| t.run().lifecycle = Lifecycle::Failed; }
}

/// What stops whatever launches work in a run.
pub fn launches() -> Vec<Break> {
    together(vec![
        ends(),
        breaks! {
            NotCanceling Gates HoldActive ["lifecycle"] |t| t.run().lifecycle = Lifecycle::Canceling;
            NoOpenHold Gates HoldActive ["a hold over the run"] |t| t.hold("zz-run", HoldReason::Operator, NodeSet::All);
            NodeNotHeld Gates HoldActive ["a hold over the branch"] |t| {
                let all = t.world.state().nodes.keys().cloned().collect();
                t.hold("zz-branch", HoldReason::Operator, NodeSet::Named(all));
            };
        },
        outer(),
    ])
}

/// A gate above the run.
pub fn outer() -> Vec<Break> {
    breaks! { NoOuterGate Gates HoldActive ["outerGates"] |t| t.facts.outer_gates = vec![Gate::Cancel]; }
}

impl Try {
    /// Puts an OPEN hold into the state, behind the ledger's back.
    pub fn hold(&mut self, name: &str, reason: HoldReason, node_ids: NodeSet) {
        let scope = match node_ids {
            NodeSet::All => run_scope(),
            NodeSet::Named(_) => branch_scope("a"),
        };
        let hold = open_hold(self, name, reason, scope, node_ids);
        self.run().holds.insert_mut(id(name), hold);
    }
}

/// An OPEN hold that allows both decisions.
pub fn open_hold(
    t: &Try,
    name: &str,
    reason: HoldReason,
    scope: HoldScope,
    node_ids: NodeSet,
) -> Hold {
    Hold {
        hold_id: id(name),
        state: HoldState::Open,
        reason,
        owner: id(HUMAN),
        scope,
        members: vec![HoldMember {
            mission_id: mission_id(),
            run_id: run_id(),
            node_ids,
        }],
        blockers: Vec::new(),
        allowed_decisions: vec![HoldDecision::Recheck, HoldDecision::Cancel],
        stop_disposition: Vec::new(),
        opened_by: id(HUMAN),
        opened_at_ms: U64(t.facts.now_ms),
        opened_revision: U64(1),
        resolution: None,
    }
}

/// All scenes, by command.
pub fn all() -> Vec<Scene> {
    let files = [
        crate::mission::scenes(),
        crate::effects::scenes(),
        crate::rest::scenes(),
        crate::boundary::scenes(),
        crate::claims::scenes(),
        crate::admit::scenes(),
        crate::holds::scenes(),
    ];
    files.into_iter().flatten().collect()
}
