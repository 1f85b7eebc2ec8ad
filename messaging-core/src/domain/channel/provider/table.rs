//! The table of providers.
//!
//! Contract section 16. What a setting means is read by people: the OpenAPI document, the help of the command and errors
//! have it.

use std::sync::LazyLock;

use super::kind::{BUILTIN, Callbacks, Form, MAX_RATE, Member, ProviderKind, ROUTES, Role, SANDBOX, VIBER_BOT};
use crate::domain::channel::Channel;

/// Every provider of every channel; the first of a channel is its default.
static PROVIDERS: LazyLock<Vec<ProviderKind>> = LazyLock::new(|| {
    let channels = [email(), sms(), push(), telegram(), whatsapp(), viber()];
    let sandbox = |channel| provider(channel, SANDBOX, vec![]);
    let in_channel = |(channel, kinds): (Channel, Vec<ProviderKind>)| kinds.into_iter().chain([sandbox(channel)]);
    Channel::ALL.into_iter().zip(channels).flat_map(in_channel).collect()
});

/// Every provider, by channel; the first of a channel is its default.
pub fn all() -> &'static [ProviderKind] {
    &PROVIDERS
}

/// A provider by name.
pub fn find(channel: Channel, name: &str) -> Option<&'static ProviderKind> {
    PROVIDERS.iter().find(|kind| kind.channel == channel && kind.name == name)
}

/// The provider that a channel without settings shows.
pub fn default_of(channel: Channel) -> &'static ProviderKind {
    PROVIDERS.iter().find(|kind| kind.channel == channel).expect("every channel has a provider")
}

fn email() -> Vec<ProviderKind> {
    let tls = "How the connection is secured; starttls unless told otherwise, on port 465 tls.";
    vec![
        provider(Channel::Email, BUILTIN, vec![]),
        provider(
            Channel::Email,
            "smtp",
            vec![
                destination("host", Form::Host, "The relay that mail is handed to.").required(),
                destination("port", Form::Port, "Its port, mostly 587 or 465.").required(),
                destination("username", Form::Text, "The name that we log in with; without one we do not log in."),
                secret("password", Form::Text, "The password of that name."),
                destination("tls", Form::Tls, tls),
                max_rate(),
            ],
        ),
    ]
}

fn sms() -> Vec<ProviderKind> {
    let channel = Channel::Sms;
    let twilio = vec![
        api_base("https://api.twilio.com"),
        destination("account_sid", Form::Text, "Your account, AC….").required(),
        secret("auth_token", Form::Text, "The account's auth token; it also proves what Twilio calls back with.")
            .required(),
        sms_sender("The number or name that messages come from, or a messaging service, MG…."),
        max_rate(),
    ];
    let vonage = vec![
        api_base("https://api.nexmo.com"),
        destination("application_id", Form::Text, "The application that may send messages.").required(),
        secret("private_key", Form::Pem, "The application's private key, PEM.").required(),
        sms_sender("The number or name that messages come from."),
        secret(
            "signature_secret",
            Form::Text,
            "The secret that callbacks are signed with; without it none of them is believed.",
        ),
        max_rate(),
    ];
    let smpp = vec![
        destination("host", Form::Host, "The message center.").required(),
        destination("port", Form::Port, "Its port, mostly 2775, with TLS 3550.").required(),
        destination("system_id", Form::Text, "The name that we bind with.").required(),
        secret("password", Form::Text, "The password of that name.").required(),
        sms_sender("The number or name that messages come from."),
        destination("tls", Form::Flag, "Whether the connection is secured from its first byte.").or(false),
        max_rate(),
    ];
    vec![
        own_gateway(channel),
        calling(Callbacks::Proved, provider(channel, "twilio", twilio)),
        calling(Callbacks::ProvedBy("signature_secret"), provider(channel, "vonage", vonage)),
        provider(channel, "smpp", smpp),
    ]
}

fn push() -> Vec<ProviderKind> {
    let channel = Channel::Push;
    let fcm = vec![
        api_base("https://fcm.googleapis.com"),
        destination("project_id", Form::Text, "The Firebase project.").required(),
        secret("service_account", Form::Document, "The JSON key of a service account that may send messages.")
            .required(),
        max_rate(),
        routes(),
    ];
    let api_base = "Where requests go; left out, Apple's server of the environment.";
    let apns = vec![
        destination("api_base", Form::Url, api_base),
        destination("team_id", Form::Text, "The developer team that the key belongs to.").required(),
        destination("key_id", Form::Text, "The name of the key.").required(),
        secret("private_key", Form::Pem, "The key, the text of the .p8 file.").required(),
        detail("topic", Form::Text, "The bundle id of the app.").required(),
        detail(
            "environment",
            Form::OneOf(&["production", "development"]),
            "Which of Apple's servers the device tokens are for.",
        )
        .or("production"),
        max_rate(),
        routes(),
    ];
    let webpush = vec![
        detail("subject", Form::ContactUri, "Where the push services of browsers reach you.").required(),
        detail("public_key", Form::Text, "The public key that browsers subscribe with (applicationServerKey).")
            .made_by_us(),
        secret("private_key", Form::Text, "The private key of that pair.").made_by_us(),
        max_rate(),
        routes(),
    ];
    vec![provider(channel, "fcm", fcm), provider(channel, "apns", apns), provider(channel, "webpush", webpush)]
}

fn telegram() -> Vec<ProviderKind> {
    let bot_token = "The token that BotFather gave you.";
    let members = vec![
        api_base("https://api.telegram.org"),
        secret("bot_token", Form::Text, bot_token).required(),
        // Of a bot ("My bot is hitting limits"); paid broadcasts may have more.
        max_rate().or(30),
    ];
    vec![calling(Callbacks::Proved, provider(Channel::Telegram, "bot_api", members))]
}

fn whatsapp() -> Vec<ProviderKind> {
    let app_secret = "The secret of the Meta app; without it callbacks are not believed.";
    let members = vec![
        api_base("https://graph.facebook.com/v26.0"),
        destination("phone_number_id", Form::Text, "The id of the number that messages come from.").required(),
        secret("access_token", Form::Text, "The access token of a system user.").required(),
        secret("app_secret", Form::Text, app_secret),
        // Of a phone number ("Throughput"); more on request.
        max_rate().or(80),
    ];
    vec![calling(Callbacks::ProvedBy("app_secret"), provider(Channel::Whatsapp, "cloud_api", members))]
}

fn viber() -> Vec<ProviderKind> {
    let bot = vec![
        api_base("https://chatapi.viber.com/pa"),
        secret("auth_token", Form::Text, "The token of the bot; it also proves what Viber calls back with.").required(),
        detail("sender", Form::TextUpTo(28), "The name that messages come from.").required(),
        max_rate(),
    ];
    vec![own_gateway(Channel::Viber), calling(Callbacks::Proved, provider(Channel::Viber, VIBER_BOT, bot))]
}

/// A gateway of one's own or of a partner, which takes JSON.
fn own_gateway(channel: Channel) -> ProviderKind {
    let members = vec![
        destination("api_base", Form::Url, "Where messages are posted.").required(),
        detail("sender", Form::Text, "The number or name that messages come from.").required(),
        secret("token", Form::Text, "Sent along as a bearer token."),
        max_rate(),
    ];
    provider(channel, "http", members)
}

fn provider(channel: Channel, name: &str, members: Vec<Member>) -> ProviderKind {
    ProviderKind { members, ..ProviderKind::without_settings(channel, name) }
}

fn calling(callbacks: Callbacks, kind: ProviderKind) -> ProviderKind {
    ProviderKind { callbacks, ..kind }
}

fn member(name: &str, role: Role, form: Form, meaning: &str) -> Member {
    let meaning = meaning.to_owned();
    Member { name: name.to_owned(), required: false, role, form, is_made_by_us: false, default: None, meaning }
}

fn secret(name: &str, form: Form, meaning: &str) -> Member {
    member(name, Role::Secret, form, meaning)
}

fn destination(name: &str, form: Form, meaning: &str) -> Member {
    member(name, Role::Destination, form, meaning)
}

fn detail(name: &str, form: Form, meaning: &str) -> Member {
    member(name, Role::Detail, form, meaning)
}

fn api_base(default: &str) -> Member {
    destination("api_base", Form::Url, "Where requests go.").or(default)
}

fn sms_sender(meaning: &str) -> Member {
    detail("sender", Form::SmsSender, meaning).required()
}

fn max_rate() -> Member {
    let meaning = "The most messages that leave over the account in a second; slower than this it finds by itself.";
    detail(MAX_RATE, Form::Rate, meaning)
}

fn routes() -> Member {
    let meaning =
        "Settings of fcm, apns and webpush by name, to use several at once: the recipient's address tells which.";
    detail(ROUTES, Form::Routes, meaning)
}

impl Member {
    fn required(self) -> Self {
        Self { required: true, ..self }
    }

    fn made_by_us(self) -> Self {
        Self { is_made_by_us: true, ..self }
    }

    fn or(self, default: impl Into<serde_json::Value>) -> Self {
        Self { default: Some(default.into()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second table of contract section 16.
    #[test]
    fn the_providers_of_the_contract_take_the_settings_of_the_contract() {
        let shown: Vec<_> = all()
            .iter()
            .map(|kind| {
                let members: Vec<_> = kind
                    .members
                    .iter()
                    .map(|one| format!("{}{}", one.name, if one.required { " R" } else { "" }))
                    .collect();
                format!("{} {}: {}", kind.channel, kind.name, members.join(", "))
            })
            .collect();
        assert_eq!(
            shown,
            [
                "email builtin: ",
                "email smtp: host R, port R, username, password, tls, max_rate",
                "email sandbox: ",
                "sms http: api_base R, sender R, token, max_rate",
                "sms twilio: api_base, account_sid R, auth_token R, sender R, max_rate",
                "sms vonage: api_base, application_id R, private_key R, sender R, signature_secret, max_rate",
                "sms smpp: host R, port R, system_id R, password R, sender R, tls, max_rate",
                "sms sandbox: ",
                "push fcm: api_base, project_id R, service_account R, max_rate, routes",
                "push apns: api_base, team_id R, key_id R, private_key R, topic R, environment, max_rate, routes",
                "push webpush: subject R, public_key, private_key, max_rate, routes",
                "push sandbox: ",
                "telegram bot_api: api_base, bot_token R, max_rate",
                "telegram sandbox: ",
                "whatsapp cloud_api: api_base, phone_number_id R, access_token R, app_secret, max_rate",
                "whatsapp sandbox: ",
                "viber http: api_base R, sender R, token, max_rate",
                "viber bot: api_base, auth_token R, sender R, max_rate",
                "viber sandbox: ",
            ]
        );
    }

    #[test]
    fn whatever_leads_a_secret_elsewhere_is_a_destination() {
        let details = ["sender", "topic", "environment", "subject", "public_key", MAX_RATE, ROUTES];
        for kind in all() {
            for member in &kind.members {
                let expected = details.contains(&member.name.as_str());
                assert_eq!(member.role == Role::Detail, expected, "{} {} {}", kind.channel, kind.name, member.name);
                assert!(member.meaning.ends_with('.'), "{} {} has no sentence", kind.name, member.name);
            }
        }
    }

    #[test]
    fn a_setting_that_proves_callbacks_is_a_secret_of_its_provider() {
        for kind in all() {
            if let Callbacks::ProvedBy(name) = kind.callbacks {
                assert!(kind.secrets().any(|secret| secret == name), "{} {name}", kind.name);
            }
        }
    }
}
