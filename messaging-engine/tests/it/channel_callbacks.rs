//! Channels whose providers call back, stand beside others, or have settings that the server makes: contract section
//! 16.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::inbound_message::{InboundEvent, InboundMessage};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::Transport;
use messaging_core::ports::resolver::NoResolver;
use messaging_engine::caller::Caller;
use messaging_engine::ops::{self, Endpoint};
use messaging_engine::{App, Settings};
use messaging_testing::{CallingProvider, MemoryFetch};
use serde_json::{Value, json};

use crate::bed::{Bed, Call, KEY};

struct Channels {
    bed: Bed,
    workspace: WorkspaceId,
    key: Caller,
    provider: Arc<CallingProvider>,
}

/// The providers that the server knows.
const PROVIDERS: [(Channel, &str); 7] = [
    (Channel::Sms, "twilio"),
    (Channel::Sms, "vonage"),
    (Channel::Push, "fcm"),
    (Channel::Push, "apns"),
    (Channel::Push, "webpush"),
    (Channel::Telegram, "bot_api"),
    (Channel::Whatsapp, "cloud_api"),
];

impl Channels {
    async fn start() -> Self {
        let provider = CallingProvider::new();
        let transports =
            PROVIDERS.map(|(channel, name)| (channel, name, Arc::clone(&provider) as Arc<dyn Transport>)).to_vec();
        let bed = Bed::build(Arc::new(NoResolver), Arc::new(MemoryFetch::default()), transports);
        let (bed, workspace, _) = bed.and_owner().await;
        let key = bed.key(workspace, &["*"]).await;
        Self { bed, workspace, key, provider }
    }

    fn path(&self, channel: &str) -> String {
        format!("/workspaces/{}/channels/{channel}", self.workspace)
    }

    async fn set(&self, channel: &str, provider: &str, config: Value) -> Value {
        let body = json!({"provider": provider, "config": config});
        let reply = self.bed.put(&self.key, &self.path(channel), body).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.body
    }

    async fn refused(&self, channel: &str, provider: &str, config: Value) -> String {
        let body = json!({"provider": provider, "config": config});
        self.bed.put(&self.key, &self.path(channel), body).await.summary()
    }

    /// A channel as the API shows it.
    async fn shown(&self, channel: Channel) -> Value {
        let page = self.bed.get(&self.key, &format!("/workspaces/{}/channels", self.workspace)).await;
        page["data"][Channel::ALL.iter().position(|one| *one == channel).unwrap()].clone()
    }

    async fn bot(&self, token: &str) -> Value {
        self.set("telegram", "bot_api", json!({"bot_token": token})).await
    }

    async fn work(&self) {
        self.bed.app.run_until_idle().await.unwrap();
    }

    async fn pass(&self, span: Duration) {
        self.bed.clock.advance(span);
        self.work().await;
    }
}

#[tokio::test]
async fn a_provider_is_told_where_to_call_once_the_settings_are_stored() {
    let channels = Channels::start().await;
    let set = channels.bot("1:a").await;
    assert_eq!(channels.provider.told(), []);
    // As after a crash: another process finds the job.
    channels.bed.another_process().run_until_idle().await.unwrap();
    let other = channels.provider.told();
    assert_eq!(other.len(), 1);
    let channels = Channels::start().await;
    drop(set);
    let set = channels.bot("1:a").await;
    channels.work().await;
    let told = channels.provider.told();
    let url = set["callback_url"].as_str().unwrap();
    assert_eq!((told.len(), told[0].url.as_str()), (1, url));
    assert!(url.starts_with("https://track.service.test/callbacks/telegram/"), "{url}");
    assert!(url.ends_with(&told[0].token) && told[0].secret.len() == 32);
    assert_eq!(channels.shown(Channel::Telegram).await["error"], Value::Null);
    for _ in 0..20 {
        channels.pass(Duration::from_mins(10)).await;
    }
    assert_eq!(channels.provider.told().len(), 1, "it knows");

    // Other settings have another callback address, and the job of the earlier ones ends.
    let set = channels.bot("2:b").await;
    channels.pass(Duration::from_mins(10)).await;
    let told = channels.provider.told();
    assert_eq!((told.len(), told[1].url.as_str()), (2, set["callback_url"].as_str().unwrap()));
    assert_ne!((&told[0].url, &told[0].secret), (&told[1].url, &told[1].secret));
    let jobs = channels.bed.store.job_count().await.unwrap();
    channels.bed.delete(&channels.key, &channels.path("telegram")).await;
    channels.pass(Duration::from_mins(10)).await;
    assert_eq!(channels.bed.store.job_count().await.unwrap(), jobs - 1);
}

#[tokio::test]
async fn a_provider_is_told_again_when_the_server_has_another_address() {
    let channels = Channels::start().await;
    channels.bot("1:a").await;
    channels.work().await;
    let transport = Arc::clone(&channels.provider) as Arc<dyn Transport>;
    let moved = App::builder(Arc::clone(&channels.bed.store), KEY)
        .clock(Arc::clone(&channels.bed.clock) as _)
        .transport(Channel::Telegram, "bot_api", transport)
        .settings(Settings::default().public_url("https://new.service.test"))
        .build()
        .await
        .unwrap();
    channels.bed.clock.advance(Duration::from_mins(10));
    moved.run_until_idle().await.unwrap();
    let told = channels.provider.told();
    assert_eq!(told.len(), 2);
    assert!(told[1].url.starts_with("https://new.service.test/callbacks/telegram/"));
    assert_eq!(told[0].token, told[1].token);
}

#[tokio::test]
async fn a_provider_that_refuses_is_told_again_and_its_words_are_shown() {
    let channels = Channels::start().await;
    channels.provider.refuse(Some("bad webhook: HTTPS url must be provided"));
    channels.bot("1:a").await;
    channels.work().await;
    let shown = channels.shown(Channel::Telegram).await;
    assert_eq!(shown["error"], "bad webhook: HTTPS url must be provided");
    assert_eq!((&shown["status"], &shown["configured"]), (&json!("active"), &json!(true)));
    // Also in a process that did not try.
    let (elsewhere, path) = (channels.bed.another_process(), format!("/workspaces/{}/channels", channels.workspace));
    let page = crate::bed::send(&elsewhere, Call::new(&channels.key, http::Method::GET, &path)).await;
    assert_eq!(page["data"][3]["error"], "bad webhook: HTTPS url must be provided");
    // The failure does not stop sending.
    let test = format!("{}/test", channels.path("telegram"));
    assert_eq!(channels.bed.post(&channels.key, &test, json!({"to": "4711"})).await["ok"], true);
    for (minutes, tries) in [(1, 2), (5, 3), (15, 4), (59, 4), (1, 5)] {
        channels.pass(Duration::from_mins(minutes)).await;
        assert_eq!(channels.provider.told().len(), tries, "{minutes}");
    }
    channels.provider.refuse(None);
    channels.pass(Duration::from_hours(1)).await;
    assert_eq!(channels.shown(Channel::Telegram).await["error"], Value::Null);
}

#[tokio::test]
async fn without_the_secret_that_proves_them_callbacks_are_refused_and_the_channel_says_so() {
    let channels = Channels::start().await;
    let whatsapp = json!({"phone_number_id": "1", "access_token": "t"});
    let vonage = json!({"application_id": "a", "private_key": "k", "sender": "ACME"});
    for (channel, provider, config, secret) in
        [("whatsapp", "cloud_api", whatsapp, "app_secret"), ("sms", "vonage", vonage, "signature_secret")]
    {
        let set = channels.set(channel, provider, config.clone()).await;
        let error = set["error"].as_str().unwrap();
        assert!(error.contains("callbacks are refused") && error.contains(secret), "{error}");
        let mut config = config;
        config[secret] = json!("s");
        let set = channels.set(channel, provider, config).await;
        assert_eq!((&set["error"], set["callback_url"].is_string()), (&Value::Null, true));
    }
}

#[tokio::test]
async fn a_key_pair_is_made_by_us_stays_with_the_provider_and_its_private_half_is_never_shown() {
    let channels = Channels::start().await;
    let subject = |subject: &str| json!({"subject": subject});
    let set = channels.set("push", "webpush", subject("mailto:a@example.com")).await;
    assert_eq!(
        set["config"],
        json!({"subject": "mailto:a@example.com", "public_key": "public 0", "max_rate": null, "routes": null})
    );
    assert_eq!(set["configured"], true);
    let opened = channels.bed.app.provider(channels.workspace, Channel::Push).await.unwrap().unwrap();
    assert_eq!(
        (&opened.settings["public_key"], &opened.settings["private_key"]),
        (&json!("public 0"), &json!("private 0"))
    );
    let stored = channels.bed.store.channel(channels.workspace, Channel::Push).await.unwrap().unwrap().record;
    assert!(!serde_json::to_string(&stored).unwrap().contains("private 0"), "sealed");
    // An answer can be sent back; another key cannot be set.
    let again = channels.set("push", "webpush", set["config"].clone()).await;
    assert_eq!(again["config"], set["config"]);
    let given = json!({"subject": "mailto:a@example.com", "private_key": "mine"});
    assert_eq!(channels.refused("push", "webpush", given).await, "422 /config/private_key not_allowed");
    // Browsers have subscribed under the key: it stays with the provider, also beside another one.
    let beside =
        json!({"project_id": "p", "service_account": "s", "routes": {"webpush": subject("mailto:b@example.com")}});
    let set = channels.set("push", "fcm", beside).await;
    assert_eq!(
        set["config"]["routes"],
        json!({"webpush": {"subject": "mailto:b@example.com", "public_key": "public 0", "max_rate": null}})
    );
    let set = channels.set("push", "webpush", subject("mailto:c@example.com")).await;
    assert_eq!(set["config"]["public_key"], "public 0");
    channels.set("push", "fcm", json!({"project_id": "p", "service_account": "s"})).await;
    let set = channels.set("push", "webpush", subject("mailto:c@example.com")).await;
    assert_ne!(set["config"]["public_key"], "public 0", "it was not there any more");
}

#[tokio::test]
async fn push_providers_stand_side_by_side_each_with_its_secrets_sealed() {
    let channels = Channels::start().await;
    let apns = json!({"team_id": "T", "key_id": "K", "private_key": "apple secret", "topic": "com.acme"});
    let config =
        json!({"project_id": "p", "service_account": "google secret", "routes": {"apns": apns, "webpush": null}});
    let set = channels.set("push", "fcm", config).await;
    let shown = json!({"api_base": null, "team_id": "T", "key_id": "K", "private_key": "***", "topic": "com.acme",
        "environment": null, "max_rate": null});
    assert_eq!(set["config"]["routes"], json!({"apns": shown}));
    assert_eq!(set["configured"], true);
    let stored = channels.bed.store.channel(channels.workspace, Channel::Push).await.unwrap().unwrap().record;
    assert!(!serde_json::to_string(&stored).unwrap().contains("secret\""), "sealed");
    let opened = async || channels.bed.app.provider(channels.workspace, Channel::Push).await.unwrap().unwrap().settings;
    let settings = opened().await;
    assert_eq!(
        (&settings["service_account"], &settings["api_base"]),
        (&json!("google secret"), &json!("https://fcm.googleapis.com"))
    );
    assert_eq!(
        (&settings["routes"]["apns"]["private_key"], &settings["routes"]["apns"]["environment"]),
        (&json!("apple secret"), &json!("production"))
    );

    // An answer can be sent back, and a secret is kept while its part of the settings leads to the same place.
    let again = channels.set("push", "fcm", set["config"].clone()).await;
    assert_eq!(again["config"], set["config"]);
    assert_eq!(opened().await["routes"]["apns"]["private_key"], "apple secret");
    let mut moved = set["config"].clone();
    moved["routes"]["apns"]["api_base"] = json!("https://evil.example.com");
    assert_eq!(channels.refused("push", "fcm", moved).await, "422 /config/routes/apns/private_key required");
    let mut alone = set["config"]["routes"]["apns"].clone();
    assert_eq!(
        channels.refused("push", "apns", alone.clone()).await,
        "422 /config/private_key required",
        "another provider"
    );
    alone["topic"] = json!("com.other");
    alone["team_id"] = Value::Null;
    let config =
        json!({"project_id": "p", "service_account": "***", "routes": {"apns": alone, "fax": {}, "webpush": []}});
    assert_eq!(
        channels.refused("push", "fcm", config).await,
        "422 /config/routes/apns/private_key required /config/routes/apns/team_id required \
         /config/routes/fax unknown_field /config/routes/webpush invalid_type"
    );

    // The provider's own settings may stand among the others; its transport finds them in their usual place.
    let fcm = json!({"project_id": "p", "service_account": "google secret"});
    let both = json!({"project_id": "p", "routes": {"fcm": fcm}});
    assert_eq!(channels.refused("push", "fcm", both).await, "422 /config/routes/fcm conflict");
    let set = channels.set("push", "fcm", json!({"routes": {"fcm": fcm}})).await;
    assert_eq!((&set["configured"], &set["config"]["routes"]["fcm"]["service_account"]), (&json!(true), &json!("***")));
    let settings = opened().await;
    assert_eq!((&settings["service_account"], &settings["routes"]), (&json!("google secret"), &json!({})));
}

#[tokio::test]
async fn a_channel_is_configured_only_with_providers_that_this_server_has() {
    let channels = Channels::start().await;
    let smpp = json!({"host": "smsc.example.com", "port": 2775, "system_id": "a", "password": "b", "sender": "ACME"});
    let set = channels.set("sms", "smpp", smpp).await;
    assert_eq!((&set["configured"], &set["config"]["tls"]), (&json!(false), &Value::Null));
    let set = channels.bot("1:a").await;
    assert_eq!(set["configured"], true);
}

#[tokio::test]
async fn a_test_sends_one_message_of_which_nothing_is_kept() {
    let channels = Channels::start().await;
    channels.set("sms", "twilio", json!({"account_sid": "AC1", "auth_token": "t", "sender": "ACME"})).await;
    let path = format!("{}/test", channels.path("sms"));
    let to = "+14155550123";
    let test = async |body: Value| channels.bed.post(&channels.key, &path, body).await;
    let jobs = channels.bed.store.job_count().await.unwrap();
    assert_eq!(test(json!({"to": to})).await.body, json!({"ok": true, "response": "250 2.0.0 kept"}));
    let sent = channels.provider.take();
    assert_eq!((sent.len(), &sent[0].recipients), (1, &vec![to.to_owned()]));
    // A refusal of any kind is an answer, and does not affect the address.
    channels.provider.answer_next(to, "550 5.1.1 no such user");
    let refused = test(json!({"to": to})).await;
    assert_eq!((refused.summary().as_str(), &refused["ok"]), ("200", &json!(false)));
    assert!(refused["response"].as_str().unwrap().contains("no such user"), "{}", refused.body);
    let messages = channels.bed.get(&channels.key, "/messages").await;
    assert_eq!(messages["data"], json!([]));
    assert_eq!(channels.bed.store.job_count().await.unwrap(), jobs);
    let listed = channels.bed.store.suppressed(channels.workspace, Channel::Sms, &[to.to_owned()]).await.unwrap();
    assert!(listed.is_empty());

    // A repeated request with the same key gets the first answer and sends no second message.
    channels.provider.take();
    let body = json!({"to": to});
    for _ in 0..2 {
        let call = Call::new(&channels.key, http::Method::POST, &path).body(&body).key("once");
        assert_eq!(channels.bed.call(call).await["ok"], true);
    }
    assert_eq!(channels.provider.take().len(), 1);

    // A contact who opted out is not sent a test either.
    let stop = InboundMessage {
        workspace_id: channels.workspace,
        channel: Channel::Sms,
        from: to.to_owned(),
        event: InboundEvent::Text("STOP".to_owned()),
    };
    channels.bed.app.receive_message(&stop).await.unwrap();
    assert_eq!(test(json!({"to": to})).await["ok"], false);
    assert_eq!(channels.provider.take().len(), 0);
    assert_eq!(test(json!({"to": "4711"})).await.summary(), "422 /to invalid_format");
    assert_eq!(test(json!({})).await.summary(), "422 /to required");
    let viber = format!("{}/test", channels.path("viber"));
    let refused = channels.bed.post(&channels.key, &viber, json!({"to": "user-of-a-bot"})).await;
    assert_eq!(refused.summary(), "422 /to invalid_format", "a business sends to phone numbers");
    assert_eq!(
        channels.bed.post(&channels.key, &viber, json!({"to": to})).await.summary(),
        "422 channel_not_configured"
    );
}

#[tokio::test]
async fn a_transport_is_told_once_who_hears_it_and_does_not_keep_the_application() {
    let channels = Channels::start().await;
    let sinks = channels.provider.sinks();
    assert_eq!(sinks.len(), 1, "however many providers it carries");
    let stop = InboundMessage {
        workspace_id: channels.workspace,
        channel: Channel::Sms,
        from: "+14155550123".to_owned(),
        event: InboundEvent::Text("STOP".to_owned()),
    };
    sinks[0].upgrade().unwrap().receive_message(&stop).await.unwrap();
    let listed = [stop.from.clone()];
    let listed = channels.bed.store.suppressed(channels.workspace, Channel::Sms, &listed).await.unwrap();
    assert_eq!(listed.len(), 1);
    drop(channels);
    // Background tasks that write something end by themselves.
    let gone = async {
        while sinks[0].upgrade().is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("nothing keeps the application");
}

/// Marker in every secret of every provider.
const MARK: &str = "kzqx";

#[tokio::test]
async fn no_answer_has_a_secret_of_a_provider() {
    let channels = Channels::start().await;
    let mut bodies = String::new();
    for kind in messaging_core::domain::channel::provider::all() {
        let value = |member: &messaging_core::domain::channel::provider::Member| match member.name.as_str() {
            "port" => json!(25),
            "max_rate" => json!(10),
            "tls" | "environment" | "routes" => Value::Null,
            "api_base" => json!("https://api.example.com"),
            "host" => json!("host.example.com"),
            "subject" => json!("mailto:a@example.com"),
            _ if member.is_secret() => json!(MARK),
            _ => json!("ACME"),
        };
        let given = kind.members.iter().filter(|member| !member.is_made_by_us);
        let config: Value = given.map(|member| (member.name.clone(), value(member))).collect();
        let path = channels.path(kind.channel.as_str());
        let body = json!({"provider": kind.name, "config": config});
        let set = channels.bed.put(&channels.key, &path, body.clone()).await;
        assert_eq!(set.status, 200, "{} {}", kind.channel, kind.name);
        bodies.push_str(&set.body.to_string());
        // A refusal does not show the secret either.
        let mut wrong = body;
        wrong["config"]["wrong"] = json!(true);
        bodies.push_str(&channels.bed.put(&channels.key, &path, wrong).await.body.to_string());
        bodies.push_str(&channels.shown(kind.channel).await.to_string());
        channels.work().await;
        let opened = channels.bed.app.provider(channels.workspace, kind.channel).await.unwrap().unwrap();
        for secret in kind.members.iter().filter(|member| member.is_secret() && !member.is_made_by_us) {
            assert_eq!(opened.settings[&secret.name], MARK, "{} {}", kind.name, secret.name);
        }
    }
    let gets = ops::all().iter().filter(|endpoint: &&Endpoint| (endpoint.method)() == http::Method::GET);
    for endpoint in gets.filter(|endpoint| endpoint.path.matches('{').count() <= 1) {
        let target = endpoint.path.replace("{workspace_id}", &channels.workspace.to_string());
        if !target.contains('{') {
            bodies.push_str(&channels.bed.get(&channels.key, &target).await.body.to_string());
        }
    }
    assert!(bodies.contains("***"));
    for secret in [MARK, "sealed:", "private 0"] {
        assert!(!bodies.contains(secret), "{secret}");
    }
}
