//! The provider `vonage` of SMS: Vonage's Messages API.
//!
//! A JSON document for each recipient, authenticated by a token that the private key of the application signs. Each
//! message brings the address of its receipts and a reference along, and Vonage signs what it calls with a token of its
//! own, by the account's signature secret.

mod answer;
mod callback;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::ports::clock::{Clock, Entropy, SystemEntropy};
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::transport::{
    Answer, Callback, CallbackFault, CallbackRequest, Content, OutcomeClass, Outgoing, Sent, SettingsFault, SmsContent,
    Transport, TransportError,
};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::jwt::{KeyFault, SigningKey};
use crate::provider::callback::hex;
use crate::provider::{Call, ProviderClient, Settings, check_url, misconfigured, to_each};
use crate::token_cache::{TokenCache, TokenKey, token_key};

/// Base URL of Vonage's API, unless the settings name another.
const API_BASE: &str = "https://api.nexmo.com";

/// Validity of a token, and the age at which it is replaced.
const TOKEN_LIFETIME: Duration = Duration::from_mins(15);
const TOKEN_RENEWED: Duration = Duration::from_mins(10);

/// Maximum number of characters of a text, which Vonage splits into parts as needed, and of a reference.
const MAX_TEXT: usize = 3200;
const MAX_REFERENCE: usize = 100;

/// Time that Vonage may keep a message before it gives up, in seconds.
const TTL: std::ops::RangeInclusive<u64> = 20..=604_800;

/// Transport that sends text messages through Vonage.
pub struct Vonage {
    api: ProviderClient,
    entropy: Arc<dyn Entropy>,
    tokens: TokenCache<String, KeyFault>,
}

impl fmt::Debug for Vonage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vonage").finish_non_exhaustive()
    }
}

impl Vonage {
    /// Creates a transport that makes its calls with `fetch`.
    pub fn new(fetch: Arc<dyn Fetch>, clock: Arc<dyn Clock>) -> Self {
        let tokens = TokenCache::new(Arc::clone(&clock));
        Self { api: ProviderClient::new(fetch, clock), entropy: Arc::new(SystemEntropy::default()), tokens }
    }

    /// Returns the token that authenticates calls for an application. It is cached, because signing takes as long as
    /// everything else.
    async fn token(&self, account: &Account<'_>) -> Result<String, TransportError> {
        let make = async {
            let key = SigningKey::rs256(account.private_key)?;
            let claims = claims(account.application_id, self.api.now(), self.entropy.as_ref());
            Ok((key.token(None, &claims), TOKEN_RENEWED))
        };
        self.tokens.get(account.token_key(), make).await.map_err(|fault: KeyFault| misconfigured(&fault.to_string()))
    }

    async fn deliver(
        &self,
        account: &Account<'_>,
        token: &str,
        outgoing: &Outgoing,
        sms: &SmsContent,
        recipient: &str,
    ) -> Answer {
        let call = Call::json(account.url.as_str(), &body(account, outgoing, sms, recipient)).bearer(token);
        self.api.answer(call, answer::answer).await
    }
}

/// The account, from the settings of the channel.
struct Account<'a> {
    url: String,
    application_id: &'a str,
    private_key: &'a str,
    sender: &'a str,
}

impl<'a> Account<'a> {
    fn read(settings: &'a Map<String, Value>) -> Result<Self, TransportError> {
        let settings = Settings(settings);
        Ok(Self {
            url: format!("{}/v1/messages", settings.api_base(API_BASE)?),
            application_id: settings.required("application_id")?,
            private_key: settings.required("private_key")?,
            sender: settings.required("sender")?,
        })
    }

    fn token_key(&self) -> TokenKey {
        token_key(&["vonage", self.application_id, self.private_key])
    }
}

/// Returns the claims of a token for Vonage.
fn claims(application_id: &str, now: Timestamp, entropy: &dyn Entropy) -> Value {
    let mut id = [0; 16];
    entropy.fill(&mut id);
    let issued = now.as_seconds();
    json!({
        "application_id": application_id, "iat": issued, "exp": (now + TOKEN_LIFETIME).as_seconds(), "jti": hex(&id),
    })
}

/// Builds the request for a recipient. Vonage writes numbers without `+`.
fn body(account: &Account<'_>, outgoing: &Outgoing, sms: &SmsContent, recipient: &str) -> Value {
    let number = |text: &str| text.strip_prefix('+').unwrap_or(text).to_owned();
    let mut body = json!({
        "channel": "sms", "message_type": "text", "to": number(recipient), "from": number(account.sender),
        "text": sms.text,
    });
    if let Some(receipts) = &outgoing.receipts {
        body["webhook_url"] = receipts.url.as_str().into();
        if receipts.token.len() <= MAX_REFERENCE {
            body["client_ref"] = receipts.token.as_str().into();
        }
    }
    if let Some(ttl) = outgoing.options.ttl.map(|ttl| ttl.as_secs()).filter(|ttl| TTL.contains(ttl)) {
        body["ttl"] = ttl.into();
    }
    body
}

#[async_trait]
impl Transport for Vonage {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let Content::Sms(sms) = &outgoing.content else {
            return Err(TransportError::Content("only text messages are sent by Vonage".to_owned()));
        };
        if sms.text.chars().count() > MAX_TEXT {
            return Err(TransportError::Content(format!("Vonage takes at most {MAX_TEXT} characters of text")));
        }
        let account = Account::read(&outgoing.settings)?;
        let token = self.token(&account).await?;
        let (this, token) = (&account, token.as_str());
        let sent = to_each(outgoing, async |to: String| self.deliver(this, token, outgoing, sms, &to).await).await;
        // The cause may be the token: the next attempt makes another.
        if sent.outcomes.iter().any(|outcome| outcome.class() == Some(OutcomeClass::Auth)) {
            self.tokens.discard(account.token_key(), &token.to_owned()).await;
        }
        Ok(sent)
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
