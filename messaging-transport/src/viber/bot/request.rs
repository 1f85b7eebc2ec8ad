//! Builds the body of one request for a message from content.

use messaging_core::ports::transport::{TransportError, ViberContent};
use serde_json::{Value, json};

/// Maximum length of a text in characters.
const MAX_TEXT: usize = 7000;
/// Maximum length of the text below a picture in characters.
const MAX_PICTURE_TEXT: usize = 768;
/// Maximum length of a request in octets.
const MAX_REQUEST: usize = 30 << 10;

/// Returns the body without the recipient.
pub(super) fn of(sender: &str, content: &ViberContent) -> Result<Value, TransportError> {
    let ViberContent { text, button, image } = content;
    let most = if image.is_some() { MAX_PICTURE_TEXT } else { MAX_TEXT };
    if text.chars().count() > most {
        return Err(TransportError::Content(format!("the text has more than {most} characters")));
    }
    let mut body = json!({"type": "text", "text": text, "sender": {"name": sender}, "min_api_version": 1});
    if let Some(image) = image {
        body["type"] = json!("picture");
        body["media"] = json!(image);
    }
    if let Some(button) = button {
        let button = json!({"ActionType": "open-url", "ActionBody": button.url, "Text": button.text});
        body["keyboard"] = json!({"Type": "keyboard", "Buttons": [button]});
    }
    if body.to_string().len() > MAX_REQUEST - RECEIVER {
        return Err(TransportError::Content("the message has more than 30 KiB".to_owned()));
    }
    Ok(body)
}

/// Octets that are kept free for the recipient.
const RECEIVER: usize = 512;

/// Returns the body for a recipient.
pub(super) fn to(receiver: &str, body: &Value) -> Value {
    let mut body = body.clone();
    body["receiver"] = json!(receiver);
    body
}
