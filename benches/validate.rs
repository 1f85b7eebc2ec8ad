//! What checking a message costs beside merely parsing it.

use divan::{Bencher, black_box};
use messaging_core::domain::message_input::MessageInput;
use messaging_core::input;

fn main() {
    divan::main();
}

/// The floor: serde alone.
#[divan::bench]
fn parse(bencher: Bencher<'_, '_>) {
    let body = messaging_benches::message(17);
    bencher.bench(|| serde_json::from_slice::<MessageInput>(black_box(body.as_bytes())).expect("it is good"));
}

/// Parsing with every rule of the contract.
#[divan::bench]
fn parse_and_check(bencher: Bencher<'_, '_>) {
    let body = messaging_benches::message(17);
    bencher.bench(|| input::body::<MessageInput>(black_box(body.as_bytes())).expect("it is good"));
}

/// The slow way: a message with three faults.
#[divan::bench]
fn explain_faults(bencher: Bencher<'_, '_>) {
    let body = r#"{"channel":"email","to":5,"cc":["a@b.co","x"],"subject":"a","text":"t","tags":[""]}"#;
    bencher.bench(|| input::body::<MessageInput>(black_box(body.as_bytes())).expect_err("it is not"));
}
