//! Which refusal is told where several rules are broken: every pair, and ten thousand sets at random.
//!
//! Invariant: the answer is the earliest by `order`, whatever order the code looks in. Where the wire form gives no order
//! between two codes, either is right. Breaks that share a datum are never put together.

use std::collections::{BTreeMap, BTreeSet};

use aiws::error::Code;
use praxis_model::command::CommandType;
use praxis_model::guard::Guard;

use crate::order::{PRECEDENCE, rank};
use crate::scene::{self, Break, Scene, Try};

/// How many sets of broken rules are drawn.
const RANDOM_SETS: usize = 10_000;

/// Guards that no scene breaks, each with its reason.
const NOT_HERE: &[(Guard, &str)] = &[(
    Guard::DraftPrepared,
    "it refuses a draft, before there is a command",
)];

/// A scene with its setting made once.
struct Stage {
    scene: Scene,
    sound: Try,
}

fn stages() -> Vec<Stage> {
    let all = scene::all().into_iter();
    all.map(|scene| Stage {
        sound: (scene.make)(),
        scene,
    })
    .collect()
}

/// What is told, and by which rule.
fn told(stage: &Stage, broken: &[&Break]) -> Result<(Code, String), String> {
    let mut t = stage.sound.clone();
    for one in broken {
        (one.apply)(&mut t);
    }
    match t.decide() {
        Ok(_) => Err("acceptance".to_owned()),
        Err(error) => Ok((error.code(), error.message)),
    }
}

/// The codes that may be told: those of the earliest rank.
fn earliest(broken: &[&Break]) -> BTreeSet<Code> {
    let first = broken.iter().map(|one| rank(one.place, one.code)).min();
    let mine = broken
        .iter()
        .filter(|one| Some(rank(one.place, one.code)) == first);
    mine.map(|one| one.code).collect()
}

fn apart(one: &Break, two: &Break) -> Option<&'static str> {
    let bare = |slot: &'static str| slot.trim_start_matches('?');
    let meets = |slot: &&'static str| {
        let mut others = two.slots.iter();
        others.any(|other| {
            bare(slot) == bare(other) && !(slot.starts_with('?') && other.starts_with('?'))
        })
    };
    one.slots.iter().copied().find(meets).map(bare)
}

fn wrong(stage: &Stage, broken: &[&Break]) -> Option<String> {
    let wanted = earliest(broken);
    let found = told(stage, broken);
    let right = found.as_ref().is_ok_and(|(code, _)| wanted.contains(code));
    let names: Vec<Guard> = broken.iter().map(|one| one.guard).collect();
    (!right).then(|| {
        format!(
            "{}: {names:?}: expected {wanted:?}, found {found:?}",
            stage.scene.name
        )
    })
}

/// Every scene is accepted as it stands, and each rule of it refuses alone, by its own guard.
#[test]
fn each_rule_refuses_alone() {
    let _on = crate::scene::guarded();
    let mut problems = Vec::new();
    for stage in stages() {
        let scene = &stage.scene;
        if let Err(error) = stage.sound.decide() {
            problems.push(format!(
                "{}: refused as it stands: {error} {:?}",
                scene.name, error.details
            ));
        }
        for broken in &scene.breaks {
            let found = told(&stage, &[broken]);
            let wanted = (broken.code, broken.guard.sentence().to_owned());
            if found.as_ref() != Ok(&wanted) {
                problems.push(format!(
                    "{}: {:?}: expected {wanted:?}, found {found:?}",
                    scene.name, broken.guard
                ));
            }
        }
        let names: BTreeSet<Guard> = scene.breaks.iter().map(|broken| broken.guard).collect();
        assert_eq!(
            names.len(),
            scene.breaks.len(),
            "{} breaks a rule twice",
            scene.name
        );
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Proves ERR-PREC.1: of every two rules of a command that can be broken at once, the earlier one is told.
#[test]
fn of_every_pair_the_earlier_is_told() {
    let _on = crate::scene::guarded();
    let mut problems = Vec::new();
    let mut pairs = 0;
    for stage in stages() {
        let scene = &stage.scene;
        for (at, one) in scene.breaks.iter().enumerate() {
            for two in &scene.breaks[at + 1..] {
                if apart(one, two).is_some() {
                    continue;
                }
                pairs += 1;
                problems.extend(wrong(&stage, &[one, two]));
            }
        }
    }
    assert!(
        problems.is_empty(),
        "{} of {pairs} pairs:\n{}",
        problems.len(),
        problems.join("\n")
    );
    assert!(pairs > 5_000, "{pairs}");
}

/// Proves ERR-PREC.1: of any rules that are broken at once, drawn at random, the earliest is told.
#[test]
fn of_any_set_the_earliest_is_told() {
    let _on = crate::scene::guarded();
    let stages = stages();
    let mut problems = Vec::new();
    let mut draw = Draw(0x5eed);
    for _ in 0..RANDOM_SETS {
        let stage = &stages[draw.below(stages.len())];
        let scene = &stage.scene;
        let wanted = 2 + draw.below(6);
        let mut broken: Vec<&Break> = Vec::new();
        for _ in 0..40 {
            let next = &scene.breaks[draw.below(scene.breaks.len())];
            let free = broken
                .iter()
                .all(|one| one.guard != next.guard && apart(one, next).is_none());
            if free && broken.len() < wanted {
                broken.push(next);
            }
        }
        problems.extend(wrong(stage, &broken));
    }
    assert!(
        problems.is_empty(),
        "{} of {RANDOM_SETS} sets:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

/// A small generator, the same on every machine.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

/// Every guard is a rule of some scene, or it is listed with its reason; every command has a scene.
#[test]
fn every_guard_and_command_is_here() {
    let _on = crate::scene::guarded();
    let scenes = scene::all();
    let here: BTreeSet<Guard> = scenes
        .iter()
        .flat_map(|scene| &scene.breaks)
        .map(|broken| broken.guard)
        .collect();
    let missing: Vec<&Guard> = Guard::ALL
        .iter()
        .filter(|guard| here.contains(guard) == NOT_HERE.iter().any(|(listed, _)| listed == *guard))
        .collect();
    assert!(
        missing.is_empty(),
        "without a break, or listed in vain: {missing:?}"
    );
    for command in CommandType::ALL {
        assert!(
            scenes.iter().any(|scene| scene.kind == *command),
            "{}",
            command.name()
        );
    }
}

/// What of a command can be told at one rank: the code, and the rules by scene.
type Ranks = BTreeMap<(usize, usize), Vec<(usize, Break)>>;

fn ranks(scenes: &[Scene], kind: CommandType) -> Ranks {
    let mut all = Ranks::new();
    for (at, scene) in scenes
        .iter()
        .enumerate()
        .filter(|(_, scene)| scene.kind == kind)
    {
        for broken in &scene.breaks {
            all.entry(rank(broken.place, broken.code))
                .or_default()
                .push((at, *broken));
        }
    }
    all
}

/// How the neighbours of a command stand to each other: an example of both broken, or why none can be.
fn neighbours(one: &[(usize, Break)], two: &[(usize, Break)]) -> Result<(Guard, Guard), String> {
    let mut reason = "no setting of the command has both rules".to_owned();
    for (scene, first) in one {
        for (_, second) in two.iter().filter(|(other, _)| other == scene) {
            match apart(first, second) {
                None => return Ok((first.guard, second.guard)),
                Some(slot) => {
                    reason = format!("{:?} and {:?} meet in: {slot}", first.guard, second.guard)
                }
            }
        }
    }
    Err(reason)
}

/// The generated section.
pub fn section() -> String {
    let mut out = String::from(
        "\n## Precedence\n
The order in which refusals are told, from section 12 of the wire form; `own` marks a place that it does not have. Codes
with a `/` between them have no order there, and either may be told. Stages 1 to 3 come before `decide`; for every command they are
held by `tests/tests/scenarios/precedence_all.rs`.\n\n| place | what is looked at | codes, in their order |\n|---|---|---|\n",
    );
    for row in PRECEDENCE {
        let same = |codes: &&[Code]| {
            codes
                .iter()
                .map(|code| code.name())
                .collect::<Vec<_>>()
                .join(" / ")
        };
        let codes: Vec<String> = row.codes.iter().map(same).collect();
        out.push_str(&format!(
            "| {} | {} | {} |\n",
            row.number,
            row.what,
            codes.join(", then ")
        ));
    }
    let scenes = scene::all();
    let (mut pairs, mut excluded) = (0, 0);
    for scene in &scenes {
        for (at, one) in scene.breaks.iter().enumerate() {
            let rest = scene.breaks[at + 1..].iter();
            let shared = rest.clone().filter(|two| apart(one, two).is_some()).count();
            (pairs, excluded) = (pairs + rest.len() - shared, excluded + shared);
        }
    }
    out.push_str(&format!(
        "\n{pairs} pairs of rules of one command were broken at once, in {} settings, and the earlier one was told; {excluded} pairs
meet in a datum, which one of them changes and the other changes or needs, and cannot be. Beside these, {RANDOM_SETS} sets of two to seven broken rules were drawn from a fixed seed.

Below, every two places of a command that are next to each other, with an example of rules that were broken at once.
Where there is none, the reason stands instead.\n\n| command | told first | and not | broken at once |\n|---|---|---|---|\n",
        scenes.len()
    ));
    for kind in CommandType::ALL {
        let all = ranks(&scenes, *kind);
        let codes = |rank: &(usize, usize)| {
            let of: BTreeSet<&str> = all[rank]
                .iter()
                .map(|(_, broken)| broken.code.name())
                .collect();
            let of: Vec<&str> = of.into_iter().collect();
            format!("{} {}", PRECEDENCE[rank.0].number, of.join(" / "))
        };
        for (first, second) in all.keys().zip(all.keys().skip(1)) {
            let both = match neighbours(&all[first], &all[second]) {
                Ok((one, two)) => format!("{one:?} and {two:?}"),
                Err(reason) => format!("cannot be: {reason}"),
            };
            out.push_str(&format!(
                "| {} | {} | {} | {both} |\n",
                kind.name(),
                codes(first),
                codes(second)
            ));
        }
    }
    out
}

/// Proves ERR-PREC.1: what a body alone shows to be out of shape is refused by the wire too, before anybody is asked who
/// sent it.
#[test]
fn shapes_are_refused_by_the_wire() {
    let _on = crate::scene::guarded();
    let mut found = BTreeMap::new();
    for scene in scene::all() {
        for broken in scene
            .breaks
            .iter()
            .filter(|broken| broken.place == crate::order::Place::Shape)
        {
            let mut t = (scene.make)();
            (broken.apply)(&mut t);
            let refused = crate::page::request(&t).map(|bytes| {
                praxis_model::wire::parse(&bytes)
                    .err()
                    .map(|error| error.code())
            });
            assert_eq!(
                refused,
                Ok(Some(broken.code)),
                "{}: {:?}",
                scene.name,
                broken.guard
            );
            found.insert(broken.guard, broken.code);
            // As it stands, the wire takes it.
            let sound = crate::page::request(&(scene.make)()).expect("bytes");
            assert!(praxis_model::wire::parse(&sound).is_ok(), "{}", scene.name);
        }
    }
    assert_eq!(found.len(), 7, "{found:?}");
}
