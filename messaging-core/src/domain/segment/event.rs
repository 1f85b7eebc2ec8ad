//! Paths such as `event.cart.id` to values in the event that started an automation run. `value_from` and `re_entry_key`
//! hold such paths (contract section 13.4, "Entry").

use serde_json::{Map, Value};

/// Rule for the texts that [`path`] accepts, as the error for other texts states it.
pub const PATH_RULE: &str = "must be event. and the name of a property; names of members follow after dots";

/// Maximum number of names in a path.
const MAX_NAMES: usize = 16;

/// Parses a path into the names of the nested members, from the outside in: `event.cart.id` into `cart`, `id`. `None`
/// if it does not follow [`PATH_RULE`] or has more than 16 names.
pub fn path(text: &str) -> Option<Vec<String>> {
    let names: Vec<_> = text.strip_prefix("event.")?.split('.').map(ToOwned::to_owned).collect();
    (names.len() <= MAX_NAMES && names.iter().all(|name| !name.is_empty())).then_some(names)
}

/// The value at a path in the properties of an event; `None` if it is missing or null.
pub fn value_at<'e>(event: &'e Map<String, Value>, path: &[String]) -> Option<&'e Value> {
    let (first, rest) = path.split_first()?;
    let found = rest.iter().try_fold(event.get(first)?, |value, name| value.as_object()?.get(name))?;
    Some(found).filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_in_an_event_are_found() {
        let event = json!({"cart": {"id": "c-1", "none": null}, "total": 5});
        let event = event.as_object().unwrap();
        let found = |text: &str| value_at(event, &path(text).unwrap()).cloned();
        assert_eq!(found("event.cart.id"), Some(json!("c-1")));
        assert_eq!(found("event.total"), Some(json!(5)));
        assert_eq!(found("event.cart"), Some(json!({"id": "c-1", "none": null})));
        for missing in ["event.cart.none", "event.cart.id.x", "event.nothing"] {
            assert_eq!(found(missing), None, "{missing}");
        }
        for bad in ["", "event", "event.", "cart.id", "event..id", "event.cart.", "Event.cart"] {
            assert_eq!(path(bad), None, "{bad}");
        }
        assert_eq!(path(&format!("event{}", ".a".repeat(17))), None);
    }
}
