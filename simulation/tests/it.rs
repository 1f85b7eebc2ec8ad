//! The seeds of every build, and the planted mistakes that they find.
//!
//! `SEED=n cargo test -p messaging-simulation` replays one seed and prints its plan and every step; `SEEDS=n` runs that
//! many instead of 2,000.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use messaging_simulation::{Options, Planted, Report, run};

/// Seeds of every build.
const SEEDS: u64 = 2000;

/// Number of seeds within which a planted mistake is found.
const PLANTED_SEEDS: u64 = 1000;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Runs seeds from 0 on, on all processors, until `is_enough`.
fn run_seeds(count: u64, options: Options, is_enough: impl Fn(&Report) -> bool + Sync) -> Vec<Report> {
    let (next, found) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        return;
                    }
                    let report = run(seed, options).unwrap();
                    if is_enough(&report) {
                        next.store(count, Ordering::Relaxed);
                    }
                    if !report.broken.is_empty() {
                        found.lock().unwrap().push(report);
                    }
                }
            });
        }
    });
    found.into_inner().unwrap()
}

#[test]
fn promises_hold() {
    if let Some(seed) = number("SEED") {
        let report = run(seed, Options { keeps_trace: true, ..Options::default() }).unwrap();
        assert!(report.broken.is_empty(), "{}\nseed {seed}: {:#?}", report.trace.join("\n"), report.broken);
        return;
    }
    let failed = run_seeds(number("SEEDS").unwrap_or(SEEDS), Options::default(), |_| false);
    let told: Vec<_> = failed.iter().map(|report| format!("SEED={}: {:#?}", report.seed, report.broken)).collect();
    assert!(failed.is_empty(), "{}", told.join("\n"));
}

#[test]
fn the_same_seed_happens_the_same_way() {
    for seed in 0..25 {
        let keeping = Options { keeps_trace: true, ..Options::default() };
        let [one, other] = [run(seed, keeping).unwrap(), run(seed, keeping).unwrap()];
        if one.digest != other.digest {
            let first = one.trace.iter().zip(&other.trace).position(|(one, other)| one != other).unwrap_or_default();
            let shown =
                |report: &Report| report.trace[first.saturating_sub(5)..].iter().take(12).cloned().collect::<Vec<_>>();
            panic!("seed {seed} differs at line {first}:\n{:#?}\n{:#?}", shown(&one), shown(&other));
        }
    }
}

/// Asserts that the seeds find a planted mistake: a broken promise has one of the words.
fn finds(planted: Planted, words: &[&str]) {
    let tells = |report: &Report| report.broken.iter().any(|line| words.iter().any(|word| line.contains(word)));
    let found = run_seeds(PLANTED_SEEDS, Options { planted: Some(planted), ..Options::default() }, tells);
    assert!(found.iter().any(tells), "{planted:?} was not found: {found:#?}");
}

#[test]
fn a_forgotten_outcome_is_found() {
    finds(Planted::OutcomeForgotten, &["sent to"]);
}

#[test]
fn a_claim_that_is_not_checked_is_found() {
    // Two workers deliver one message: each to the end, or one of them a copy that the other's record does not have.
    finds(
        Planted::LeaseNotChecked,
        &["again after its end was known", "ends for", "no event says so", "which ended with"],
    );
}

#[test]
fn a_mark_after_the_content_is_found() {
    finds(Planted::MarkAfterData, &["no event says so"]);
}

#[test]
fn a_counter_outside_of_the_commit_is_found() {
    finds(Planted::CounterOutsideCommit, &["members of a list"]);
}

#[test]
fn a_place_outside_of_the_commit_is_found() {
    finds(Planted::PlaceOutsideCommit, &["messages for"]);
}

#[test]
fn a_run_outside_of_the_commit_is_found() {
    finds(Planted::RunOutsideCommit, &["sent by no run"]);
}
