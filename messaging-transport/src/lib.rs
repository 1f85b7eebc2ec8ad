//! Transports: they send messages on every channel and receive callbacks and returned mail.
//!
//! Core decides which messages are sent and the consequences of each outcome; this crate turns messages into octets,
//! speaks to peers, and gives each answer its class.
//!
//! * [`mime`] writes an email as the octets that go on the wire, signed with DKIM.
//! * [`Sandbox`] captures instead of sending, on every channel.
//! * [`DirectDelivery`] sends email to the mail exchangers of its recipients.
//! * [`SmtpRelay`] sends email through a relay that the workspace has an account at.
//! * [`HttpProvider`], [`Twilio`] and [`Vonage`] send text messages; the first sends Viber messages too.
//! * [`Push`] sends push notifications through Firebase, Apple and the push services of browsers.
//! * [`Dns`] looks up where mail goes, and the records of sending domains.
//! * [`GuardedFetch`] calls web addresses that users gave: webhooks, and providers.
//! * [`auto_dns`] writes the records of sending domains where their zones are hosted.
//! * [`inbound`] receives returned mail: bounces, complaints, requests to unsubscribe.
//! * [`submission`] receives messages of programs that speak only SMTP.
//! * [`defaults`] lists what a server starts with: every channel and provider that needs no more than
//!   the workspace's settings.
//!
//! ```
//! use messaging_core::domain::channel::Channel;
//! use messaging_transport::{Options, defaults};
//!
//! let transports = defaults(&Options::new("mail.example.org"));
//! assert!(transports.iter().any(|(channel, provider, _)| (*channel, *provider) == (Channel::Email, "smtp")));
//! ```
//!
//! # How to add a provider
//!
//! The settings of a provider are a row of the table in core's `domain/channel/provider/table.rs`. In this crate a
//! provider is a folder with its name and four files, each with its tests:
//!
//! * **The request** (`provider.rs`, with the [`Transport`]): from settings and content to one request for a recipient.
//!   [`LastLook`] is asked right before the request leaves, and told the outcome. The request goes through
//!   [`GuardedFetch`] without redirects, because `api_base` comes from a user. On channels other than email the
//!   provider is given `receipts` to call back with.
//! * **The table of answers** (`provider/answer.rs`): a pure function from the HTTP answer to an [`Answer`], by the
//!   provider's own code and never by the status alone. A failure that [`may_have_arrived`] is `ambiguous`, an earlier
//!   one `retry` of the account; a 2xx that cannot be parsed is `ambiguous`, a 3xx `content`. The wait is that of
//!   [`Fetched::retry_after`] or the provider's usual one; the scope says if it concerns the recipient, the account, or
//!   only the host that was called. [`ProviderAnswer`] has the provider's id of the message, its code and the segments.
//! * **Receipts** (`provider/receipt.rs`): from a verified callback to [`ReceiptLink`] and [`Receipt`], whose class
//!   comes from the same table. A body that cannot be parsed is ignored.
//! * **Messages of recipients** (`provider/inbound.rs`): from a callback to [`InboundMessage`].
//!
//! Then it needs a line in [`defaults`]. Core decides the consequence of a class (`domain/delivery/consequence.rs`), so
//! no file here decides about a message, an address or a lane. A program outside of this project does the same with a
//! transport of its own and `App::builder().transport(…)`; see `examples/custom_transport.rs`.
//!
//! [`LastLook`]: messaging_core::ports::transport::LastLook
//! [`Answer`]: messaging_core::ports::transport::Answer
//! [`ProviderAnswer`]: messaging_core::ports::transport::ProviderAnswer
//! [`may_have_arrived`]: messaging_core::ports::fetch::FetchError::may_have_arrived
//! [`Fetched::retry_after`]: messaging_core::ports::fetch::Fetched::retry_after
//! [`ReceiptLink`]: messaging_core::ports::inbound::ReceiptLink
//! [`Receipt`]: messaging_core::domain::channel::receipt::Receipt
//! [`InboundMessage`]: messaging_core::domain::channel::inbound_message::InboundMessage

pub mod auto_dns;
mod dane;
pub mod direct;
mod dkim;
pub mod dns;
pub mod fetch;
mod guard;
mod http_provider;
pub mod inbound;
mod jwt;
pub mod listen;
mod mail;
pub mod mime;
mod mta_sts;
mod pace;
pub mod probe;
mod provider;
pub mod push;
pub mod relay;
mod sandbox;
#[cfg(feature = "smpp")]
mod smpp;
pub mod smtp;
pub mod smtp_server;
pub mod submission;
mod telegram;
mod token_cache;
mod twilio;
mod viber;
mod vonage;
mod whatsapp;

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::ip_pool::source::NamedSource;
use messaging_core::ports::clock::{Clock, SystemClock};
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::sts_policy_cache::StsPolicyCache;
use messaging_core::ports::transport::Transport;

pub use direct::{DirectDelivery, MxOverride};
pub use dns::Dns;
pub use fetch::GuardedFetch;
pub use http_provider::HttpProvider;
pub use push::Push;
pub use relay::SmtpRelay;
pub use sandbox::Sandbox;
#[cfg(feature = "smpp")]
pub use smpp::{Smpp, SmppBuilder};
pub use telegram::TelegramBot;
pub use twilio::Twilio;
pub use viber::ViberBot;
pub use vonage::Vonage;
pub use whatsapp::WhatsappCloud;

/// Options that all transports of a server share.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name by which this machine introduces itself to mail servers (EHLO).
    pub hostname: String,
    /// Addresses that direct delivery leaves from; empty for the one that the system chooses.
    pub sources: Vec<NamedSource>,
    /// The resolver by which the transports look up names.
    pub dns: Dns,
    /// Host that takes the place of every recipient's mail exchangers.
    pub mx_override: Option<MxOverride>,
    /// True if relays and mail exchangers at private addresses are permitted; `mx_override` may always have one.
    pub allow_private: bool,
    /// Time for which a domain that could not be reached is not tried again.
    pub rest: Duration,
    /// HTTP client for calls of providers and MTA-STS policies.
    pub fetch: Arc<dyn Fetch>,
    /// Cache of MTA-STS policies; without it, policies are not looked up.
    pub sts_policies: Option<Arc<dyn StsPolicyCache>>,
    /// Clock for signatures and rate limits.
    pub clock: Arc<dyn Clock>,
}

impl Options {
    /// Returns options with the resolver and the clock of the system, and without private addresses.
    pub fn new(hostname: &str) -> Self {
        let (dns, rest) = (Dns::new(None), DirectDelivery::REST);
        let fetch = Arc::new(GuardedFetch::builder(dns.clone()).build());
        let clock = Arc::new(SystemClock);
        Self {
            hostname: hostname.to_owned(),
            sources: Vec::new(),
            dns,
            mx_override: None,
            allow_private: false,
            rest,
            fetch,
            sts_policies: None,
            clock,
        }
    }
}

/// Returns the transports by channel and provider name (contract section 16).
pub fn defaults(options: &Options) -> Vec<(Channel, &'static str, Arc<dyn Transport>)> {
    let sandbox: Arc<dyn Transport> = Arc::new(Sandbox::default());
    let relay = SmtpRelay::builder().ehlo_name(&options.hostname).allow_private(options.allow_private);
    let relay: Arc<dyn Transport> = Arc::new(relay.build());
    let direct = DirectDelivery::builder(&options.hostname, options.dns.clone()).sources(options.sources.clone());
    let direct =
        direct.mx_override(options.mx_override.clone()).allow_private(options.allow_private).rest(options.rest);
    let direct = match &options.sts_policies {
        Some(kept) => direct.mta_sts(Arc::clone(&options.fetch), Arc::clone(kept)),
        None => direct,
    };
    let direct: Arc<dyn Transport> = Arc::new(direct.clock(Arc::clone(&options.clock)).build());
    let (fetch, clock) = (|| Arc::clone(&options.fetch), || Arc::clone(&options.clock));
    let http: Arc<dyn Transport> = Arc::new(HttpProvider::new(fetch(), clock()));
    let twilio: Arc<dyn Transport> = Arc::new(Twilio::new(fetch(), clock()));
    let vonage: Arc<dyn Transport> = Arc::new(Vonage::new(fetch(), clock()));
    #[cfg(feature = "smpp")]
    let smpp: Option<Arc<dyn Transport>> =
        Some(Arc::new(Smpp::builder(options.dns.clone()).allow_private(options.allow_private).build()));
    #[cfg(not(feature = "smpp"))]
    let smpp: Option<Arc<dyn Transport>> = None;
    let pushes = Push::all(&options.fetch, &options.clock);
    let pushes = pushes.map(|(provider, transport)| (Channel::Push, provider.name(), transport));
    Channel::ALL
        .into_iter()
        .map(|channel| (channel, "sandbox", Arc::clone(&sandbox)))
        .chain([(Channel::Email, "builtin", direct), (Channel::Email, "smtp", relay)])
        .chain(chats(options))
        .chain([(Channel::Sms, "http", Arc::clone(&http)), (Channel::Viber, "http", http)])
        .chain([(Channel::Sms, "twilio", twilio), (Channel::Sms, "vonage", vonage)])
        .chain(pushes)
        .chain(smpp.map(|smpp| (Channel::Sms, "smpp", smpp)))
        .collect()
}

/// Returns the transports of the chat channels.
fn chats(options: &Options) -> [(Channel, &'static str, Arc<dyn Transport>); 3] {
    let (fetch, clock) = (|| Arc::clone(&options.fetch), || Arc::clone(&options.clock));
    [
        (Channel::Telegram, "bot_api", Arc::new(TelegramBot::new(fetch(), clock()))),
        (Channel::Whatsapp, "cloud_api", Arc::new(WhatsappCloud::new(fetch(), clock()))),
        (Channel::Viber, "bot", Arc::new(ViberBot::new(fetch(), clock()))),
    ]
}
