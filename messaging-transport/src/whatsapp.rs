//! The provider `cloud_api` of the channel whatsapp: Meta's WhatsApp Cloud API.

mod answer;
mod callback;
mod request;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::ports::clock::Clock;
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::transport::{
    Answer, Callback, CallbackFault, CallbackRequest, Content, Outgoing, Reservation, Route, RouteState, Sent,
    SettingsFault, Transport, TransportError, WhatsappContent,
};
use serde_json::{Map, Value};

use crate::pace::{Claim, Pace, PaceKey, Rate};
use crate::provider::{Call, ProviderClient, Settings, check_url, misconfigured};

/// Base URL of Meta's API, with the version that this adapter speaks.
const API_BASE: &str = "https://graph.facebook.com/v26.0";

/// Rate limit of one recipient: after a burst the pause is longer ("Pair rate limits").
const RECIPIENT: Rate = Rate::every(Duration::from_secs(6)).burst(45);

/// Transport that sends from a WhatsApp Business phone number.
#[derive(Debug)]
pub struct WhatsappCloud {
    api: ProviderClient,
    pace: Pace,
}

/// A phone number and its token, from the settings.
struct Number<'a> {
    api_base: &'a str,
    id: &'a str,
    access_token: &'a str,
}

impl<'a> Number<'a> {
    fn of(settings: &'a Map<String, Value>) -> Result<Self, TransportError> {
        let settings = Settings(settings);
        let id = settings.required("phone_number_id")?;
        // The id stands in the path of every call.
        if !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(misconfigured("phone_number_id is not the id of a phone number"));
        }
        Ok(Self { api_base: settings.api_base(API_BASE)?, id, access_token: settings.required("access_token")? })
    }

    fn account(&self) -> PaceKey {
        PaceKey::account(&[self.api_base, self.id])
    }
}

impl WhatsappCloud {
    /// Creates a transport that makes its calls with `fetch` and measures rates by `clock`.
    pub fn new(fetch: Arc<dyn Fetch>, clock: Arc<dyn Clock>) -> Self {
        Self { pace: Pace::new(Arc::clone(&clock)), api: ProviderClient::new(fetch, clock) }
    }

    async fn send_to(&self, number: &Number<'_>, to: &str, content: &WhatsappContent, reference: &str) -> Answer {
        let url = format!("{}/{}/messages", number.api_base, number.id);
        let call = Call::json(url, &request::of(to, content, reference)).bearer(number.access_token);
        self.api.answer(call, |reply| answer::judge(reply, || self.pace.refused(number.account(), to))).await
    }
}

#[async_trait]
impl Transport for WhatsappCloud {
    fn state_of(&self, route: &Route) -> RouteState {
        let (Ok(number), Some(recipient)) = (Number::of(&route.settings), &route.recipient) else {
            return RouteState::default();
        };
        self.pace.state(Claim { account: number.account(), recipient, rate: RECIPIENT })
    }

    async fn reserve(&self, route: &Route) -> Reservation {
        match (Number::of(&route.settings), &route.recipient) {
            (Ok(number), Some(recipient)) => {
                self.pace.reserve(Claim { account: number.account(), recipient, rate: RECIPIENT })
            }
            // `send` reports the fault in the settings.
            _ => Reservation::default(),
        }
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let Content::Whatsapp(content) = &outgoing.content else {
            return Err(TransportError::Content("this provider carries WhatsApp messages only".to_owned()));
        };
        let number = &Number::of(&outgoing.settings)?;
        let reference = outgoing.receipts.as_ref().map(|receipts| receipts.token.clone());
        let reference = &reference.unwrap_or_else(|| outgoing.message_id.to_string());
        let send = |to: String| async move { self.send_to(number, &to, content, reference).await };
        Ok(self.pace.to_each(outgoing, number.account(), |_| RECIPIENT, send).await)
    }

    fn check(&self, settings: &Map<String, Value>) -> Result<(), SettingsFault> {
        check_url(self.api.fetch(), settings, "api_base")
    }

    fn receipts_name_messages(&self) -> bool {
        true
    }

    fn callback(
        &self,
        settings: &Map<String, Value>,
        request: &CallbackRequest<'_>,
    ) -> Result<Callback, CallbackFault> {
        callback::read(Settings(settings), request)
    }
}

#[cfg(test)]
mod tests;
