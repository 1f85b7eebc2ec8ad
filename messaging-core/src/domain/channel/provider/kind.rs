//! What is known of a provider: its settings, and whether it is given an address to call.

use serde_json::{Map, Value};

use crate::domain::channel::Channel;

/// The text that stands for a stored secret in answers, and keeps it when it is sent back.
pub const MASK: &str = "***";

/// The provider of email that delivers to the recipients' own servers; it needs no settings.
pub const BUILTIN: &str = "builtin";

/// The provider that captures messages instead of sending them.
pub const SANDBOX: &str = "sandbox";

/// The provider of Viber that is a bot: its recipients are no phone numbers.
pub const VIBER_BOT: &str = "bot";

/// Marks, in the JSON Schema of a provider's settings, one that neither is a secret nor says where secrets go.
pub const DETAIL: &str = "x-detail";

/// Marks, in the JSON Schema of a provider's settings, a provider that calls the callback address of the channel.
pub const CALLBACKS: &str = "x-callbacks";

/// The setting of every provider that bounds how many messages leave over its account in a second.
pub const MAX_RATE: &str = "max_rate";

/// The setting of a push provider under which other push providers stand.
pub const ROUTES: &str = "routes";

/// One provider of a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderKind {
    /// The channel.
    pub channel: Channel,
    /// The name.
    pub name: String,
    /// Its settings.
    pub members: Vec<Member>,
    /// Whether it calls the callback address of the channel.
    pub callbacks: Callbacks,
    /// What its settings are checked against, besides the forms of the members: of a provider that a program brings.
    pub(super) schema: Option<Value>,
}

/// Whether a provider calls the callback address of the channel. One that is given an address with each message alone
/// does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callbacks {
    /// The provider does not call it.
    None,
    /// The provider calls it, with a proof that its settings always contain.
    Proved,
    /// The provider calls it, and its calls are trusted only if this setting is given.
    ProvedBy(&'static str),
}

/// One setting of a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The name in `config`.
    pub name: String,
    /// True if the setting is required.
    pub required: bool,
    /// Role of the setting: a secret, a destination of secrets, or a detail.
    pub role: Role,
    /// Form of its value, against which it is checked.
    pub form: Form,
    /// Whether we make it ourselves ([`Transport::own_settings`](crate::ports::Transport::own_settings)). A secret that
    /// we make is never shown, not even as `***`.
    pub is_made_by_us: bool,
    /// What the provider's transport is given where it is left out.
    pub default: Option<Value>,
    /// What it is, in a sentence for people.
    pub meaning: String,
}

/// Role of a setting, which decides how it is stored and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Stored sealed, shown as `***`.
    Secret,
    /// Says where the secrets go or to which account they belong: a stored secret is only kept while it is
    /// unchanged, so that nobody can have a secret sent to a host of their own without knowing it.
    Destination,
    /// Anything else, such as the sender's name.
    Detail,
}

/// Form of a setting's value: its type and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// 1 to 4096 characters without control characters.
    Text,
    /// 1 to so many characters without control characters.
    TextUpTo(usize),
    /// The sender of text messages: a number, a short code, up to 11 letters and digits, or a service (`MG…`).
    SmsSender,
    /// A host name or address.
    Host,
    /// 1 to 65535.
    Port,
    /// A number greater than 0.
    Rate,
    /// An absolute http or https URL.
    Url,
    /// A `mailto:` or `https:` URI at which people are reached (RFC 8292 section 2.1).
    ContactUri,
    /// `starttls`, `tls` or `none`.
    Tls,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// True or false.
    Flag,
    /// A key as PEM text, at most 64 KiB; lines may be parted.
    Pem,
    /// A JSON document: a string or an object, at most 64 KiB.
    Document,
    /// Other providers of the channel by name, each with its settings; the recipient's address tells which one is meant.
    Routes,
    /// What the provider's own schema says.
    BySchema,
}

impl Form {
    /// Description of the values in words, such as `host name or address`.
    pub fn words(self) -> String {
        match self {
            Self::Text | Self::TextUpTo(_) | Self::SmsSender | Self::Pem | Self::BySchema => "text".to_owned(),
            Self::Host => "host name or address".to_owned(),
            Self::Port => "number from 1 to 65535".to_owned(),
            Self::Rate => "number greater than 0".to_owned(),
            Self::Url => "http or https URL".to_owned(),
            Self::ContactUri => "mailto: or https: URI".to_owned(),
            Self::Tls => TLS.join(" | "),
            Self::OneOf(words) => words.join(" | "),
            Self::Flag => "true | false".to_owned(),
            Self::Document => "JSON object or its text".to_owned(),
            Self::Routes => "object".to_owned(),
        }
    }
}

/// How a connection to a relay may be secured.
pub(super) const TLS: &[&str] = &["starttls", "tls", "none"];

impl Member {
    /// True if the setting is a secret, which is stored sealed.
    pub const fn is_secret(&self) -> bool {
        matches!(self.role, Role::Secret)
    }

    /// True if answers show the setting, a secret as `***`; false for secrets that the server makes itself.
    pub const fn is_shown(&self) -> bool {
        !(self.is_made_by_us && self.is_secret())
    }

    /// What it is, in one line: `account_sid (required): Your account, AC….`
    pub fn described(&self) -> String {
        let mut notes = vec![self.form.words()];
        if self.is_made_by_us {
            notes.push("made by us".to_owned());
        } else if self.required {
            notes.push("required".to_owned());
        }
        if self.is_secret() {
            notes.push("secret".to_owned());
        }
        if let Some(default) = &self.default {
            notes.push(format!("default {}", default.as_str().map_or_else(|| default.to_string(), str::to_owned)));
        }
        format!("{} ({}): {}", self.name, notes.join(", "), self.meaning)
    }
}

impl ProviderKind {
    /// A provider that a program brings, by the JSON Schema of its settings.
    ///
    /// Its properties are the settings. What is `writeOnly` is a secret: stored sealed and shown as `***`; it is a string.
    /// Anything else says where secrets go, so that a stored one is kept only while it is unchanged, unless it is marked
    /// with [`DETAIL`]. With [`CALLBACKS`] beside `properties` the channel shows its callback address.
    pub fn from_schema(channel: Channel, name: &str, schema: Value) -> Self {
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let member = |(name, property): (&String, &Value)| Member {
            name: name.clone(),
            required: required.contains(&name.as_str()),
            role: if property["writeOnly"] == true {
                Role::Secret
            } else if property[DETAIL] == true {
                Role::Detail
            } else {
                Role::Destination
            },
            form: Form::BySchema,
            is_made_by_us: false,
            default: property.get("default").cloned(),
            meaning: property["description"].as_str().unwrap_or_default().to_owned(),
        };
        let members: Vec<_> = schema["properties"].as_object().into_iter().flatten().map(member).collect();
        let callbacks = if schema[CALLBACKS] == true { Callbacks::Proved } else { Callbacks::None };
        Self { channel, name: name.to_owned(), members, callbacks, schema: Some(schema) }
    }

    /// A provider without settings.
    pub fn without_settings(channel: Channel, name: &str) -> Self {
        Self { channel, name: name.to_owned(), members: Vec::new(), callbacks: Callbacks::None, schema: None }
    }

    /// The names of the settings that are stored sealed.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|member| member.is_secret()).map(|member| member.name.as_str())
    }

    /// Whether others may stand beside it under [`ROUTES`].
    pub fn has_routes(&self) -> bool {
        self.members.iter().any(|member| member.form == Form::Routes)
    }

    /// Whether two configurations send their secrets to the same place and account.
    pub fn has_same_destination(&self, one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
        let given =
            |config: &Map<String, Value>, name: &str| config.get(name).filter(|value| !value.is_null()).cloned();
        let mut destinations = self.members.iter().filter(|member| member.role == Role::Destination);
        destinations.all(|member| given(one, &member.name) == given(other, &member.name))
    }

    /// Puts in the defaults of settings that are left out.
    pub fn fill_defaults(&self, config: &mut Map<String, Value>) {
        for member in &self.members {
            if let Some(default) = &member.default
                && config.get(&member.name).is_none_or(Value::is_null)
            {
                config.insert(member.name.clone(), default.clone());
            }
        }
    }
}
