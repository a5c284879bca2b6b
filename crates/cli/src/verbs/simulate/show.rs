//! What simulations came to, as text and as JSON.
//! Invariant: every number was counted; nothing is rounded up to success. Called by `verbs::simulate`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use aiws::error::Error;
use aiws::json::Value;
use aiws::object;
use praxis_simulations::campaign::{Enumerated, Order, Summary};
use praxis_simulations::fault::Fault;
use praxis_simulations::meta::Caught;
use praxis_simulations::report::{self, Figure, Material};

use super::{exit, print};
use crate::args::Simulate as Args;
use crate::exit::Exit;

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

pub(super) fn plain(
    order: &Order,
    seeds: &Summary,
    packets: &[PathBuf],
    json: bool,
) -> Result<Exit, Error> {
    let good = seeds.failed == 0 && seeds.unlike == 0;
    if json {
        print(&summary(seeds, packets).to_string())?;
        return Ok(exit(good));
    }
    for line in found(seeds, packets) {
        print(&line)?;
    }
    print(&format!(
        "{} of {} seeds from {}, {} events, {} distinct crash states, {} kinds of fault struck, {} of {} that were chosen, in {:.1} s",
        seeds.seeds,
        order.seeds,
        order.base,
        seeds.events,
        seeds.images.len(),
        seeds.struck.len(),
        seeds.struck.intersection(&order.faults).count(),
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

pub(super) fn reported(
    args: &Args,
    material: &Material,
    packets: &[PathBuf],
    json: bool,
) -> Result<Exit, Error> {
    let figures = report::figures(material);
    let sound = material.scenarios.iter().all(|it| it.broken.is_none());
    let reached = !args.floors || figures.iter().all(Figure::passes);
    let caught = material.plants.iter().all(Caught::enough);
    let proved = caught && material.controls.is_none_or(|it| it.canary && it.silent);
    let good =
        material.seeds.failed == 0 && material.seeds.unlike == 0 && sound && proved && reached;
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

pub(super) fn planted_line(it: &Caught) -> String {
    let name = it.planted.name;
    let number = it.planted.invariant.number();
    match it.first {
        Some(first) if it.enough() => format!(
            "  {name:<26} caught by {number:>2} ({}) on seeds {:?}, first after {:.1} s",
            it.planted.invariant.sentence().trim_end_matches('.'),
            it.seeds,
            first.as_secs_f64()
        ),
        _ => format!(
            "  {name:<26} MISSED by {number:>2} ({}): two seeds are needed, {} were tried, it was caught on {:?}; others broke: {:?}",
            it.planted.invariant.sentence().trim_end_matches('.'),
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

pub(super) fn plant(it: &Caught) -> Value {
    object! {
        "plant": it.planted.name,
        "invariant": it.planted.invariant.number().to_string(),
        "caught": it.enough(),
        "seeds": it.seeds.iter().map(u64::to_string).collect::<Vec<_>>(),
        "tried": it.tried.to_string(),
    }
}
