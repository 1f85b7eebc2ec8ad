//! Messages sent later in the place of others: copies that an earlier `message resend` made, and fallbacks.

use std::collections::HashMap;

use messaging_engine::ops::Endpoint;
use messaging_engine::ops::messages::ListMessages;
use serde_json::Value;

use crate::failure::Failure;
use crate::listing::Pages;
use crate::request::Request;
use crate::target::Target;

/// Later copies and fallbacks of messages, by the id of the original message.
#[derive(Default)]
pub(super) struct Later {
    /// The newest copy.
    copies: HashMap<String, String>,
    /// A fallback that reached the recipient or still may, and its state.
    fallbacks: HashMap<String, (String, String)>,
}

impl Later {
    /// Reads all messages since a time, whatever their state: a copy is younger than its original.
    pub(super) async fn since(target: &Target, time: &str) -> Result<Self, Failure> {
        let query = vec![("since".to_owned(), time.to_owned())];
        let mut pages = Pages::new(target, Request { query, ..Request::new(Endpoint::row::<ListMessages>()) });
        let mut later = Self::default();
        while let Some(items) = pages.next().await? {
            for item in items {
                later.see(&serde_json::from_str(item.get()).unwrap_or_default());
            }
        }
        Ok(later)
    }

    /// Notes a message, if it is a copy or a fallback; the newest come first.
    fn see(&mut self, message: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (id, status) = (text(&message["message_id"]), text(&message["status"]));
        if let Some(first) = message["fallback_of"].as_str()
            && !matches!(status.as_str(), "bounced" | "failed" | "suppressed" | "cancelled")
        {
            self.fallbacks.entry(first.to_owned()).or_insert((id.clone(), status));
        }
        if let Some(old) = message["metadata"]["resend_of"].as_str() {
            self.copies.entry(old.to_owned()).or_insert(id);
        }
    }

    /// The newest copy of a message.
    pub(super) fn copy_of(&self, id: &str) -> Option<&str> {
        self.copies.get(id).map(String::as_str)
    }

    /// Reason for which a message needs no other copy, if there is one.
    pub(super) fn why_not(&self, id: &str) -> Option<String> {
        if let Some(copy) = self.copy_of(id) {
            return Some(format!("it was sent again already, as {copy}"));
        }
        let (fallback, status) = self.fallbacks.get(id)?;
        Some(format!("its fallback {fallback} is {status}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn copies_and_fallbacks_stand_in_the_place_of_a_message() {
        let mut later = Later::default();
        for message in [
            json!({"message_id": "msg_5", "status": "queued", "fallback_of": "msg_4", "metadata": {}}),
            json!({"message_id": "msg_4", "status": "failed", "fallback_of": null, "metadata": {"resend_of": "msg_2"}}),
            json!({"message_id": "msg_3", "status": "bounced", "fallback_of": "msg_1", "metadata": {}}),
            json!({"message_id": "msg_2", "status": "failed", "fallback_of": null, "metadata": {"resend_of": "msg_1"}}),
            json!({"message_id": "msg_0", "status": "failed", "fallback_of": null, "metadata": {"resend_of": "msg_2"}}),
        ] {
            later.see(&message);
        }
        assert_eq!((later.copy_of("msg_2"), later.copy_of("msg_4")), (Some("msg_4"), None));
        assert!(later.why_not("msg_1").unwrap().contains("msg_2"), "of a chain the newest alone is left");
        assert!(later.why_not("msg_4").unwrap().contains("msg_5 is queued"));
        assert_eq!(later.why_not("msg_3"), None);
    }
}
