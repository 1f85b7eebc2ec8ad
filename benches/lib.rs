//! Code shared by the benches: a message, the product, and the comparison with a floor.
//!
//! A floor does the least work that keeps the same promise: it parses the request and commits one row, in a group with
//! other waiting rows. Floor and product alternate in one run, because machines differ from minute to minute; the
//! quoted figure is the ratio of their medians.

/// The allocator of the programs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub mod floor;
pub mod load;
pub mod product;
pub mod receiver;
pub mod requests;
pub mod sink;

use std::time::Duration;

/// A message request of about 1 KiB whose recipient is number `n`.
pub fn message(n: u64) -> String {
    message_to(n, "example.test")
}

/// A message request of about 1 KiB whose recipient is number `n` at `domain`.
pub fn message_to(n: u64, domain: &str) -> String {
    let line = "<p style='color:#333'>Your order is on its way; the total is 49.90 EUR.</p>";
    format!(
        r#"{{"channel":"email","to":"user-{n:012}@{domain}","from_email":"orders@sandbox.test","from_name":"Example Shop","reply_to":"help@sandbox.test","subject":"Your order {n:012} is confirmed","headers":{{"X-Order":"{n:012}"}},"variables":{{"first_name":"Alex","order_id":"{n:012}"}},"metadata":{{"order":"{n:012}","source":"checkout"}},"tags":["order","transactional"],"text":"Hello Alex, your order {n:012} is confirmed. Thank you.","html":"<html><body><h1>Thank you, Alex</h1>{}</body></html>"}}"#,
        line.repeat(5)
    )
}

/// The median of the measurements; NaN if there are none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Number and length of a bench's rounds.
#[derive(Debug, Clone, Copy)]
pub struct BenchOptions {
    /// Number of turns that floor and product have each.
    pub rounds: usize,
    /// Length of one turn.
    pub turn: Duration,
}

impl BenchOptions {
    /// Three rounds of two seconds; with `--test` on the command line one short one that only shows
    /// that the bench works.
    pub fn from_arguments() -> Self {
        if std::env::args().any(|argument| argument == "--test") {
            Self { rounds: 1, turn: Duration::from_millis(200) }
        } else {
            Self { rounds: 3, turn: Duration::from_secs(2) }
        }
    }
}

/// One line of results.
#[expect(clippy::print_stdout, reason = "a bench tells what it measured")]
pub fn report(what: &str, floors: Vec<f64>, ours: Vec<f64>) {
    let (floor, product) = (median(floors), median(ours));
    println!("{what:<44} floor {floor:>8.0}/s  ours {product:>8.0}/s  ratio {:.2}", product / floor);
}
