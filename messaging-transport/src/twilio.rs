//! The provider `twilio` of SMS: Twilio's Messages resource.
//!
//! One form for each recipient; a sender that begins with `MG` is a messaging service. Each message brings the address
//! of its receipts along, and Twilio signs what it calls with the account's auth token.

mod answer;
mod callback;
mod signature;

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::ports::clock::Clock;
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::transport::{
    Answer, Callback, CallbackFault, CallbackRequest, Content, Outgoing, Sent, SettingsFault, SmsContent, Transport,
    TransportError,
};
use serde_json::{Map, Value};

use crate::provider::{Call, ProviderClient, Settings, check_url, misconfigured, to_each};

/// Base URL of Twilio's API, unless the settings name another.
const API_BASE: &str = "https://api.twilio.com";

/// Time that Twilio may keep a message before it gives up, in seconds; every version of the API accepts this range.
const VALIDITY: std::ops::RangeInclusive<u64> = 5..=14_400;

/// Transport that sends text messages through Twilio.
#[derive(Debug, Clone)]
pub struct Twilio {
    api: ProviderClient,
}

impl Twilio {
    /// Creates a transport that makes its calls with `fetch`.
    pub fn new(fetch: Arc<dyn Fetch>, clock: Arc<dyn Clock>) -> Self {
        Self { api: ProviderClient::new(fetch, clock) }
    }

    async fn deliver(&self, account: &Account<'_>, outgoing: &Outgoing, sms: &SmsContent, recipient: &str) -> Answer {
        let ttl = outgoing.options.ttl.map(|ttl| ttl.as_secs()).filter(|ttl| VALIDITY.contains(ttl));
        let ttl = ttl.map(|ttl| ttl.to_string());
        let fields = fields(account.sender, outgoing, sms, recipient, ttl.as_deref());
        let call = Call::form(account.url.as_str(), &fields).basic(account.sid, account.auth_token);
        self.api.answer(call, answer::answer).await
    }
}

/// The account, from the settings of the channel.
struct Account<'a> {
    url: String,
    sid: &'a str,
    auth_token: &'a str,
    sender: &'a str,
}

impl<'a> Account<'a> {
    fn read(settings: &'a Map<String, Value>) -> Result<Self, TransportError> {
        let settings = Settings(settings);
        let sid = settings.required("account_sid")?;
        // The SID becomes a part of the path.
        if !sid.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(misconfigured("account_sid has other characters than letters and digits"));
        }
        let base = settings.api_base(API_BASE)?;
        Ok(Self {
            url: format!("{base}/2010-04-01/Accounts/{sid}/Messages.json"),
            sid,
            auth_token: settings.required("auth_token")?,
            sender: settings.required("sender")?,
        })
    }
}

/// Builds the form for a recipient.
fn fields<'a>(
    sender: &'a str,
    outgoing: &'a Outgoing,
    sms: &'a SmsContent,
    recipient: &'a str,
    ttl: Option<&'a str>,
) -> Vec<(&'a str, &'a str)> {
    let sender_field = if sender.starts_with("MG") { "MessagingServiceSid" } else { "From" };
    let mut fields = vec![("To", recipient), (sender_field, sender), ("Body", sms.text.as_str())];
    fields.extend(outgoing.receipts.as_ref().map(|receipts| ("StatusCallback", receipts.url.as_str())));
    fields.extend(ttl.map(|ttl| ("ValidityPeriod", ttl)));
    fields
}

#[async_trait]
impl Transport for Twilio {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let Content::Sms(sms) = &outgoing.content else {
            return Err(TransportError::Content("only text messages are sent by Twilio".to_owned()));
        };
        let account = Account::read(&outgoing.settings)?;
        let account = &account;
        Ok(to_each(outgoing, async |recipient: String| self.deliver(account, outgoing, sms, &recipient).await).await)
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
        callback::read(settings, request)
    }
}
