//! The push channel: its providers `fcm`, `apns` and `webpush`, and the choice of the provider for each address.
//!
//! A workspace chooses one provider; `routes` in its settings can hold the settings of the others. The form of an
//! address tells which provider made it ([`PushProvider::of`]). No other provider is ever shown it, because that one
//! would answer that the device token is dead. If the provider of an address has no settings, nothing is sent, and the
//! outcome says nothing about the address.
//!
//! The three share this: the addresses of a message are served one after another; an access token is renewed once when
//! it is refused; and an answer about the account also becomes the answer for the account's remaining addresses,
//! without a request.

mod apns;
mod fcm;
mod service;
mod webpush;

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::domain::channel::provider::ROUTES;
use messaging_core::domain::delivery::outcome::{Answer, Outcome, OutcomeClass, ProviderAnswer, Scope};
use messaging_core::ports::clock::Clock;
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::transport::{
    Content, Outgoing, PushContent, Sent, SettingsFault, Transport, TransportError,
};
use serde_json::{Map, Value};

use self::service::{Notification, Prepared, Service, content_fault};
use crate::provider::{ProviderClient, Settings, refused_by_last_look};

/// Minimum number of hexadecimal digits of a device token of Apple.
const MIN_APNS_DIGITS: usize = 64;

/// A provider of the channel push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushProvider {
    /// Firebase Cloud Messaging.
    Fcm,
    /// Apple Push Notification service.
    Apns,
    /// The push services of browsers (RFC 8030).
    Webpush,
}

impl PushProvider {
    /// All providers.
    pub const ALL: [Self; 3] = [Self::Fcm, Self::Apns, Self::Webpush];

    /// Returns the name in settings (contract section 16).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fcm => "fcm",
            Self::Apns => "apns",
            Self::Webpush => "webpush",
        }
    }

    /// Returns the provider that made an address: a JSON object is a subscription of a browser, 64 or more hexadecimal
    /// digits are a device token of Apple, and anything else is Firebase's.
    pub fn of(address: &str) -> Self {
        if address.starts_with('{') {
            Self::Webpush
        } else if address.len() >= MIN_APNS_DIGITS && address.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            Self::Apns
        } else {
            Self::Fcm
        }
    }
}

/// The HTTP client and the providers, shared by the transports of the channel.
#[derive(Debug)]
struct Services {
    api: ProviderClient,
    fcm: fcm::Fcm,
    apns: apns::Apns,
    webpush: webpush::Webpush,
}

impl Services {
    /// Returns the API of a provider.
    fn of(&self, provider: PushProvider) -> &dyn Service {
        match provider {
            PushProvider::Fcm => &self.fcm,
            PushProvider::Apns => &self.apns,
            PushProvider::Webpush => &self.webpush,
        }
    }
}

/// Transport that sends push notifications through the provider that a workspace chose, and those of its `routes`.
#[derive(Debug)]
pub struct Push {
    /// The provider that a workspace with this transport has chosen.
    provider: PushProvider,
    services: Arc<Services>,
}

impl Push {
    /// Creates one transport for each provider. They share their cached access tokens.
    pub fn all(fetch: &Arc<dyn Fetch>, clock: &Arc<dyn Clock>) -> [(PushProvider, Arc<dyn Transport>); 3] {
        let clock = || Arc::clone(clock);
        let services = Arc::new(Services {
            api: ProviderClient::new(Arc::clone(fetch), clock()),
            fcm: fcm::Fcm::new(clock()),
            apns: apns::Apns::new(clock()),
            webpush: webpush::Webpush::new(clock()),
        });
        PushProvider::ALL.map(|provider| {
            let transport: Arc<dyn Transport> = Arc::new(Self { provider, services: Arc::clone(&services) });
            (provider, transport)
        })
    }

    /// Returns the settings of a provider: those at the top level for the transport's own, those under `routes` for
    /// another; `None` if there are none.
    fn settings_of(&self, settings: &Map<String, Value>, provider: PushProvider) -> Option<Map<String, Value>> {
        if provider == self.provider {
            return Some(settings.clone());
        }
        settings.get(ROUTES)?.get(provider.name())?.as_object().cloned()
    }

    /// Sends the notification to one address: prepares the request, asks the last look whether it may leave, sends it,
    /// and puts the outcome on record. Whatever prevents this is part of the outcome too.
    async fn attempt(&self, outgoing: &Outgoing, content: &PushContent, address: &str, tag: &str) -> Outcome {
        let provider = PushProvider::of(address);
        let Some(settings) = self.settings_of(&outgoing.settings, provider) else {
            let text = format!("the address belongs to {0}, and the channel has no settings for {0}", provider.name());
            return content_fault(&text).into();
        };
        let Services { api, .. } = &*self.services;
        let service = self.services.of(provider);
        let notification = Notification {
            settings: Settings(&settings),
            address,
            content,
            options: &outgoing.options,
            tag,
            now: api.now(),
        };
        let prepared = match service.prepare(api, &notification).await {
            Ok(prepared) => prepared,
            Err(answer) => return answer.into(),
        };
        if let Some(refusal) = refused_by_last_look(&outgoing.last_look, address).await {
            return refusal;
        }
        let outcome = Outcome::from(deliver(service, api, &notification, prepared).await);
        outgoing.last_look.ended(address, &outcome);
        outcome
    }
}

/// Sends a prepared request; once more with a new access token if the provider refuses the first one.
async fn deliver(
    service: &dyn Service,
    api: &ProviderClient,
    notification: &Notification<'_>,
    prepared: Prepared,
) -> Answer {
    let Prepared { call, token } = prepared;
    let reply = match api.call(call).await {
        Ok(reply) => reply,
        Err(answer) => return answer,
    };
    if let Some(token) = token
        && service.renew(api, notification, &token, &reply).await
    {
        let again = match service.prepare(api, notification).await {
            Ok(again) => again,
            Err(answer) => return answer,
        };
        return api.answer(again.call, |reply| service.judge(api, notification, reply)).await;
    }
    service.judge(api, notification, &reply)
}

#[async_trait]
impl Transport for Push {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let Content::Push(content) = &outgoing.content else {
            return Err(TransportError::Content("this provider carries push notifications only".to_owned()));
        };
        let own_tag = outgoing.message_id.to_string();
        let tag = outgoing.options.collapse_key.as_deref().unwrap_or(&own_tag);
        let mut outcomes = Vec::with_capacity(outgoing.recipients.len());
        // Answers about the account of a provider, which its other tokens would get as well.
        let mut about_account: Vec<(PushProvider, Answer)> = Vec::new();
        for address in &outgoing.recipients {
            let provider = PushProvider::of(address);
            if let Some((_, answer)) = about_account.iter().find(|(one, _)| *one == provider) {
                outcomes.push(answer.clone().into());
                continue;
            }
            let outcome = match self.attempt(outgoing, content, address, tag).await {
                Outcome::Answered(answer) => Outcome::Answered(with_provider_name(answer, provider)),
                other => other,
            };
            if let Some(answer) = outcome.answer().filter(|answer| is_about_account(answer.class)) {
                about_account.push((provider, answer.clone()));
            }
            outcomes.push(outcome);
        }
        Ok(Sent { outcomes, ..Sent::default() })
    }

    fn check(&self, settings: &Map<String, Value>) -> Result<(), SettingsFault> {
        let fetch = self.services.api.fetch();
        for provider in PushProvider::ALL {
            if let Some(settings) = self.settings_of(settings, provider) {
                let checked = self.services.of(provider).check(fetch, &settings);
                // A fault in the settings under `routes` is reported as one of the setting `routes`.
                checked.map_err(|fault| {
                    if provider == self.provider { fault } else { SettingsFault { member: ROUTES, ..fault } }
                })?;
            }
        }
        Ok(())
    }

    fn account_of(&self, settings: &Map<String, Value>, address: &str) -> Option<&'static str> {
        let routes = settings.get(ROUTES)?.as_object()?;
        // An address whose provider has no settings goes through no account.
        let provider = PushProvider::of(address);
        (provider == self.provider || routes.contains_key(provider.name())).then(|| provider.name())
    }

    fn own_settings(&self) -> Map<String, Value> {
        match self.provider {
            PushProvider::Webpush => webpush::new_key_pair(),
            PushProvider::Fcm | PushProvider::Apns => Map::new(),
        }
    }
}

/// True if an answer of this class holds for all addresses of the same account.
const fn is_about_account(class: OutcomeClass) -> bool {
    matches!(class, OutcomeClass::Auth | OutcomeClass::Retry(Scope::Account) | OutcomeClass::Throttled(Scope::Account))
}

/// Adds the name of the provider that gave it to an answer; the provider's other details are kept.
fn with_provider_name(answer: Answer, provider: PushProvider) -> Answer {
    let said = answer.of_provider().cloned().unwrap_or_default();
    answer.provider(ProviderAnswer { provider: Some(provider.name().to_owned()), ..said })
}

#[cfg(test)]
mod tests;
