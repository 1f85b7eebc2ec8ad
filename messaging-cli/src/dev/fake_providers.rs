//! `dev --fake-providers`: a fake provider of every channel but email within this process, so that all channels can be
//! tried without accounts.
//!
//! The fakes speak the real providers' protocols on loopback ports. Everything else is the code of production:
//! settings, requests, answers, and the callbacks with receipts and messages of recipients. Every start sets the
//! channels of the workspace again, because the ports change.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::builder::ValueParser;
use clap::{Arg, ArgMatches};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::WorkspaceId;
use messaging_engine::ops::channels::{ChannelInput, ChannelPath, SetChannel};
use messaging_engine::{App, Caller};
use messaging_testing::fakes::{
    FakeApi, FakeApns, FakeFcm, FakeHttp, FakeProvider, FakeSmpp, FakeTelegram, FakeTwilio, FakeViberBot, FakeVonage,
    FakeWebpush, FakeWhatsapp,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::dev_file;
use crate::failure::Failure;
use crate::target;

const FAKE_PROVIDERS: &str = "fake_providers";

/// File in the data directory that tells other programs the providers and their URLs, as JSON.
const FILE: &str = "fake-providers.json";

/// Providers that have a fake; the first of a channel is its default, as in contract section 16.
const KNOWN: &[(Channel, &[&str])] = &[
    (Channel::Sms, &["http", "twilio", "vonage", "smpp"]),
    (Channel::Push, &["fcm", "apns", "webpush"]),
    (Channel::Telegram, &["bot_api"]),
    (Channel::Whatsapp, &["cloud_api"]),
    (Channel::Viber, &["http", "bot"]),
];

/// Phone number in the commands that are shown; its last two digits choose the outcome "delivered".
const NUMBER: &str = "+9990000001";
/// Like [`NUMBER`], as the id of a Telegram chat.
const CHAT: &str = "9990000001";
/// Like [`NUMBER`], for providers whose addresses have no fixed form.
const NAME: &str = "somebody-01";
/// Account at a fake provider, also used as the id of its phone number.
const ACCOUNT: &str = "fake";
/// Secret of that account; at most eight characters, because SMPP has no room for more.
const SECRET: &str = "fake";
/// Token of the Telegram bot: a number and a secret.
const BOT_TOKEN: &str = "1:fake";

/// End of the text that [`FakeProviders::welcome`] prints.
const OUTCOMES: &str = "The last two digits of a recipient choose the outcome:

01 delivered     02 bounced, suppressed     03 soft bounce     04 deferred     05 filtered     06 failed
07 delivered and read     10 blocked     52 accepted, then bounced     20 the channel pauses     09 the channel stops

docs/channels/trying.md lists all outcomes.
";

/// The provider that is played for each channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice(Vec<(Channel, &'static str)>);

impl Choice {
    /// Reads `CHANNEL=PROVIDER,…`; channels that are not named get their defaults.
    fn parse(text: &str) -> Result<Self, String> {
        let mut chosen: Vec<_> = KNOWN.iter().map(|(channel, providers)| (*channel, providers[0])).collect();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (channel, provider) = item.split_once('=').ok_or("write it as CHANNEL=PROVIDER")?;
            let known = KNOWN.iter().find(|(known, _)| known.as_str() == channel);
            let (channel, providers) = known.ok_or_else(|| format!("there is no fake provider of {channel}"))?;
            let provider = providers.iter().find(|known| **known == provider).ok_or_else(|| {
                format!("there is no fake of {provider} for {channel}, only of {}", providers.join(", "))
            })?;
            if let Some(entry) = chosen.iter_mut().find(|(known, _)| known == channel) {
                entry.1 = provider;
            }
        }
        Ok(Self(chosen))
    }
}

/// The argument `--fake-providers[=CHANNEL=PROVIDER,…]`.
pub(super) fn argument() -> Arg {
    let known = KNOWN.iter().map(|(channel, providers)| format!("{channel}: {}", providers.join(", ")));
    let known = known.collect::<Vec<_>>().join("; ");
    Arg::new(FAKE_PROVIDERS)
        .long("fake-providers")
        .value_name("CHANNEL=PROVIDER,…")
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("")
        .value_parser(ValueParser::new(Choice::parse))
        .help("Set every channel but email to a provider that this process plays, to try them without accounts")
        .long_help(format!(
            "Set every channel but email to a provider that this process plays, to try them without accounts\n\n\
             The last two digits of a recipient choose the outcome. Calls to private addresses are allowed, as with \
             --allow-private-targets. Providers to choose from, the default first: {known}."
        ))
}

/// The value of the argument; `None` if it was not given.
pub(super) fn chosen(matches: &ArgMatches) -> Option<Choice> {
    matches.get_one(FAKE_PROVIDERS).cloned()
}

/// A running fake provider. Its servers end when it is dropped.
#[derive(Default)]
struct Fake {
    /// Settings of the channel that make it use this provider.
    config: Map<String, Value>,
    /// Addresses to which a message can be sent, for the commands that are shown.
    recipients: Vec<String>,
    /// The URL at which the fake provider listens.
    url: String,
    /// HTTP servers of the fake; the first is that of the chosen provider, the others exist for push alone.
    servers: Vec<FakeProvider>,
    /// SMPP server, held so that it keeps running.
    _message_center: Option<FakeSmpp>,
    /// The provider whose dashboard needs our callback URL; `None` for those that get it by a request.
    dashboard: Option<FakeWhatsapp>,
    /// URL of our server that the provider calls with receipts and incoming messages.
    callback_url: Option<String>,
}

impl Fake {
    async fn start(channel: Channel, provider: &str) -> io::Result<Self> {
        match (channel, provider) {
            (Channel::Push, _) => Self::push(provider).await,
            (Channel::Sms, "smpp") => {
                let center = FakeSmpp::start(ACCOUNT, SECRET).await?;
                let fake =
                    Self { config: object(center.settings()), recipients: vec![NUMBER.to_owned()], ..Self::default() };
                let url = format!("smpp://{}:{}", text(&fake.config["host"]), fake.config["port"]);
                Ok(Self { url, _message_center: Some(center), ..fake })
            }
            (Channel::Sms, "twilio") => {
                let api = FakeTwilio::new(ACCOUNT, SECRET);
                Self::one(api.clone(), |url| api.settings(url), NUMBER).await
            }
            (Channel::Sms, "vonage") => {
                let api = FakeVonage::with_example_key(ACCOUNT, SECRET);
                Self::one(api.clone(), |url| api.settings(url), NUMBER).await
            }
            (Channel::Telegram, _) => {
                let settings = |url: &str| json!({"api_base": url, "bot_token": BOT_TOKEN});
                Self::one(FakeTelegram::new(BOT_TOKEN), settings, CHAT).await
            }
            (Channel::Whatsapp, _) => {
                let api = FakeWhatsapp::new(ACCOUNT, SECRET, SECRET);
                let settings = |url: &str| json!({"api_base": url, "phone_number_id": ACCOUNT, "access_token": SECRET, "app_secret": SECRET});
                let fake = Self::one(api.clone(), settings, NUMBER).await?;
                Ok(Self { dashboard: Some(api), ..fake })
            }
            (Channel::Viber, "bot") => {
                let settings = |url: &str| json!({"api_base": url, "auth_token": SECRET, "sender": "ACME"});
                Self::one(FakeViberBot::new(SECRET), settings, NAME).await
            }
            _ => {
                let api = FakeHttp::new(Some(SECRET));
                Self::one(api.clone(), |url| api.settings(url), NUMBER).await
            }
        }
    }

    /// Starts a fake that has one HTTP server. `settings` makes the channel's settings from its URL.
    async fn one(api: impl FakeApi, settings: impl FnOnce(&str) -> Value, recipient: &str) -> io::Result<Self> {
        let server = FakeProvider::start(api).await?;
        Ok(Self {
            config: object(settings(&server.url())),
            recipients: vec![recipient.to_owned()],
            url: server.url(),
            servers: vec![server],
            ..Self::default()
        })
    }

    /// Starts all three push providers, since the form of a device's address decides which of them gets the message.
    /// The chosen one becomes the channel's provider, the others its `routes`.
    async fn push(provider: &str) -> io::Result<Self> {
        let fcm = FakeProvider::start(FakeFcm::default()).await?;
        let apns = FakeProvider::start(FakeApns::default()).await?;
        let webpush = FakeProvider::start(FakeWebpush).await?;
        let recipients = vec![NAME.to_owned(), FakeApns::device(1), FakeWebpush::subscription(&webpush.url(), 1)];
        let mut all = [
            ("fcm", FakeFcm::settings(&fcm.url()), fcm),
            ("apns", FakeApns::settings(&apns.url()), apns),
            ("webpush", FakeWebpush::entered(), webpush),
        ];
        all.sort_by_key(|(name, ..)| *name != provider);
        let [(_, mut config, first), second, third] = all;
        let routes: Map<_, _> = [&second, &third]
            .into_iter()
            .map(|(name, config, _)| ((*name).to_owned(), config.clone().into()))
            .collect();
        config.insert("routes".to_owned(), routes.into());
        Ok(Self { config, recipients, url: first.url(), servers: vec![first, second.2, third.2], ..Self::default() })
    }
}

/// Description of a fake provider, as it is printed and written to [`FILE`].
#[derive(Debug, Serialize)]
struct FakeSummary {
    channel: Channel,
    provider: &'static str,
    url: String,
    recipients: Vec<String>,
    /// URL at which `POST {"from","text"}` simulates a message from a recipient; null if recipients cannot write through
    /// the provider.
    inbound: Option<String>,
}

/// The fake providers of this process. They end when dropped.
pub(super) struct FakeProviders {
    summaries: Vec<FakeSummary>,
    file: PathBuf,
    fakes: Vec<Fake>,
}

/// The server that the fake providers call back.
pub(super) struct Called<'a> {
    pub(super) app: &'a App,
    pub(super) workspace: WorkspaceId,
    /// Beginning of the callback URLs that providers are given.
    pub(super) public_url: &'a str,
    /// Address at which the server listens on this machine; the fakes call it in place of the public URL.
    pub(super) address: SocketAddr,
}

impl FakeProviders {
    /// Starts the chosen providers, sets the channels of the workspace to them, and writes [`FILE`] into the data
    /// directory. Fails if a port cannot be bound, a channel cannot be set, or the file cannot be written.
    pub(super) async fn start(choice: &Choice, server: &Called<'_>, data: &Path) -> Result<Self, Failure> {
        let (mut summaries, mut fakes) = (Vec::new(), Vec::new());
        for &(channel, provider) in &choice.0 {
            let mut fake = Fake::start(channel, provider)
                .await
                .map_err(|error| Failure::unreachable(format!("cannot start a fake {provider}"), &error))?;
            let mut input = ChannelInput::new(provider);
            input.config = Some(std::mem::take(&mut fake.config));
            let path = ChannelPath { workspace_id: server.workspace, channel };
            let caller = Caller::Operator(Some(server.workspace));
            // Before the channel is set, because a provider may call as soon as it knows the callback URL.
            for peer in &fake.servers {
                peer.call_straight(server.public_url, server.address);
            }
            let set = server.app.run(SetChannel).path(path).body(input).by(&caller).await;
            let shown = set.map_err(|error| target::refused(server.app, error))?;
            let callback = shown.callback_url.as_deref();
            fake.callback_url = callback.map(ToOwned::to_owned);
            let inbound = callback.zip(fake.servers.first()).map(|(url, peer)| {
                peer.set_inbound_url(url);
                peer.inbound_console()
            });
            let (url, recipients) = (fake.url.clone(), fake.recipients.clone());
            summaries.push(FakeSummary { channel, provider, url, recipients, inbound });
            fakes.push(fake);
        }
        let file = data.join(FILE);
        dev_file::write(&file, &summaries)
            .map_err(|error| Failure::unreachable(format!("cannot write {}", file.display()), &error))?;
        Ok(Self { summaries, file, fakes })
    }

    /// Enters our callback URLs at the providers that learn them in a dashboard. These verify a URL by calling it, so
    /// the server must answer requests already.
    pub(super) async fn enter_webhooks(&self) {
        for Fake { callback_url, dashboard, servers, .. } in &self.fakes {
            let (Some(url), Some(api), Some(peer)) = (callback_url, dashboard, servers.first()) else { continue };
            let token = url.rsplit('/').next().unwrap_or_default();
            if !api.enter_webhook(peer, url, token).await {
                crate::output::note("the callback address did not prove itself: a fake provider cannot call back");
            }
        }
    }

    /// Text for the terminal: the providers, and a command to try for each recipient.
    pub(super) fn welcome(&self) -> String {
        let mut text = "The other channels have fake providers; nothing leaves this machine:\n\n".to_owned();
        // Writing to a string cannot fail.
        for FakeSummary { channel, provider, url, .. } in &self.summaries {
            let _ = writeln!(text, "{:<11}{provider:<11}{url}", channel.as_str());
        }
        text.push('\n');
        for FakeSummary { channel, recipients, .. } in &self.summaries {
            for to in recipients {
                let to = if to.contains('"') { format!("'{to}'") } else { to.clone() };
                let _ = writeln!(text, "messaging message send --channel {channel} --to {to} --text Hello");
            }
        }
        let _ = write!(text, "\n{OUTCOMES}");
        let writers = self.summaries.iter().filter_map(|summary| Some((summary, summary.inbound.as_ref()?)));
        for (number, (summary, url)) in writers.enumerate() {
            if number == 0 {
                text.push_str("\nA recipient writes:\n\n");
            }
            let word = match summary.channel {
                Channel::Telegram => "/stop",
                // On Viber an unsubscription is an event, not a message.
                Channel::Viber => "Hello",
                _ => "STOP",
            };
            let body = json!({"from": summary.recipients.first(), "text": word});
            let _ = writeln!(text, "curl {url} -d '{body}'");
        }
        text
    }
}

impl Drop for FakeProviders {
    fn drop(&mut self) {
        // The ports in the file are no longer valid.
        let _ = fs::remove_file(&self.file);
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use messaging_core::domain::channel::provider;

    use super::*;

    #[test]
    fn the_default_of_each_channel_is_that_of_the_contract_and_others_can_be_chosen() {
        let defaults = Choice::parse("").unwrap();
        assert_eq!(defaults.0.len(), Channel::ALL.len() - 1);
        for (channel, chosen) in &defaults.0 {
            assert_eq!(*chosen, provider::default_of(*channel).name);
        }
        for (channel, providers) in KNOWN {
            for name in *providers {
                assert!(provider::find(*channel, name).is_some(), "{channel} {name}");
                let chosen = Choice::parse(&format!("{channel}={name}")).unwrap();
                assert!(chosen.0.contains(&(*channel, name)), "{channel} {name}");
            }
        }
        let chosen = Choice::parse("viber=bot, sms=twilio").unwrap();
        assert!(chosen.0.contains(&(Channel::Viber, "bot")) && chosen.0.contains(&(Channel::Sms, "twilio")));
    }

    #[test]
    fn what_there_is_no_fake_of_is_refused_with_what_there_is() {
        for (text, said) in [
            ("sms", "CHANNEL=PROVIDER"),
            ("email=builtin", "no fake provider of email"),
            ("fax=http", "no fake provider of fax"),
            ("viber=twilio", "only of http, bot"),
            ("sms=twilio,push=", "only of fcm, apns, webpush"),
        ] {
            let error = Choice::parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
