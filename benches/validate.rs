//! Checking a message compared with merely parsing it.

use divan::{Bencher, black_box};
use messaging_core::domain::message::message_input::MessageInput;
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

/// A good body of many values, which bad ones of its size are compared with.
#[divan::bench]
fn many_values(bencher: Bencher<'_, '_>) {
    let body = with_variables(&values("name"), "");
    bencher.bench(|| input::body::<MessageInput>(black_box(body.as_bytes())).expect("it is good"));
}

/// The same with one fault, at the end.
#[divan::bench]
fn many_values_and_a_fault(bencher: Bencher<'_, '_>) {
    let body = with_variables(&values("name"), r#","cc":5"#);
    bencher.bench(|| input::body::<MessageInput>(black_box(body.as_bytes())).expect_err("it is not"));
}

/// As many members that nobody knows.
#[divan::bench]
fn unknown_members(bencher: Bencher<'_, '_>) {
    let body = format!(r#"{{"channel":"email",{}}}"#, values("subjekt"));
    bencher.bench(|| input::body::<MessageInput>(black_box(body.as_bytes())).expect_err("it is not"));
}

/// As many objects, each with a member without a name, in the place of texts.
#[divan::bench]
fn objects_for_texts(bencher: Bencher<'_, '_>) {
    let body = format!(r#"{{"channel":"email","tags":[{}]}}"#, vec![r#"{"":0}"#; VALUES / 2].join(","));
    bencher.bench(|| input::body::<MessageInput>(black_box(body.as_bytes())).expect_err("it is not"));
}

/// Texts in which U+0000 is written out, which none may hold, below long names.
#[divan::bench]
fn forbidden_characters(bencher: Bencher<'_, '_>) {
    let name = "n".repeat(VALUES);
    let variables = format!(r#""{name}":{{"{name}":[{}]}}"#, vec![r#""\u0000""#; VALUES].join(","));
    let body = with_variables(&variables, "");
    bencher.bench(|| input::body::<MessageInput>(black_box(body.as_bytes())).expect_err("it is not"));
}

/// Values of the bodies above.
const VALUES: usize = 20_000;

fn values(name: &str) -> String {
    (0..VALUES).map(|number| format!(r#""{name}{number}":{number}"#)).collect::<Vec<_>>().join(",")
}

fn with_variables(members: &str, more: &str) -> String {
    format!(r#"{{"channel":"email","to":"ann@example.com","subject":"a","text":"b","variables":{{{members}}}{more}}}"#)
}
