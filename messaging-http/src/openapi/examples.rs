//! Examples of requests and answers, recorded by `tests/it/examples.rs` from a server.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

const RECORDED: &str = include_str!("examples.json");

/// Recorded example of an operation, members in the order in which the server writes them.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Example<'a> {
    /// The body of the request.
    #[serde(borrow)]
    pub(crate) request: Option<&'a RawValue>,
    /// The body of the answer.
    #[serde(borrow)]
    pub(crate) answer: Option<&'a RawValue>,
}

/// The examples by operation.
pub(crate) fn recorded() -> BTreeMap<&'static str, Example<'static>> {
    // A test records the file and another one reads it.
    serde_json::from_str(RECORDED).unwrap_or_default()
}

/// A recorded text as a value.
pub(super) fn value(text: &RawValue) -> Value {
    serde_json::from_str(text.get()).unwrap_or_default()
}

/// A recorded text without the indentation it has in the file.
pub(crate) fn text(text: &RawValue) -> String {
    let lines = text.get().lines().map(|line| line.strip_prefix("  ").unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_with_a_body_has_an_example_of_it() {
        let recorded = recorded();
        for endpoint in messaging_engine::ops::all() {
            let example = recorded.get(endpoint.id).unwrap_or_else(|| panic!("{endpoint:?} has no example"));
            if endpoint.body == messaging_engine::ops::BodyKind::Required {
                let body = example.request.unwrap_or_else(|| panic!("{endpoint:?} has no example of a body"));
                (endpoint.check_body)(body.get().as_bytes()).unwrap_or_else(|error| panic!("{endpoint:?}: {error}"));
            }
        }
    }
}
