//! Refused items in the answer to a request with many items.

use std::fmt::Write as _;

use serde_json::Value;

use super::node::clean;
use crate::command::spoken::in_commands;
use crate::failure::Failure;

/// Number of refused items that are named.
const NAMED: usize = 10;

/// The failure of a command whose answer names items that were refused.
pub(super) fn failure(answer: &Value) -> Option<Failure> {
    let results = answer["results"].as_array()?;
    let refused: Vec<_> = results.iter().filter(|result| result["status"] == "error").collect();
    let mut text = match refused.len() {
        0 => return None,
        1 if results.len() == 1 => "the item was refused".to_owned(),
        1 => format!("1 of {} items was refused", results.len()),
        several => format!("{several} of {} items were refused", results.len()),
    };
    for result in refused.iter().take(NAMED) {
        let _ = write!(text, "\n  item {}: {}", result["index"], reason(&result["error"]));
    }
    if refused.len() > NAMED {
        let _ = write!(text, "\n  … and {} more (see --json)", refused.len() - NAMED);
    }
    Some(Failure::Unsuccessful(text))
}

/// Reason for a refusal: each of its field errors, or the message of the error if it has none.
pub(super) fn reason(error: &Value) -> String {
    let text = |value: &Value, member: &str| in_commands(&clean(value[member].as_str().unwrap_or_default(), ' '));
    let faults: Vec<_> = error["details"]["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|fault| format!("{} {} ({})", text(fault, "pointer"), text(fault, "message"), text(fault, "code")))
        .collect();
    if faults.is_empty() { format!("{} ({})", text(error, "message"), text(error, "code")) } else { faults.join("; ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refused_items_are_named_with_their_faults() {
        let fault = json!({"pointer": "/to", "code": "required", "message": "is required"});
        let results = json!([{"index": 0, "status": "queued"},
            {"index": 1, "status": "error", "error": {"code": "validation_failed", "message": "1 field is invalid",
                "details": {"errors": [fault]}}},
            {"index": 2, "status": "error", "error": {"code": "sender_missing", "message": "give from_email"}}]);
        let told = failure(&json!({"results": results})).unwrap().to_string();
        assert_eq!(
            told,
            "2 of 3 items were refused\n  item 1: /to is required (required)\n  item 2: give from_email (sender_missing)"
        );
        let only = failure(&json!({"results": [results[2]]})).unwrap().to_string();
        assert_eq!(only, "the item was refused\n  item 2: give from_email (sender_missing)");
        assert!(failure(&json!({"results": [{"index": 0, "status": "created"}]})).is_none());
        assert!(failure(&json!({"data": []})).is_none());
    }
}
