//! Every accepted command of these tests is decided again from its event, also without the facts that its row leaves out.
//!
//! Invariant: called with the state before the event; the mission's gates are open in all these worlds, or do not
//! matter. Called by the world and by the bench.

use praxis_model::decision::Decision;
use praxis_model::event::Event;
use praxis_model::facts::Facts;
use praxis_model::redecide::{self, Before, Fact, Verdict};
use praxis_model::{decide, redecide::row};

/// Panics where the event does not reach its recorded outcome.
pub fn decided_again(before: Before<'_>, event: &Event) {
    match redecide::again(before, event, &[]) {
        Verdict::Reached(decision) => few_facts(before, event, &decision),
        other => panic!("{} decided again: {other:?}", event.kind.name()),
    }
}

/// What the row of the command does not name changes nothing.
fn few_facts(before: Before<'_>, event: &Event, decision: &Decision) {
    let mut facts = redecide::facts(event, &[]);
    let unread = |fact: &&Fact| !row(event.kind).reads().any(|read| read == **fact);
    for fact in Fact::ALL.iter().filter(unread) {
        erase(&mut facts, *fact);
    }
    let command = redecide::command(event);
    let few = match before {
        Before::Mission(state) => decide::mission(state, &command, &facts),
        Before::Run(state) => decide::run(state, &command, &facts),
    };
    assert_eq!(
        few.as_ref(),
        Ok(decision),
        "{} needs more facts",
        event.kind.name()
    );
}

fn erase(facts: &mut Facts, fact: Fact) {
    match fact {
        Fact::Allowed | Fact::Actor => {}
        Fact::Policy => facts.policy.revision = aiws::decimal::Dec::from_u64(77),
        Fact::DecisionClass => facts.decision_class.clear(),
        Fact::DecisionRef => facts.decision_ref = None,
        Fact::Materials => {
            facts.materials.clear();
            facts.material_errors.clear();
        }
        Fact::Admissions => facts.admissions.clear(),
        Fact::Registers => facts.registers.clear(),
        Fact::Account => facts.account = None,
        Fact::OuterGates => facts.outer_gates = vec![praxis_model::event::Gate::Cancel],
        Fact::ClearEvidence => facts.clear_evidence.clear(),
        Fact::RestartAllowed => facts.restart_allowed = false,
        Fact::ClaimFingerprint => facts.claim_fingerprint = None,
        Fact::RecoveryAuthority => facts.recovery_authority = false,
    }
}
