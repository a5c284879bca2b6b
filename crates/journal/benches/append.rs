//! Durable appends per second of the real journal, beside a raw append + fdatasync of the same payload in the same run.
//!
//! Invariant: both sides write to the same directory, and figures are only compared as ratios within one run.
//! Run by `cargo bench -p praxis-journal`; `PRAXIS_BENCH_DIR` names the directory (default: the build's own).

// In a test a failed step is a failed test, in helpers too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use praxis_journal::{Append, Journal, Options};
use tempfile::TempDir;

#[path = "../../../simulations/src/script.rs"]
#[allow(dead_code)]
mod script;

use script::Script;

/// Concurrent writers that are measured.
const WRITERS: [usize; 3] = [1, 16, 256];

/// How often both sides are measured in turn for the printed ratios; the median of each is printed.
const ROUNDS: usize = 3;

/// How long each side is measured in a round, and criterion measures. With three writer counts and criterion's own
/// warming up the whole run takes about a minute.
const MEASURED: Duration = Duration::from_secs(1);

/// Bytes of filling that bring an event to about 1 KiB.
const FILLING: usize = 200;

/// A writer with its own mission and run, so that nobody waits for another's stream.
struct Writer {
    script: Script,
}

struct Bench {
    folder: TempDir,
    journal: Journal,
    writers: Vec<Writer>,
}

fn directory() -> PathBuf {
    match std::env::var_os("PRAXIS_BENCH_DIR") {
        Some(directory) => directory.into(),
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).to_owned(),
    }
}

impl Bench {
    fn start(writers: usize) -> Self {
        let folder = TempDir::new_in(directory()).expect("a folder for the store");
        let journal =
            Journal::create(&folder.path().join("store"), &Options::default()).expect("a store");
        let writers = (0..writers).map(|number| {
            let mut script = Script::new(&format!("mission-{number}")).expect("a script");
            journal
                .append_blocking(script.start_run("run").expect("an append"))
                .expect("a run");
            script.filling = FILLING;
            Writer { script }
        });
        let writers = writers.collect();
        Self {
            folder,
            journal,
            writers,
        }
    }

    /// Each writer appends as soon as its last append was answered, `count` appends in all; gives their latencies.
    /// Events are made before the clock starts: only the durable boundary is measured.
    fn run(&mut self, count: usize) -> (Duration, Vec<Duration>) {
        let per_writer = count.div_ceil(self.writers.len());
        let mut waiting: Vec<Vec<Append>> = self
            .writers
            .iter_mut()
            .map(|writer| writer.appends(per_writer))
            .collect();
        let (sender, answers) = mpsc::channel();
        let start = Instant::now();
        let submit = |number: usize, append: Append| {
            let (sender, begun) = (sender.clone(), Instant::now());
            let reply = Box::new(move |answer: praxis_journal::AppendResult| {
                answer.expect("the append is committed");
                sender
                    .send((number, begun.elapsed()))
                    .expect("the answer is awaited");
            });
            self.journal
                .submit(append, reply)
                .expect("the queue has room");
        };
        let mut running = 0;
        for (number, appends) in waiting.iter_mut().enumerate() {
            if let Some(append) = appends.pop() {
                submit(number, append);
                running += 1;
            }
        }
        let mut latencies = Vec::with_capacity(count);
        while running > 0 {
            let (number, latency) = answers.recv().expect("an answer");
            latencies.push(latency);
            match waiting[number].pop() {
                Some(append) => submit(number, append),
                None => running -= 1,
            }
        }
        (start.elapsed(), latencies)
    }
}

impl Writer {
    /// Appends in reverse, to be popped.
    fn appends(&mut self, count: usize) -> Vec<Append> {
        let mut appends: Vec<_> = (0..count)
            .map(|_| self.script.note("run").expect("an append"))
            .collect();
        appends.reverse();
        appends
    }
}

/// Appends of a payload to a plain file, each followed by fdatasync.
fn raw(folder: &Path, payload: &[u8], count: usize) -> (Duration, Vec<Duration>) {
    let mut file: File = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("raw"))
        .expect("a file");
    let mut latencies = Vec::with_capacity(count);
    let start = Instant::now();
    for _ in 0..count {
        let begun = Instant::now();
        file.write_all(black_box(payload)).expect("a write");
        file.sync_data().expect("a sync");
        latencies.push(begun.elapsed());
    }
    (start.elapsed(), latencies)
}

fn median(latencies: &mut [Duration]) -> Duration {
    latencies.sort_unstable();
    latencies[latencies.len() / 2]
}

/// One measurement of one side.
struct Round {
    per_second: f64,
    p50: Duration,
}

impl Round {
    fn of((elapsed, mut latencies): (Duration, Vec<Duration>)) -> Self {
        Self {
            per_second: latencies.len() as f64 / elapsed.as_secs_f64(),
            p50: median(&mut latencies),
        }
    }
}

/// The median rate and the median of the rounds' p50.
fn medians(rounds: &[Round]) -> (f64, Duration) {
    let mut rates: Vec<f64> = rounds.iter().map(|round| round.per_second).collect();
    rates.sort_unstable_by(f64::total_cmp);
    let mut p50s: Vec<Duration> = rounds.iter().map(|round| round.p50).collect();
    (rates[rates.len() / 2], median(&mut p50s))
}

/// How many appends fill the measured time, from a short run.
fn filling(mut run: impl FnMut(usize) -> Duration, probe: usize) -> usize {
    let elapsed = run(probe).max(Duration::from_millis(1));
    let count = probe as f64 * MEASURED.as_secs_f64() / elapsed.as_secs_f64();
    (count as usize).clamp(probe, 200_000)
}

/// Prints the ratios within one run.
fn ratios() {
    let mut first = Bench::start(1);
    let payload = first.writers[0].appends(1)[0].sealed[0].bytes.clone();
    drop(first);
    println!(
        "payload {} bytes; two-phase commit with quick_repair, durability immediate; medians of {ROUNDS} rounds",
        payload.len()
    );
    for writers in WRITERS {
        let mut bench = Bench::start(writers);
        let folder = bench.folder.path().to_owned();
        let raw_count = filling(|count| raw(&folder, &payload, count).0, 64);
        let count = filling(|count| bench.run(count).0, 4 * writers);
        let (mut raws, mut owns) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            raws.push(Round::of(raw(&folder, &payload, raw_count)));
            owns.push(Round::of(bench.run(count)));
        }
        let (raw_rate, raw_p50) = medians(&raws);
        let (own_rate, own_p50) = medians(&owns);
        println!(
            "{writers:>4} writers: {own_rate:>8.0}/s, {:.2} x raw ({raw_rate:.0}/s); p50 {own_p50:?}, {:.1} x raw ({raw_p50:?}){}",
            own_rate / raw_rate,
            own_p50.as_secs_f64() / raw_p50.as_secs_f64(),
            if raw_p50 > Duration::from_micros(400) {
                "; inconclusive, the machine is busy"
            } else {
                ""
            },
        );
    }
}

fn append(criterion: &mut Criterion) {
    // Under `cargo test` criterion only tries each benchmark once; figures would mean nothing.
    if std::env::args().any(|argument| argument == "--bench") {
        ratios();
    }
    let mut group = criterion.benchmark_group("append");
    group.sample_size(10).measurement_time(MEASURED);
    for writers in WRITERS {
        let mut bench = Bench::start(writers);
        group.throughput(Throughput::Elements(writers as u64));
        group.bench_function(BenchmarkId::new("journal", writers), |bencher| {
            bencher
                .iter_custom(|rounds| bench.run(writers * usize::try_from(rounds).unwrap_or(1)).0);
        });
    }
    let mut bench = Bench::start(1);
    let payload = bench.writers[0].appends(1)[0].sealed[0].bytes.clone();
    group.throughput(Throughput::Elements(1));
    group.bench_function("raw append + fdatasync", |bencher| {
        bencher.iter_custom(|rounds| {
            raw(
                bench.folder.path(),
                &payload,
                usize::try_from(rounds).unwrap_or(1),
            )
            .0
        });
    });
    group.finish();
}

criterion_group!(benches, append);
criterion_main!(benches);
