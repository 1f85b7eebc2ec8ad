//! Erasure of the recipient from a message.
//!
//! Contract section 6.2: messages keep their status, without address and content. Where the contract leaves a choice:
//! events keep kind, time and the members that name nobody, which statistics need; texts and tags that name the person
//! are removed, and so is the sender's `metadata`, which cannot be searched for names.

mod copies;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::domain::channel::address;
use crate::domain::message::{Message, MessageEvent};

pub use copies::ErasedAddresses;

/// Members of an event's `meta` with personal data.
const PERSONAL: [&str; 3] = ["recipient", "ip", "user_agent"];

/// Members of an event's `meta` that may name the person; removed in any case if no name is known any more.
const TEXTS: [&str; 3] = ["response", "message", "url"];

/// Everything that names an erased person: addresses and identifiers, with letters as `fold_letter` returns them.
#[derive(Debug, Clone)]
pub struct Names(HashSet<String>);

impl Names {
    /// Returns the names of a person. Very short ones would match by chance and are left out.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let spelled = names.into_iter().flat_map(|name| {
            // A text may spell an internationalized domain in A-labels or in Unicode.
            let readable = address::unicode_spelling(&name);
            [Some(name), readable].into_iter().flatten()
        });
        Self(spelled.map(|name| folded(&name)).filter(|name| name.len() >= 4).collect())
    }

    /// True if a text names the person, plainly or as part of a URL.
    pub fn are_in(&self, text: &str) -> bool {
        let text = folded(text);
        let escaped = |name: &str| name.replace('@', "%40").replace('+', "%2b");
        self.0.iter().any(|name| text.contains(name.as_str()) || text.contains(&escaped(name)))
    }
}

fn folded(text: &str) -> String {
    text.chars().map(address::fold_letter).collect()
}

/// Returns the tags of a message without those that name the person.
pub fn tags(message: &Message, names: &Names) -> Vec<String> {
    message.tags.iter().filter(|tag| !names.are_in(tag)).cloned().collect()
}

/// Returns the `meta` of an event without personal data; `None` if it stays as it is.
pub fn meta(event: &MessageEvent, names: &Names) -> Option<Map<String, Value>> {
    let is_unclear = |name: &str| names.0.is_empty() && TEXTS.contains(&name);
    let is_personal = |name: &str, value: &Value| {
        PERSONAL.contains(&name) || is_unclear(name) || value.as_str().is_some_and(|text| names.are_in(text))
    };
    let kept: Map<_, _> = event
        .meta
        .iter()
        .filter(|(name, value)| !is_personal(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    (kept.len() < event.meta.len()).then_some(kept)
}

/// Removes recipient, IP address and user agent from the `meta` of a new event of an erased person.
pub fn forget_visitor(meta: &mut Map<String, Value>) {
    meta.retain(|name, _| !PERSONAL.contains(&name.as_str()));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::message::EventKind;
    use crate::time::Timestamp;

    #[track_caller]
    fn check(before: Value, after: Value) {
        let names = Names::new(["Ann+x@example.com".to_owned(), "+14155550123".to_owned(), "u-1".to_owned()]);
        let event = MessageEvent {
            id: "evt_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            message_id: "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            kind: EventKind::Bounce,
            at: Timestamp::from_millis(0),
            meta: before.as_object().cloned().unwrap(),
        };
        let kept = meta(&event, &names).map_or_else(|| before.clone(), Value::Object);
        assert_eq!(kept, after);
    }

    #[test]
    fn what_names_the_person_goes() {
        check(json!({}), json!({}));
        check(json!({"recipient": "ann+x@example.com", "smtp_code": 550}), json!({"smtp_code": 550}));
        check(
            json!({"response": "no user <ANN+X@example.com>", "mx": "mx.example.com"}),
            json!({"mx": "mx.example.com"}),
        );
        check(json!({"response": "5.1.1 no such user u-1"}), json!({"response": "5.1.1 no such user u-1"}));
        check(json!({"url": "https://a.example/?m=Ann%2Bx%40example.com"}), json!({}));
        check(
            json!({"url": "https://a.example/sale", "ip": "192.0.2.1", "user_agent": "x", "machine": false}),
            json!({"url": "https://a.example/sale", "machine": false}),
        );
    }

    #[test]
    fn a_person_is_known_by_the_one_spelling_of_the_address() {
        let kim = ErasedAddresses::new(["Kim@b\u{fc}cher.example"]);
        for same in ["kim@B\u{dc}CHER.example", "KIM@xn--bcher-kva.example"] {
            assert!(kim.are(same), "{same}");
            assert_eq!(kim.out_of_text(&format!("to <{same}>")).as_deref(), Some("to <***>"), "{same}");
        }
        // Another person: U+212A KELVIN SIGN is no `k`, although Unicode maps it to `k` in lower case.
        let other = "\u{212a}im@b\u{fc}cher.example";
        assert!(!kim.are(other));
        assert_eq!(kim.out_of_text(other), None);
        let names = Names::new(["kim@example.com".to_owned()]);
        assert!(names.are_in("no KIM@Example.com here"));
        assert!(!names.are_in("no \u{212a}im@example.com here"));
        let joerg = ErasedAddresses::new(["J\u{d6}rg@example.com"]);
        assert_eq!(joerg.out_of_text("J\u{d6}rg@Example.com").as_deref(), Some("***"));
        assert!(!joerg.are("j\u{f6}rg@example.com"));
    }
}
