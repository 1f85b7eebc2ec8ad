//! From content to the body of one request for a message.

use messaging_core::ports::transport::{TransportError, ViberContent};
use serde_json::{Value, json};

/// The most characters of a text.
const MAX_TEXT: usize = 7000;
/// The most characters below a picture.
const MAX_PICTURE_TEXT: usize = 768;
/// The most octets of a request.
const MAX_REQUEST: usize = 30 << 10;

/// The body, but for whom it is for.
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

/// The octets that are kept free for the recipient.
const RECEIVER: usize = 512;

/// The body for a recipient.
pub(super) fn to(receiver: &str, body: &Value) -> Value {
    let mut body = body.clone();
    body["receiver"] = json!(receiver);
    body
}
