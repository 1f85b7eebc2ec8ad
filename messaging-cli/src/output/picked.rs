//! Parts of an answer, a line for each item: its id with `--quiet`, or the result of the template of `--format`.

use std::sync::OnceLock;

use minijinja::value::{Serde, ValueKind};
use minijinja::{Environment, UndefinedBehavior, escape_formatter};
use serde_json::Value;

use super::node::clean;
use crate::failure::Failure;

/// Names of the member with the id of an item; the first that is there counts.
const IDS: &[&str] =
    &["id", "message_id", "import_id", "event_id", "delivery_id", "run_id", "user_id", "campaign_id", "contact_id"];

/// Members of an answer that hold lists of items.
const LISTS: &[&str] = &["data", "results"];

/// The template of `--format`, set once in a process.
static TEMPLATE: OnceLock<String> = OnceLock::new();

/// Sets the template.
pub(super) fn choose(template: &str) -> Result<(), Failure> {
    environment().template_from_str(template).map_err(|error| unclear(&error))?;
    TEMPLATE.get_or_init(|| template.to_owned());
    Ok(())
}

/// Template engine of `--format`.
fn environment<'source>() -> Environment<'source> {
    let mut environment = Environment::new();
    // A member of a missing value is empty, as a missing member of an item is.
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    // As the templates of messages print: null is empty, and booleans are those of JSON.
    environment.set_formatter(|out, state, value| match value.kind() {
        ValueKind::None => Ok(()),
        ValueKind::Bool => Ok(out.write_str(if value.is_true() { "true" } else { "false" })?),
        _ => escape_formatter(out, state, value),
    });
    environment
}

fn unclear(error: &minijinja::Error) -> Failure {
    Failure::usage(format!("--format: {error}"))
}

/// The items of an answer: those of a page or a batch, or the answer itself.
pub(super) fn items(answer: &Value) -> Vec<&Value> {
    match LISTS.iter().find_map(|list| answer[*list].as_array()) {
        Some(items) => items.iter().collect(),
        None => vec![answer],
    }
}

/// The lines of some items with their ids; items without one have no line.
pub(super) fn ids(items: &[&Value]) -> String {
    let id = |item: &&Value| IDS.iter().find_map(|name| item[*name].as_str().map(|id| format!("{id}\n")));
    items.iter().filter_map(id).collect()
}

/// The lines that the template makes of some items; an empty result has no line.
pub(super) fn formatted(items: &[&Value], is_terminal: bool) -> Result<String, Failure> {
    let mut text = String::new();
    let Some(template) = TEMPLATE.get() else { return Ok(text) };
    let environment = environment();
    let template = environment.template_from_str(template).map_err(|error| unclear(&error))?;
    for item in items {
        let line = template.render(Serde(item)).map_err(|error| unclear(&error))?;
        if !line.is_empty() {
            text.push_str(&if is_terminal { clean(&line, '\n') } else { line });
            text.push('\n');
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_are_those_of_pages_and_batches_or_the_answer() {
        let page = json!({"data": [{"id": "a"}, {"message_id": "b", "contact_id": "c"}, {"status": "error"}]});
        assert_eq!(ids(&items(&page)), "a\nb\n");
        assert_eq!(ids(&items(&json!({"results": [{"index": 0, "message_id": "m"}]}))), "m\n");
        assert_eq!(ids(&items(&json!({"message_id": "m", "status": "queued"}))), "m\n");
    }

    #[test]
    fn a_template_makes_a_line_of_an_item() {
        assert!(choose("{{ id ").is_err());
        choose("{{ id }} {{ why.code }}{{ gone }}").unwrap();
        let page = json!({"data": [{"id": "a", "why": {"code": "x"}, "gone": null}, {"id": "b\u{1b}", "gone": true}]});
        assert_eq!(formatted(&items(&page), false).unwrap(), "a x\nb\u{1b} true\n");
        assert_eq!(formatted(&items(&page), true).unwrap(), "a x\nb\u{FFFD} true\n");
    }
}
