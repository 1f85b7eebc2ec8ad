//! The provider `http` of SMS and Viber: any service that accepts the request of contract section 16.
//!
//! Text messages are `POST`ed to `api_base` as `{"to","from","text","message_id","callback_url"}`, with a bearer token
//! if there is one; a Viber message may add `button` and `image`. Receipts come to the callback URL of the message,
//! whose token proves them.

mod answer;
mod receipt;

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::ports::clock::Clock;
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::transport::{
    Answer, Callback, CallbackFault, CallbackRequest, Content, Outgoing, Sent, SettingsFault, Transport, TransportError,
};
use serde_json::{Map, Value, json};

use crate::provider::{Call, ProviderClient, Settings, check_url, to_each};

/// Transport that sends text messages and Viber messages through a service of the workspace's own choice.
#[derive(Debug, Clone)]
pub struct HttpProvider {
    api: ProviderClient,
}

impl HttpProvider {
    /// Creates a transport that makes its calls with `fetch`.
    pub fn new(fetch: Arc<dyn Fetch>, clock: Arc<dyn Clock>) -> Self {
        Self { api: ProviderClient::new(fetch, clock) }
    }

    async fn deliver(&self, account: &Account<'_>, outgoing: &Outgoing, recipient: &str) -> Answer {
        let mut call = Call::json(account.url, &body(account, outgoing, recipient));
        if let Some(token) = account.token {
            call = call.bearer(token);
        }
        self.api.answer(call, answer::answer).await
    }
}

/// The account, from the settings of the channel.
struct Account<'a> {
    url: &'a str,
    sender: &'a str,
    token: Option<&'a str>,
}

/// Builds the request for a recipient (contract section 16).
fn body(account: &Account<'_>, outgoing: &Outgoing, recipient: &str) -> Value {
    let mut body = json!({"to": recipient, "from": account.sender, "message_id": outgoing.message_id.to_string()});
    match &outgoing.content {
        Content::Sms(sms) => body["text"] = sms.text.as_str().into(),
        Content::Viber(viber) => {
            body["text"] = viber.text.as_str().into();
            // Members that a message does not have are left out: not every service knows them.
            if let Some(button) = &viber.button {
                body["button"] = json!({"text": button.text, "url": button.url});
            }
            if let Some(image) = &viber.image {
                body["image"] = image.as_str().into();
            }
        }
        _ => {}
    }
    if let Some(receipts) = &outgoing.receipts {
        body["callback_url"] = receipts.url.as_str().into();
    }
    body
}

#[async_trait]
impl Transport for HttpProvider {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        if !matches!(outgoing.content, Content::Sms(_) | Content::Viber(_)) {
            return Err(TransportError::Content("only text and Viber messages are sent this way".to_owned()));
        }
        let settings = Settings(&outgoing.settings);
        let account = Account {
            url: settings.required("api_base")?,
            sender: settings.required("sender")?,
            token: settings.text("token")?,
        };
        let account = &account;
        Ok(to_each(outgoing, async |recipient: String| self.deliver(account, outgoing, &recipient).await).await)
    }

    fn check(&self, settings: &Map<String, Value>) -> Result<(), SettingsFault> {
        check_url(self.api.fetch(), settings, "api_base")
    }

    fn receipts_name_messages(&self) -> bool {
        true
    }

    fn callback(&self, _: &Map<String, Value>, request: &CallbackRequest<'_>) -> Result<Callback, CallbackFault> {
        receipt::receipt(request)
    }
}
