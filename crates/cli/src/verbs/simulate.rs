//! `praxis simulate`: the crash simulator from the command line.
//! Invariant: it needs no store and touches none; what it says was counted in this process. Called by `verbs::run`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use aiws::error::{Code, Error};
use aiws::json::Value;
use aiws::object;
use praxis_simulations::campaign::{self, Order, Summary};
use praxis_simulations::fault::{Fault, Layer};
use praxis_simulations::meta::{self, Caught, Planted};
use praxis_simulations::packet::{PACKET_BYTES, Packet};
use praxis_simulations::report::Material;
use praxis_simulations::sim;

use super::print;
use crate::args::Simulate as Args;
use crate::exit::Exit;
use crate::render::{escape, say};
use show::{plain, plant, planted_line, reported};

mod show;

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
    match (&args.faults[..], &args.plant[..]) {
        ([name], _) if name == "list" => return list(json),
        (_, [name]) if name == "list" => return planted(json),
        _ => {}
    }
    if let Some(path) = &args.replay {
        return replay(path, json);
    }
    if !args.plant.is_empty() {
        return plants(args, json);
    }
    let order = order(args)?;
    folder(&args.packets)?;
    let said = Mutex::new(Instant::now());
    let kept = Mutex::new(Vec::new());
    let seeds = campaign::seeds(&order, &|so_far| {
        keep(&kept, &args.packets, so_far);
        progress(&said, &order, so_far);
    });
    let packets = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    let packets: Vec<PathBuf> = packets.into_iter().collect::<Result<_, Error>>()?;
    if !args.report {
        return plain(&order, &seeds, &packets, json);
    }
    say("scenarios ...");
    let scenarios = campaign::scenarios(args.exhaustive, order.threads);
    let can_plant = praxis_simulations::CAN_PLANT;
    let plants = match can_plant {
        true => {
            say("planted defects ...");
            campaign::plants(&meta::all(), order.base, PLANT_SEEDS, order.threads, &tell)
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
                "expected all, list or some of {}, found {name:?}",
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
    let threads = Order::default().threads;
    let caught = campaign::plants(&planted, base, args.seeds, threads, &tell);
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
                "    not counted: on seed {seed} another promise broke first, {}: {what}",
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

/// Says of a defect that it was looked for; the whole is printed at the end.
fn tell(it: &Caught) {
    let how = if it.enough() { "caught" } else { "MISSED" };
    say(&format!("{}: {how}", it.planted.name));
}

/// The defects that can be planted, each with the promise that it must break first.
fn planted(json: bool) -> Result<Exit, Error> {
    let all = meta::all();
    if json {
        let all: Vec<Value> = all
            .iter()
            .map(|it| {
                object! {
                    "plant": it.name,
                    "invariant": it.invariant.number().to_string(),
                    "promise": it.invariant.sentence(),
                }
            })
            .collect();
        print(&object! { "plants": all }.to_string())?;
        return Ok(Exit::Done);
    }
    for it in &all {
        let number = it.invariant.number();
        print(&format!(
            "{:<28} breaks {number:>2}: {}",
            it.name,
            it.invariant.sentence()
        ))?;
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

/// Packets can be written there: looked at before hours of work.
fn folder(folder: &Path) -> Result<(), Error> {
    match std::fs::metadata(folder) {
        Ok(facts) if facts.is_dir() && !facts.permissions().readonly() => Ok(()),
        _ => Err(Error::schema(
            "/packets",
            format!(
                "expected a folder that can be written to, found {}",
                folder.display()
            ),
        )),
    }
}

/// Writes the packet of what was found at once, and says so: whoever ends the process keeps what there is.
fn keep(kept: &Mutex<Vec<Result<PathBuf, Error>>>, folder: &Path, so_far: &Summary) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    for packet in &so_far.failures[kept.len()..] {
        let path = folder.join(format!("praxis-seed-{}.json", packet.seed));
        say(&format!(
            "found: seed {} breaks invariant {}",
            packet.seed, packet.invariant
        ));
        let written = packet.write().and_then(|bytes| {
            std::fs::write(&path, bytes).map_err(|error| {
                let what = format!("{} cannot be written: {error}", path.display());
                Error::new(Code::ExportFailed, what)
            })
        });
        kept.push(written.map(|()| path));
    }
}

fn exit(good: bool) -> Exit {
    if good { Exit::Done } else { Exit::Internal }
}

/// Carries a packet out once more and tells what happens.
fn replay(path: &Path, json: bool) -> Result<Exit, Error> {
    let bytes = std::fs::metadata(path)
        .and_then(
            |facts| match (facts.is_file(), facts.len() <= PACKET_BYTES as u64) {
                (true, true) => std::fs::read(path),
                (true, false) => Err(std::io::ErrorKind::FileTooLarge.into()),
                (false, _) => Err(std::io::Error::other("something else than a file")),
            },
        )
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
            print(escape::block(&packet.story).trim_end())?;
        }
        if packet.invariant != 0 {
            print(&format!(
                "when it was made, by {}, it broke {}: {}",
                escape::line(&packet.found_by),
                packet.invariant,
                escape::line(&packet.what)
            ))?;
        }
        for line in &outcome.story {
            print(&format!("  {}", escape::line(line)))?;
        }
        match broken {
            Some(broken) => print(&format!("broken: {broken}"))?,
            None => print("nothing is broken: this build passes")?,
        }
        print(match same {
            true => "the trace is the same as when the packet was made",
            false => "the trace differs from the packet's, as it must where the code has changed",
        })?;
    }
    Ok(exit(broken.is_none()))
}
