//! What each row of the guards keeps out: the rule alone is broken, and its row is off.
//!
//! Invariant: nothing else decides meanwhile, for rows are switched off for the whole program (`scene::alone`). Writes its
//! part of `docs/ABLATION.md`.

use std::collections::BTreeMap;

use praxis_model::guard::{Guard, ablation};

use crate::scene::{self, Scene, Try};

/// Rows without which nothing is accepted that the row alone would refuse, each with the reason why that is so.
const HELD_TWICE: &[(Guard, &str)] = &[
    (
        Guard::GraphDependencies,
        "what depends on a node that is not there is never reached, which is told as a cycle; a name twice is a port twice; the row says which name is wrong",
    ),
    (
        Guard::ScopeResolves,
        "a scope that does not resolve has no members, and a hold without members has no shape; the row says that it is the scope, and under its own code",
    ),
    (
        Guard::ActivationUndecided,
        "a node with an outcome is not active; the row says that the name is spent",
    ),
    (
        Guard::RecipientsUnique,
        "the shape of a manifest asks the same; the row says that it is the evidence that is wrong",
    ),
    (
        Guard::ReceiptOpen,
        "what has its receipt has no live claim; the row says that it is the state and not the sender",
    ),
    (
        Guard::EverClaimed,
        "what was never claimed has no live claim; the row says that it is the state and not the sender",
    ),
    (
        Guard::ContractFeatures,
        "the shape of a contract has the known features; the row says which kind of refusal it is",
    ),
    (
        Guard::ContractExtensions,
        "the shape of a contract has the known extensions; the row says which kind of refusal it is",
    ),
    (
        Guard::HoldDecisions,
        "a hold without decisions, or with one twice, has no shape; the row says so before anything else",
    ),
];

/// What is answered in the place of the row's refusal.
fn without(sound: &Try, broken: &scene::Break) -> Result<String, String> {
    let mut t = sound.clone();
    (broken.apply)(&mut t);
    ablation::disable(broken.guard);
    let answer = t.decide();
    ablation::restore();
    match answer {
        Ok(_) => Ok("accepted".to_owned()),
        Err(error) if error.message == broken.guard.sentence() => {
            Err(format!("{:?} still refuses", broken.guard))
        }
        Err(error) => {
            let mut all = Guard::ALL.iter();
            let by =
                all.find(|guard| guard.sentence() == error.message && guard.code() == error.code());
            Ok(match by {
                Some(by) => format!("{} by {by:?}", error.code().name()),
                None => error.code().name().to_owned(),
            })
        }
    }
}

/// Switched off, each row lets something through, or it is listed with the reason why it does not.
#[test]
fn ablation_of_every_row() {
    let _alone = scene::alone();
    let stages: Vec<(Scene, Try)> = scene::all()
        .into_iter()
        .map(|scene| {
            let sound = (scene.make)();
            (scene, sound)
        })
        .collect();
    let mut problems = Vec::new();
    let mut out = String::from(
        "| row | requirement | code | stage | what is broken, and the answer without the row |\n|---|---|---|---|---|\n",
    );
    for guard in Guard::ALL {
        let mut answers: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (scene, sound) in &stages {
            for broken in scene.breaks.iter().filter(|broken| broken.guard == *guard) {
                match without(sound, broken) {
                    Ok(answer) => answers.entry(answer).or_default().push(scene.name),
                    Err(problem) => problems.push(format!("{}: {problem}", scene.name)),
                }
            }
        }
        let twice = HELD_TWICE
            .iter()
            .find(|(held, _)| held == guard)
            .map(|(_, why)| *why);
        // Without the object there is nothing to decide about, and the switched-off row says so itself.
        let shown = answers.contains_key("accepted") || answers.contains_key("INTERNAL_STORE");
        if twice.is_none() && !answers.is_empty() && !shown {
            problems.push(format!(
                "nothing is accepted without {guard:?}: {answers:?}"
            ));
        }
        if twice.is_some() && answers.contains_key("accepted") {
            problems.push(format!("{guard:?} is listed in vain"));
        }
        let mut cells: Vec<String> = answers
            .iter()
            .map(|(answer, scenes)| format!("{answer}: {}", scenes.join(", ")))
            .collect();
        cells.extend(twice.map(|why| format!("({why})")));
        if answers.is_empty() {
            cells.push("no command: it refuses a draft".to_owned());
        }
        out.push_str(&format!(
            "| {guard:?} | {} | {} | {:?} | {} |\n",
            guard.id(),
            guard.code().name(),
            guard.stage(),
            cells.join("; ")
        ));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(crate::parts::check("rows", &out), Ok(()));
}
