//! Description of a provider: its settings, and whether it calls a callback address.

use serde_json::{Map, Value};

use crate::domain::channel::Channel;

/// Text that stands for a stored secret in answers; sent back, it keeps the secret.
pub const MASK: &str = "***";

/// Name of the email provider that delivers to the recipients' own servers; it needs no settings.
pub const BUILTIN: &str = "builtin";

/// Name of the provider that captures messages instead of sending them.
pub const SANDBOX: &str = "sandbox";

/// Name of the Viber provider that is a bot: its recipients are no phone numbers.
pub const VIBER_BOT: &str = "bot";

/// Marks, in the JSON Schema of a provider's settings, a setting that neither is a secret nor says where secrets go.
pub const DETAIL: &str = "x-detail";

/// Marks, in the JSON Schema of a provider's settings, a provider that calls the callback address of the channel.
pub const CALLBACKS: &str = "x-callbacks";

/// Setting of every provider that bounds how many messages leave over its account in a second.
pub const MAX_RATE: &str = "max_rate";

/// Setting of a push provider that holds other push providers.
pub const ROUTES: &str = "routes";

/// One provider of a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderKind {
    /// Channel of the provider.
    pub channel: Channel,
    /// Name of the provider.
    pub name: String,
    /// Settings of the provider.
    pub members: Vec<Member>,
    /// Use of the channel's callback address.
    pub callbacks: Callbacks,
    /// JSON Schema of the settings, checked in addition to the forms of the members; only for a provider that a program
    /// brings.
    pub(super) schema: Option<Value>,
}

/// Use of the channel's callback address by a provider. A provider that is only given an address with each message does
/// not call it.
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
    /// Name in `config`.
    pub name: String,
    /// True if the setting is required.
    pub required: bool,
    /// Role of the setting: a secret, a destination of secrets, or a detail.
    pub role: Role,
    /// Form of its value, against which it is checked.
    pub form: Form,
    /// True if the server makes the setting itself
    /// ([`Transport::own_settings`](crate::ports::Transport::own_settings)). A secret that it makes is never shown, not
    /// even as `***`.
    pub is_made_by_us: bool,
    /// Value for the provider's transport if the setting is left out.
    pub default: Option<Value>,
    /// Meaning of the setting, in a sentence for people.
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
    /// 1 to this many characters without control characters.
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
    /// A key as PEM text, at most 64 KiB; it may be split over several lines.
    Pem,
    /// A JSON document: a string or an object, at most 64 KiB.
    Document,
    /// Other providers of the channel by name, each with its settings; the recipient's address selects one.
    Routes,
    /// Any value that the provider's own schema allows.
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

/// Allowed ways to secure a connection to a relay.
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

    /// Returns the setting's description in one line: `account_sid (text, required): Your account, AC….`
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
    /// Returns a provider that a program brings, by the JSON Schema of its settings.
    ///
    /// Its properties are the settings. A `writeOnly` property is a secret: a string, stored sealed and shown as `***`.
    /// Any other says where secrets go, so that a stored one is kept only while it is unchanged, unless it is marked
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

    /// Returns a provider without settings.
    pub fn without_settings(channel: Channel, name: &str) -> Self {
        Self { channel, name: name.to_owned(), members: Vec::new(), callbacks: Callbacks::None, schema: None }
    }

    /// Returns the names of the settings that are stored sealed.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|member| member.is_secret()).map(|member| member.name.as_str())
    }

    /// True if the provider's settings may hold other providers under [`ROUTES`].
    pub fn has_routes(&self) -> bool {
        self.members.iter().any(|member| member.form == Form::Routes)
    }

    /// True if two configurations send their secrets to the same place and account.
    pub fn has_same_destination(&self, one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
        let given =
            |config: &Map<String, Value>, name: &str| config.get(name).filter(|value| !value.is_null()).cloned();
        let mut destinations = self.members.iter().filter(|member| member.role == Role::Destination);
        destinations.all(|member| given(one, &member.name) == given(other, &member.name))
    }

    /// Adds the defaults of settings that are left out.
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
