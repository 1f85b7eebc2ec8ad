//! Parts that the push providers share.

use std::fmt::Debug;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use messaging_core::domain::delivery::outcome::{Answer, ContentFault, OutcomeClass, ProviderAnswer, Response};
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::transport::{DeliveryOptions, PushContent, SettingsFault, TransportError};
use messaging_core::time::Timestamp;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

use crate::provider::{Call, ProviderClient, Reply, Settings};

/// A notification for one device.
#[derive(Clone, Copy)]
pub(super) struct Notification<'a> {
    /// Settings of the provider.
    pub(super) settings: Settings<'a>,
    /// Address of the device.
    pub(super) address: &'a str,
    /// The text and the other parts that the device shows.
    pub(super) content: &'a PushContent,
    /// Options of delivery: how long the notification is kept, what it replaces, whether it is silent.
    pub(super) options: &'a DeliveryOptions,
    /// Tag of the notification on the device: a later one with the same tag replaces it, such as a second copy.
    pub(super) tag: &'a str,
    /// The current time.
    pub(super) now: Timestamp,
}

/// A prepared request.
pub(super) struct Prepared {
    pub(super) call: Call,
    /// Token that authorizes the request, if it may have to be renewed.
    pub(super) token: Option<String>,
}

/// API of one push provider.
#[async_trait]
pub(super) trait Service: Debug + Send + Sync {
    /// Builds the request for a device. `Err` is the answer if that is impossible.
    async fn prepare(&self, api: &ProviderClient, notification: &Notification<'_>) -> Result<Prepared, Answer>;

    /// Returns the outcome that an HTTP answer of the provider stands for.
    fn judge(&self, api: &ProviderClient, notification: &Notification<'_>, reply: &Reply) -> Answer;

    /// Returns true if an answer refuses the access token and another one may be tried; the refused one is then
    /// forgotten.
    async fn renew(
        &self,
        _api: &ProviderClient,
        _notification: &Notification<'_>,
        _token: &str,
        _reply: &Reply,
    ) -> bool {
        false
    }

    /// Judges the provider's settings before they are stored.
    fn check(&self, fetch: &dyn Fetch, settings: &Map<String, Value>) -> Result<(), SettingsFault>;
}

/// Adds the provider's code to an answer.
pub(super) fn coded(answer: Answer, code: &str) -> Answer {
    let code = Some(code).filter(|code| !code.is_empty()).map(ToOwned::to_owned);
    answer.provider(ProviderAnswer { code, ..ProviderAnswer::default() })
}

/// Returns the answer for a message that cannot be sent, which says nothing about the address.
pub(super) fn content_fault(text: &str) -> Answer {
    Answer::new(OutcomeClass::Content(ContentFault::Provider), Response::of_text(text))
}

/// Returns the answer for settings that cannot work.
pub(super) fn settings_fault(error: &TransportError) -> Answer {
    Answer::new(error.class(), Response::of_text(&error.to_string()))
}

/// Returns a tag in a form that a header can hold: the tag itself if it is short enough and has only allowed
/// characters, else its digest.
pub(super) fn header_tag(tag: &str, longest: usize, is_allowed: fn(u8) -> bool) -> String {
    if !tag.is_empty() && tag.len() <= longest && tag.bytes().all(is_allowed) {
        return tag.to_owned();
    }
    let mut digest = URL_SAFE_NO_PAD.encode(digest(&SHA256, tag.as_bytes()));
    digest.truncate(longest);
    digest
}
