//! Scenes of openMission, startRun and grant. Invariant and use as in `scene`.

use std::sync::Arc;

use aiws::canonical::from_value;
use aiws::decimal::Ms;
use aiws::json::Value;
use aiws::record::Grant;
use praxis_model::command::{Body, CommandType, GrantCommand, OpenMission, StartRun};

use crate::scene::{Break, Scene, Try, body, breaks, every, outer, together};
use crate::world::*;

fn opened() -> World {
    let mut world = World::empty();
    let (contract, config) = (contract(), config());
    world
        .send(HUMAN, Body::OpenMission(OpenMission { contract, config }))
        .expect("openMission");
    world
}

fn opening() -> Try {
    let (contract, config) = (contract(), config());
    Try::of(
        World::empty(),
        HUMAN,
        Body::OpenMission(OpenMission { contract, config }),
    )
}

fn starting() -> Try {
    Try::of(
        opened(),
        HUMAN,
        Body::StartRun(StartRun { run_id: run_id() }),
    )
}

fn granting() -> Try {
    let grant = from_value(&grant("narrow", Value::from("root"))).expect("a grant");
    Try::of(opened(), HUMAN, Body::GrantCommand(GrantCommand { grant }))
}

/// The grant that is derived, to be damaged.
fn child(t: &mut Try) -> &mut Grant {
    &mut body!(t, GrantCommand).grant
}

/// The same mission is there already.
fn again(t: &mut Try) {
    t.world.mission = opened().mission;
}

fn open() -> Vec<Break> {
    let all = every().into_iter();
    // Before there is a mission there is neither a head nor a subject to be wrong about; see `first`.
    let all = all.filter(|broken| !matches!(broken.slots, ["expectedRevision"] | ["missionId"]));
    let own = breaks! {
        ContractFeatures Shape UnsupportedProtocol ["features"] |t| body!(t, OpenMission).contract.features = vec!["strange".to_owned()];
        ContractExtensions Shape UnsupportedProtocol ["extensions"] |t| body!(t, OpenMission).contract.extensions = Some(vec!["strange/1".to_owned()]);
        ContractShape Shape SchemaInvalid ["root grants"] |t| {
            body!(t, OpenMission).contract.authority.root_grants[0].parent_grant_id = Some(id("nobody"));
        };
        ExpectedRevision Revision RevisionConflict ["mission"] |t| {
            again(t);
            t.command.expected_revision = Some(dec(0));
        };
        SubjectAgrees Ownership StaleOwner ["mission", "missionId"] |t| {
            again(t);
            t.command.expected_revision = None;
            t.command.mission_id = id("another");
            body!(t, OpenMission).contract.mission_id = id("another");
        };
        ContractMission Ownership StaleOwner ["missionId"] |t| body!(t, OpenMission).contract.mission_id = id("another");
        MissionNew Identity IdentityConflict ["mission"] |t| {
            again(t);
            t.command.expected_revision = None;
        };
        RootGrantsUnique Identity IdentityConflict ["root grants"] |t| {
            let roots = &mut body!(t, OpenMission).contract.authority.root_grants;
            let again = roots[0].clone();
            roots.push(again);
        };
    };
    together(vec![all.collect(), own])
}

fn start() -> Vec<Break> {
    let own = breaks! {
        ProtocolNegotiated Negotiation UnsupportedProtocol ["extensions"] |t| Arc::make_mut(&mut t.mission().contract).extensions = None;
        RunNew Identity IdentityConflict ["runId"] |t| t.mission().runs.insert_mut(run_id(), 1);
        MissionDeadline Admission DeadlinePassed ["deadlineMs"] |t| {
            let now_ms = t.facts.now_ms;
            Arc::make_mut(&mut t.mission().contract).deadline_ms = Ms::from_u64(now_ms);
        };
    };
    together(vec![every(), outer(), own])
}

fn derive() -> Vec<Break> {
    let own = breaks! {
        GrantShape Shape SchemaInvalid ["scopes"] |t| child(t).scopes = vec!["here".to_owned(), "here".to_owned()];
        GrantNew Identity IdentityConflict ["grantId"] |t| {
            let taken = child(t).clone();
            t.mission().grants.insert_mut(taken.grant_id.clone(), taken);
        };
        GrantParentKnown Identity NotFound ["parentGrantId"] |t| child(t).parent_grant_id = Some(id("nobody"));
        GrantParentNamed Admission GrantExceeded ["parentGrantId"] |t| child(t).parent_grant_id = None;
        GrantNarrowsActions Admission GrantExceeded ["actions"] |t| child(t).actions = vec!["more".to_owned()];
        GrantNarrowsScopes Admission GrantExceeded ["scopes"] |t| child(t).scopes = vec!["there".to_owned()];
        GrantNarrowsAmount Admission GrantExceeded ["maxAmount"] |t| child(t).max_amount = dec(6);
        GrantNarrowsExpiry Admission GrantExceeded ["notAfterMs"] |t| child(t).not_after_ms = Ms::from_u64(90_001);
    };
    together(vec![every(), own])
}

#[rustfmt::skip]
pub fn scenes() -> Vec<Scene> {
    vec![
        Scene { name: "openMission", kind: CommandType::OpenMission, make: opening, breaks: open() },
        Scene { name: "startRun", kind: CommandType::StartRun, make: starting, breaks: start() },
        Scene { name: "grant", kind: CommandType::GrantCommand, make: granting, breaks: derive() },
    ]
}
