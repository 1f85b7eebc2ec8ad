//! Runs many seeds on all processors, and tells those that fail.
//!
//! `simulate [FIRST [COUNT]]` runs so many seeds from the first one on, 100,000 from 0 unless given. `SEED=n` runs
//! one and prints its plan and every step. Ends with 1 when a promise did not hold.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use messaging_simulation::{Options, Report, run};

/// Default number of seeds.
const COUNT: u64 = 100_000;

/// Interval at which progress is reported.
const PROGRESS: Duration = Duration::from_secs(10);

/// The sums of many runs.
#[derive(Default)]
struct Sums {
    failed: Vec<u64>,
    requests: usize,
    copies: usize,
    faults: BTreeMap<&'static str, u64>,
}

fn main() -> ExitCode {
    if let Some(seed) = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()) {
        return replay(seed);
    }
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (Ok(first), Ok(count)) = (arguments.next().unwrap_or(Ok(0)), arguments.next().unwrap_or(Ok(COUNT))) else {
        println!("usage: simulate [FIRST [COUNT]]");
        return ExitCode::from(2);
    };
    let sums = run_all(first, count);
    println!("{count} seeds, {} requests, {} copies", sums.requests, sums.copies);
    for (kind, times) in &sums.faults {
        println!("  {kind}: {times}");
    }
    if sums.failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {:?}", sums.failed);
    ExitCode::FAILURE
}

fn replay(seed: u64) -> ExitCode {
    match run(seed, Options { keeps_trace: true, ..Options::default() }) {
        Ok(report) => {
            for line in &report.trace {
                println!("{line}");
            }
            tell(&report);
            println!("digest {:016x}", report.digest);
            if report.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            println!("seed {seed} cannot be run: {error}");
            ExitCode::from(2)
        }
    }
}

fn tell(report: &Report) {
    for line in &report.broken {
        println!("seed {}: {line}", report.seed);
    }
}

fn run_all(first: u64, count: u64) -> Sums {
    let (next, sums, began) = (AtomicU64::new(0), Mutex::new(Sums::default()), Instant::now());
    let told = Mutex::new(Instant::now());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let done = next.fetch_add(1, Ordering::Relaxed);
                    if done >= count {
                        return;
                    }
                    let seed = first + done;
                    let outcome = run(seed, Options::default());
                    let mut sums = sums.lock().expect("no thread panics while it adds up");
                    match outcome {
                        Ok(report) => {
                            sums.requests += report.requests;
                            sums.copies += report.copies;
                            for (kind, times) in &report.faults {
                                *sums.faults.entry(kind).or_default() += u64::from(*times);
                            }
                            if !report.broken.is_empty() {
                                sums.failed.push(seed);
                                tell(&report);
                            }
                        }
                        Err(error) => {
                            sums.failed.push(seed);
                            println!("seed {seed} cannot be run: {error}");
                        }
                    }
                    let mut told = told.lock().expect("no thread panics while it tells");
                    if told.elapsed() >= PROGRESS {
                        *told = Instant::now();
                        println!(
                            "{done} of {count} after {} s, {} failed",
                            began.elapsed().as_secs(),
                            sums.failed.len()
                        );
                    }
                }
            });
        }
    });
    sums.into_inner().expect("no thread panicked")
}
