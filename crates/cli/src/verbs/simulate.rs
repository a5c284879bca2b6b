//! `praxis simulate`: the crash simulator from the command line.
//! Invariant: it needs no store and touches none; what it says was counted in this process. Called by `verbs::run`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use aiws::error::{Code, Error};
use aiws::json::Value;
use aiws::object;
use praxis_simulations::campaign::{self, Enumerated, Order, Summary};
use praxis_simulations::fault::{Fault, Layer};
use praxis_simulations::meta::{self, Caught, Planted};
use praxis_simulations::packet::{PACKET_BYTES, Packet};
use praxis_simulations::report::{self, Figure, Material};
use praxis_simulations::sim;

use super::print;
use crate::args::Simulate as Args;
use crate::exit::Exit;
use crate::render::say;

/// Seeds on which a planted defect is looked for, at most.
const PLANT_SEEDS: u64 = 200;

/// Findings by another invariant that are told of a planted defect.
const OTHERS: usize = 5;

/// How often progress is said.
const EVERY: Duration = Duration::from_secs(5);

/// Runs it.
///
/// # Errors
///
/// `SCHEMA_INVALID` for a seed, a fault or a packet that is none; `EXPORT_FAILED` where a packet cannot be written.
pub fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    if args.faults.iter().any(|name| name == "list") {
        return list(json);
    }
    if let Some(path) = &args.replay {
        return replay(path, json);
    }
    if !args.plant.is_empty() {
        return plants(args, json);
    }
    let order = order(args)?;
    let said = Mutex::new(Instant::now());
    let seeds = campaign::seeds(&order, &|so_far| progress(&said, &order, so_far));
    let packets = write(&args.packets, &seeds)?;
    if !args.report {
        return plain(&order, &seeds, &packets, json);
    }
    say("scenarios ...");
    let scenarios = campaign::scenarios(args.exhaustive, order.threads);
    let can_plant = praxis_simulations::CAN_PLANT;
    let plants = match can_plant {
        true => {
            say("planted defects ...");
            campaign::plants(&meta::all(), order.base, PLANT_SEEDS, order.threads)
        }
        false => Vec::new(),
    };
    let controls = can_plant.then(|| campaign::controls(&plants));
    let material = Material {
        seeds,
        scenarios,
        plants,
        controls,
    };
    reported(args, &material, &packets, json)
}

/// Looks for planted defects alone.
fn plants(args: &Args, json: bool) -> Result<Exit, Error> {
    if !praxis_simulations::CAN_PLANT {
        let what = "expected a build with debug assertions, found one that cannot plant a defect";
        return Err(Error::schema("/plant", what));
    }
    let all = meta::all();
    let named = |name: &String| {
        let mut found = all.iter().filter(|it| name == "all" || it.name == name);
        let first = found.next().ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|it| it.name).collect();
            let what = format!(
                "expected all or some of {}, found {name:?}",
                names.join(", ")
            );
            Error::schema("/plant", what)
        })?;
        Ok(std::iter::once(first)
            .chain(found)
            .copied()
            .collect::<Vec<_>>())
    };
    let planted: Vec<Planted> = args
        .plant
        .iter()
        .map(named)
        .collect::<Result<Vec<_>, Error>>()?
        .concat();
    let base = base(&args.base)?;
    let caught = campaign::plants(&planted, base, args.seeds, Order::default().threads);
    let good = caught.iter().all(Caught::enough);
    if json {
        let plants: Vec<Value> = caught.iter().map(plant).collect();
        print(&object! { "plants": plants }.to_string())?;
        return Ok(exit(good));
    }
    for it in &caught {
        print(&planted_line(it))?;
        for (invariant, seed, what) in it.others.iter().take(OTHERS) {
            print(&format!(
                "    seed {seed} broke {}: {what}",
                invariant.number()
            ))?;
        }
    }
    Ok(exit(good))
}

fn order(args: &Args) -> Result<Order, Error> {
    Ok(Order {
        base: base(&args.base)?,
        seeds: args.seeds,
        time: args.time.map(Duration::from_secs),
        faults: faults(&args.faults)?,
        steps: usize::from(args.steps),
        beside: args.beside,
        ..Order::default()
    })
}

/// A number, or the first digits of a commit.
fn base(text: &str) -> Result<u64, Error> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let digits: String = text.chars().take(15).collect();
    u64::from_str_radix(&digits, 16).map_err(|_| {
        Error::schema(
            "/base",
            format!("expected a number or hexadecimal digits, found {text:?}"),
        )
    })
}

fn faults(names: &[String]) -> Result<BTreeSet<Fault>, Error> {
    if names.is_empty() {
        return Ok(Fault::ALL.iter().copied().collect());
    }
    let named = names.iter().filter(|name| *name != "none").map(|name| {
        Fault::named(name).ok_or_else(|| {
            let what = "expected kinds of fault as `praxis simulate --faults list` prints them";
            Error::schema("/faults", format!("{what}, found {name:?}"))
        })
    });
    named.collect()
}

fn list(json: bool) -> Result<Exit, Error> {
    if json {
        let all: Vec<Value> = Fault::ALL
            .iter()
            .map(|fault| object! { "fault": fault.name(), "what": fault.sentence() })
            .collect();
        print(&object! { "faults": all }.to_string())?;
        return Ok(Exit::Done);
    }
    for layer in [Layer::Storage, Layer::Process, Layer::World] {
        print(&format!("{layer:?}"))?;
        for fault in Fault::ALL.iter().filter(|fault| fault.layer() == layer) {
            print(&format!("  {:<26} {}", fault.name(), fault.sentence()))?;
        }
    }
    Ok(Exit::Done)
}

fn progress(said: &Mutex<Instant>, order: &Order, so_far: &Summary) {
    let Ok(mut said) = said.lock() else { return };
    if said.elapsed() < EVERY {
        return;
    }
    *said = Instant::now();
    let rate = so_far.seeds as f64 / so_far.took.as_secs_f64().max(0.001);
    let images = so_far.images.len();
    say(&format!(
        "{} of {} seeds, {rate:.1} a second, {images} distinct crash states, {} of {} kinds of fault, {} found",
        so_far.seeds,
        order.seeds,
        so_far.struck.len(),
        Fault::ALL.len(),
        so_far.failed
    ));
}

/// Writes the packets of what was found; gives where they are.
fn write(folder: &Path, seeds: &Summary) -> Result<Vec<PathBuf>, Error> {
    let mut paths = Vec::new();
    for packet in &seeds.failures {
        let path = folder.join(format!("praxis-seed-{}.json", packet.seed));
        std::fs::write(&path, packet.write()?).map_err(|error| {
            Error::new(
                Code::ExportFailed,
                format!("{} cannot be written: {error}", path.display()),
            )
        })?;
        paths.push(path);
    }
    Ok(paths)
}

fn found(seeds: &Summary, packets: &[PathBuf]) -> Vec<String> {
    let each = seeds.failures.iter().zip(packets);
    let mut lines: Vec<String> = each
        .map(|(packet, path)| {
            format!(
                "found: seed {} breaks invariant {}: {}\n  in {} steps; see it again with: praxis simulate --replay {}",
                packet.seed,
                packet.invariant,
                packet.what,
                packet.steps.len(),
                path.display()
            )
        })
        .collect();
    let more = seeds.failed.saturating_sub(seeds.failures.len() as u64);
    if more > 0 {
        lines.push(format!("found: {more} more, of which no packet was made"));
    }
    lines
}

fn exit(good: bool) -> Exit {
    if good { Exit::Done } else { Exit::Internal }
}

fn plain(order: &Order, seeds: &Summary, packets: &[PathBuf], json: bool) -> Result<Exit, Error> {
    let good = seeds.failed == 0 && seeds.unlike == 0;
    if json {
        print(&summary(seeds, packets).to_string())?;
        return Ok(exit(good));
    }
    for line in found(seeds, packets) {
        print(&line)?;
    }
    print(&format!(
        "{} seeds from {}, {} events, {} distinct crash states, {} of {} kinds of fault struck, in {:.1} s",
        seeds.seeds,
        order.base,
        seeds.events,
        seeds.images.len(),
        seeds.struck.len(),
        order.faults.len(),
        seeds.took.as_secs_f64()
    ))?;
    print(&format!(
        "{} seeds were run twice, {} of them gave another trace; the trace of all is {}",
        seeds.twice,
        seeds.unlike,
        seeds.trace()
    ))?;
    if good {
        print("nothing was found")?;
    }
    Ok(exit(good))
}

fn reported(
    args: &Args,
    material: &Material,
    packets: &[PathBuf],
    json: bool,
) -> Result<Exit, Error> {
    let figures = report::figures(material);
    let sound = material.scenarios.iter().all(|it| it.broken.is_none());
    let reached = !args.floors || figures.iter().all(Figure::passes);
    let good = material.seeds.failed == 0 && material.seeds.unlike == 0 && sound && reached;
    if json {
        let all: Vec<Value> = figures.iter().map(figure).collect();
        let plants: Vec<Value> = material.plants.iter().map(plant).collect();
        let scenarios: Vec<Value> = material.scenarios.iter().map(scenario).collect();
        let value = object! {
            "seeds": summary(&material.seeds, packets),
            "figures": all,
            "scenarios": scenarios,
            "plants": plants,
        };
        print(&value.to_string())?;
        return Ok(exit(good));
    }
    for line in found(&material.seeds, packets) {
        print(&line)?;
    }
    tables(material, &figures)?;
    Ok(exit(good))
}

fn tables(material: &Material, figures: &[Figure]) -> Result<(), Error> {
    print(&format!(
        "{:<44} {:>10} {:>10} {:>10}",
        "figure", "found", "floor", "goal"
    ))?;
    for it in figures {
        let word = match (it.measured, it.excels(), it.passes()) {
            (false, ..) => "not in this build",
            (_, true, _) => "goal",
            (_, _, true) => "floor",
            _ => "below the floor",
        };
        let found = if it.measured {
            it.found.to_string()
        } else {
            "-".to_owned()
        };
        print(&format!(
            "{:<44} {found:>10} {:>10} {:>10}  {word} ({})",
            it.measure, it.floor, it.goal, it.unit
        ))?;
    }
    print("\nscenarios")?;
    for it in &material.scenarios {
        let word = it.broken.as_deref().unwrap_or("holds");
        let seconds = it.took.as_secs_f64();
        print(&format!(
            "  {:<32} {:>7} images {seconds:>7.1} s  {word}",
            it.name,
            it.images.len()
        ))?;
    }
    if !material.plants.is_empty() {
        print("\nplanted defects")?;
    }
    for it in &material.plants {
        print(&planted_line(it))?;
    }
    let unproven: Vec<String> = report::unproven()
        .iter()
        .map(|it| it.number().to_string())
        .collect();
    print(&format!(
        "\ninvariants without a planted defect: {}",
        unproven.join(", ")
    ))?;
    let reached: Vec<&str> = material.seeds.marks.iter().copied().collect();
    let never: Vec<&str> = praxis_simulations::oracle::MARKS
        .iter()
        .copied()
        .filter(|mark| !material.seeds.marks.contains(mark))
        .collect();
    print(&format!(
        "sometimes reached: {}; never: {}",
        reached.len(),
        never.join(", ")
    ))?;
    let idle: Vec<&str> = Fault::ALL
        .iter()
        .filter(|fault| !material.seeds.struck.contains(fault))
        .map(|fault| fault.name())
        .collect();
    print(&format!("faults that no seed met: {}", idle.join(", ")))
}

fn planted_line(it: &Caught) -> String {
    let name = it.planted.name;
    let number = it.planted.invariant.number();
    match it.first {
        Some(first) if it.enough() => format!(
            "  {name:<26} caught by {number:>2} on seeds {:?}, first after {:.1} s",
            it.seeds,
            first.as_secs_f64()
        ),
        _ => format!(
            "  {name:<26} MISSED by {number:>2} in {} seeds (caught on {:?}; others broke: {:?})",
            it.tried,
            it.seeds,
            it.others
                .iter()
                .map(|(other, ..)| other.number())
                .collect::<BTreeSet<u8>>()
        ),
    }
}

fn summary(seeds: &Summary, packets: &[PathBuf]) -> Value {
    let failures: Vec<Value> = seeds
        .failures
        .iter()
        .zip(packets)
        .map(|(packet, path)| {
            object! {
                "seed": packet.seed.to_string(),
                "invariant": packet.invariant.to_string(),
                "what": packet.what.as_str(),
                "steps": packet.steps.len().to_string(),
                "packet": path.display().to_string(),
            }
        })
        .collect();
    object! {
        "seeds": seeds.seeds.to_string(),
        "failed": seeds.failed.to_string(),
        "failures": failures,
        "events": seeds.events.to_string(),
        "crashStates": seeds.images.len().to_string(),
        "faults": seeds.struck.iter().map(|fault| fault.name().to_owned()).collect::<Vec<_>>(),
        "marks": seeds.marks.iter().map(|mark| (*mark).to_owned()).collect::<Vec<_>>(),
        "runTwice": seeds.twice.to_string(),
        "unlike": seeds.unlike.to_string(),
        "trace": seeds.trace().to_string(),
        "milliseconds": seeds.took.as_millis().to_string(),
    }
}

fn figure(it: &Figure) -> Value {
    object! {
        "measure": it.measure,
        "unit": it.unit,
        "found": it.measured.then(|| it.found.to_string()),
        "floor": it.floor.to_string(),
        "goal": it.goal.to_string(),
        "passes": it.passes(),
    }
}

fn scenario(it: &Enumerated) -> Value {
    object! {
        "scenario": it.name,
        "what": it.what,
        "exhaustive": it.exhaustive,
        "images": it.images.len().to_string(),
        "broken": it.broken.clone(),
    }
}

fn plant(it: &Caught) -> Value {
    object! {
        "plant": it.planted.name,
        "invariant": it.planted.invariant.number().to_string(),
        "caught": it.enough(),
        "seeds": it.seeds.iter().map(u64::to_string).collect::<Vec<_>>(),
        "tried": it.tried.to_string(),
    }
}

/// Carries a packet out once more and tells what happens.
fn replay(path: &Path, json: bool) -> Result<Exit, Error> {
    let bytes = std::fs::metadata(path)
        .and_then(|facts| match facts.len() <= PACKET_BYTES as u64 {
            true => std::fs::read(path),
            false => Err(std::io::ErrorKind::FileTooLarge.into()),
        })
        .map_err(|error| {
            let what = format!("expected a packet at {}, found: {error}", path.display());
            Error::schema("/replay", what)
        })?;
    let packet =
        Packet::read(&bytes).map_err(|error| Error::schema("/replay", error.to_string()))?;
    let options = sim::Options {
        tell: true,
        ..sim::Options::default()
    };
    let outcome = campaign::quietly(|| packet.replay(options));
    let same = outcome.trace.to_string() == packet.trace;
    let broken = outcome.broken.as_ref().map(|(_, broken)| broken);
    if json {
        let value = object! {
            "invariant": broken.map_or(0, |broken| broken.invariant.number()).to_string(),
            "what": broken.map(|broken| broken.what.clone()),
            "sameTrace": same,
            "story": outcome.story.clone(),
        };
        print(&value.to_string())?;
    } else {
        if !packet.story.is_empty() {
            print(&packet.story)?;
        }
        for line in &outcome.story {
            print(&format!("  {line}"))?;
        }
        match broken {
            Some(broken) => print(&format!("broken: {broken}"))?,
            None => print("nothing is broken: this build passes")?,
        }
        let word = if same { "the same" } else { "another" };
        print(&format!("the trace is {word} as when the packet was made"))?;
    }
    Ok(exit(broken.is_none()))
}
