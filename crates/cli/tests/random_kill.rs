//! Engine, shim, agent, or both of the first two, killed at random moments with two runs live, again and again.
//! Invariant: what the agents wrote down themselves is compared with the ledger: no attempt begins twice, and no operation
//! begins again unless the try before was recorded as not applied. `PRAXIS_KILLS` says how often, `PRAXIS_SEED` how.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aiws::json::Value;
use aiws::record::AttemptStatus;
use praxis_cli::store::Reader;
use praxis_engine::shim;
use support::shims::{attempts, kill_command, kill_shim, running};
use support::{World, text};

/// An agent that takes a while, and says when it begins and ends.
const AGENT: &str = r#"
printf 'start %s %s %s\n' "$PRAXIS_STAGE" "$PRAXIS_OPERATION_ID" "$PRAXIS_ATTEMPT_ID" >> RECORD
i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done
case "$PRAXIS_STAGE" in
plan) echo plan > "$PRAXIS_OUTPUT_DIR/plan.md" ;;
implement) echo bad > a.txt ;;
correct) echo good > a.txt ;;
esac
printf 'end %s %s %s\n' "$PRAXIS_STAGE" "$PRAXIS_OPERATION_ID" "$PRAXIS_ATTEMPT_ID" >> RECORD
"#;

/// How often without more ado.
const KILLS: u64 = 12;
/// How often in one store. Every look at a store reads all its runs, so that a store with hundreds of them would make
/// later kills come rarer.
const ROUND: u64 = 25;
/// Runs that are live at a time.
const LIVE: usize = 2;

/// A generator whose numbers follow from its seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound
    }
}

/// The terminals of this test.
struct Terminals(Vec<Child>);

impl Terminals {
    fn open(&mut self, mut command: Command) {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.0.push(command.spawn().unwrap());
    }

    /// Those that have not ended.
    fn left(&mut self) -> usize {
        self.0
            .retain_mut(|child| child.try_wait().unwrap().is_none());
        self.0.len()
    }

    fn kill(&mut self) {
        for mut child in self.0.drain(..) {
            // One that ended meanwhile is as good.
            let _ = child.kill();
            child.wait().unwrap();
        }
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A moment that nobody chose. It waits for nothing: any moment is as good.
fn some_moment(random: &mut Random, within_ms: u64) {
    let until = Instant::now() + Duration::from_millis(random.below(within_ms));
    while Instant::now() < until {
        std::thread::yield_now();
    }
}

/// Proves COD-6, FV-EFF.3: whatever is killed whenever, an agent never begins again unless that was recorded as not
/// applied, and the store verifies.
#[test]
fn nothing_begins_twice() {
    let kills = variable("PRAXIS_KILLS").unwrap_or(KILLS);
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = variable("PRAXIS_SEED").unwrap_or(clock.unwrap().as_nanos() as u64 >> 10);
    println!("PRAXIS_SEED={seed} PRAXIS_KILLS={kills}");
    let (mut random, mut left) = (Random(seed), kills);
    while left > 0 {
        let here = left.min(ROUND);
        round(here, &mut random);
        left -= here;
        println!("{} of {kills} kills", kills - left);
    }
}

/// So many kills in a store of its own, then everything goes on to its end and is compared.
fn round(kills: u64, random: &mut Random) {
    let world = World::new(AGENT);
    let (mut terminals, mut settled) = (Terminals(Vec::new()), 0);
    let mut killed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut cut = BTreeSet::new();
    for _ in 0..kills {
        if terminals.left() == 0 {
            settled += settle(&world);
            go_on(&world, &mut terminals);
        }
        *killed
            .entry(kill(&world, &mut terminals, random, &mut cut))
            .or_default() += 1;
    }
    println!("killed {killed:?}");
    // What is live now goes on to its end, as far as it goes without a person.
    for _ in 0..20 {
        while terminals.left() > 0 {
            std::thread::yield_now();
        }
        settled += settle(&world);
        if standings(&world).iter().all(|standing| !is_going(standing)) {
            break;
        }
        let mut resume = world.praxis();
        resume.args(["resume", "--approve-as", "tester"]);
        terminals.open(resume);
    }
    println!(
        "a person settled {settled}; standings {:?}",
        standings(&world)
    );
    assert!(standings(&world).iter().all(|standing| !is_going(standing)));
    let verified = world.verb(&["verify"]);
    assert_eq!(verified.exit, Some(0), "{}{}", verified.out, verified.err);
    compare(&world, &cut);
}

fn is_going(standing: &str) -> bool {
    matches!(
        standing,
        "GOING" | "UNCERTAIN" | "NEEDS_APPROVAL" | "NEEDS_ACCEPTANCE"
    )
}

fn standings(world: &World) -> Vec<String> {
    if !world.store.exists() {
        return Vec::new();
    }
    let list = world.json(&["list"]);
    let runs = list
        .get("runs")
        .and_then(Value::as_array)
        .unwrap_or_default();
    runs.iter()
        .map(|run| text(run, "/standing").to_owned())
        .collect()
}

/// Opens a terminal that goes on with what is live, and one for each run that is missing.
fn go_on(world: &World, terminals: &mut Terminals) {
    let going = standings(world);
    let going = going.iter().filter(|standing| is_going(standing)).count();
    if going > 0 {
        let mut resume = world.praxis();
        resume.args(["resume", "--approve-as", "tester"]);
        terminals.open(resume);
    }
    for _ in going..LIVE {
        terminals.open(world.code(&["--max-corrections", "1", "--approve-as", "tester"]));
    }
}

/// Kills somebody at some moment, and says whom; the attempts whose agent it was are added to `cut`.
fn kill(
    world: &World,
    terminals: &mut Terminals,
    random: &mut Random,
    cut: &mut BTreeSet<String>,
) -> &'static str {
    let victim = random.below(4);
    if victim == 3 {
        some_moment(random, 1_500);
        terminals.kill();
        return "engine";
    }
    // Whoever wants a shim takes one that is there, some moment after it was seen first.
    while running(&world.store).is_empty() && terminals.left() > 0 {
        std::thread::yield_now();
    }
    some_moment(random, 150);
    let mut shims = running(&world.store);
    if shims.is_empty() {
        terminals.kill();
        return "engine";
    }
    let picked = random.below(shims.len() as u64);
    let (folder, started) = shims.swap_remove(usize::try_from(picked).unwrap());
    match victim {
        0 => {
            kill_shim(&started);
            "shim"
        }
        1 => {
            let spec = shim::Spec::read(&folder).ok();
            cut.extend(spec.map(|(spec, _)| spec.attempt_id.to_string()));
            kill_command(&started);
            "agent"
        }
        _ => {
            terminals.kill();
            kill_shim(&started);
            "both"
        }
    }
}

/// The person: ends what is left of lost attempts, looks at the agents' own record, and says what it shows.
fn settle(world: &World) -> usize {
    if !world.store.exists() {
        return 0;
    }
    let unknown = world.json(&["unknown"]);
    let lost = unknown.get("attempts").and_then(Value::as_array).unwrap();
    let names: BTreeSet<&str> = lost.iter().map(|one| text(one, "/attemptId")).collect();
    for folder in attempts(&world.store) {
        let spec = shim::Spec::read(&folder).ok().map(|(spec, _)| spec);
        let name = spec.map(|spec| spec.attempt_id.to_string());
        if let Some(name) = name.filter(|name| names.contains(name.as_str())) {
            shim::end_left(&folder, &format!("PRAXIS_ATTEMPT_ID={name}"), false);
        }
    }
    match names.is_empty() {
        true => 0,
        false => world.settle("random"),
    }
}

/// The agents' own record against the ledger.
fn compare(world: &World, cut: &BTreeSet<String>) {
    let reader = Reader::open(&world.store).unwrap();
    let mut ledger: BTreeMap<String, (AttemptStatus, bool)> = BTreeMap::new();
    let mut order: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for subject in reader.runs().unwrap() {
        let (state, _) = reader.state(&subject).unwrap();
        for operation in state.operations.values() {
            let is_agent = operation.effect == aiws::record::EffectClass::External;
            let names = operation.attempts.iter().map(ToString::to_string);
            order.insert(operation.operation_id.to_string(), names.collect());
            for attempt in operation.attempts.iter() {
                let status = state.attempts.get(attempt).unwrap().status;
                ledger.insert(attempt.to_string(), (status, is_agent));
            }
        }
    }
    let mut starts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for [_, operation, attempt] in world.starts() {
        assert!(seen.insert(attempt.clone()), "{attempt} began twice");
        starts.entry(operation).or_default().push(attempt);
    }
    for (operation, began) in &starts {
        let known = order.get(operation).unwrap();
        let listed: Vec<&String> = known.iter().filter(|name| began.contains(name)).collect();
        assert_eq!(listed, began.iter().collect::<Vec<_>>(), "{operation}");
        for earlier in began.iter().rev().skip(1) {
            let (status, _) = ledger[earlier];
            assert_eq!(status, AttemptStatus::ConfirmedNotApplied, "{earlier}");
        }
    }
    // An agent whose work the ledger has began; what began and is not there was called not applied.
    for (attempt, (status, is_agent)) in ledger {
        if is_agent && status == AttemptStatus::ConfirmedApplied {
            // One that was killed may have begun and not have come to write it down.
            let began = seen.remove(&attempt) || cut.contains(&attempt);
            assert!(began, "{attempt} never began");
        } else if seen.remove(&attempt) {
            assert_eq!(status, AttemptStatus::ConfirmedNotApplied, "{attempt}");
        }
    }
    assert!(seen.is_empty(), "the ledger does not have {seen:?}");
    println!("{} operations began", starts.len());
    // Of what nobody started, nothing is said here; a store without any run would prove nothing.
    assert!(!starts.is_empty());
}
