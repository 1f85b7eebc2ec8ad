//! Scopes of API keys, roles of members, and access rules of operations.
//!
//! Contract sections 2.1 and 2.3.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

macro_rules! scopes {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// One permission of an API key.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Scope {
            $($(#[$doc])* $name,)*
        }

        impl Scope {
            /// Every scope, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The text form, as in the contract.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

scopes! {
    /// Contacts, lists, segments, custom fields.
    ContactsRead = "contacts:read";
    /// Contacts, lists, segments, custom fields with changes, import and suppressions.
    ContactsWrite = "contacts:write";
    /// Templates, versions, preview.
    TemplatesRead = "templates:read";
    /// Templates with changes and import.
    TemplatesWrite = "templates:write";
    /// Campaigns, stats, audience preview.
    CampaignsRead = "campaigns:read";
    /// Campaigns with changes, schedule, pause, cancel.
    CampaignsWrite = "campaigns:write";
    /// Automations and runs.
    AutomationsRead = "automations:read";
    /// Automations with changes, activate, pause, trigger.
    AutomationsWrite = "automations:write";
    /// Send, read, list and cancel messages.
    MessagesSend = "messages:send";
    /// Read and list messages, without their content.
    MessagesRead = "messages:read";
    /// Ingest product events.
    EventsWrite = "events:write";
    /// Webhooks and their deliveries.
    WebhooksRead = "webhooks:read";
    /// Webhooks with management, test and replay.
    WebhooksWrite = "webhooks:write";
    /// Sending domains and their records.
    DomainsRead = "domains:read";
    /// Sending domains with changes, verification and pools.
    DomainsWrite = "domains:write";
    /// Analytics.
    AnalyticsRead = "analytics:read";
    /// Email and phone in clear.
    PiiRead = "pii:read";
    /// Everything, including channel settings.
    All = "*";
}

impl Scope {
    /// True if a holder of `self` has `wanted`: `*` includes all, `X:write` includes `X:read`, and `messages:send`
    /// includes `messages:read`.
    pub fn covers(self, wanted: Self) -> bool {
        self == Self::All
            || self == wanted
            || (self, wanted) == (Self::MessagesSend, Self::MessagesRead)
            || self
                .as_str()
                .strip_suffix(":write")
                .is_some_and(|subject| wanted.as_str().strip_suffix(":read") == Some(subject))
    }
}

impl Scope {
    /// Returns the scope that a refusal names if this one is missing. Callers compare the text, and reading messages
    /// required `messages:send` before it had a scope of its own.
    pub const fn in_refusal(self) -> Self {
        match self {
            Self::MessagesRead => Self::MessagesSend,
            named => named,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not the name of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown scope")]
pub struct UnknownScope;

impl FromStr for Scope {
    type Err = UnknownScope;
    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::ALL.iter().copied().find(|scope| scope.as_str() == text).ok_or(UnknownScope)
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Scope {
    fn schema_name() -> Cow<'static, str> {
        "Scope".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let texts: Vec<_> = Self::ALL.iter().map(|scope| scope.as_str()).collect();
        json_schema!({"type": "string", "enum": texts})
    }
}

/// Role of a person in a workspace; ordered, each includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Every `:read` except `pii:read`.
    Viewer,
    /// Contacts, templates, campaigns and automations, sending, events, with addresses in clear.
    Editor,
    /// Every scope, keys, members, channels.
    Admin,
    /// The same as an admin; the last owner cannot be removed.
    Owner,
}

impl Role {
    /// True if a session with this role has `wanted`.
    pub fn covers(self, wanted: Scope) -> bool {
        use Scope as S;
        match self {
            Self::Owner | Self::Admin => true,
            Self::Editor => [
                S::ContactsWrite,
                S::TemplatesWrite,
                S::CampaignsWrite,
                S::AutomationsWrite,
                S::MessagesSend,
                S::EventsWrite,
                S::AnalyticsRead,
                S::DomainsRead,
                S::WebhooksRead,
                S::PiiRead,
            ]
            .iter()
            .any(|held| held.covers(wanted)),
            Self::Viewer => wanted.as_str().ends_with(":read") && wanted != S::PiiRead,
        }
    }
}

/// Access rule of an operation; read by the router, the document and the access-matrix test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No credentials.
    Public,
    /// A key or a session, nothing more.
    AnyCredential,
    /// A key with the scope, or a session whose role covers it.
    Scope(Scope),
    /// Both scopes; the first missing one is named.
    Scopes(Scope, Scope),
    /// A session of any role; a key answers `session_required`.
    Session,
    /// A session with at least this role in the workspace of the path; a key answers `session_required`.
    SessionRole(Role),
    /// A session of an operator of the installation; a key answers `session_required`.
    Operator,
    /// A key with `*`, or a session with role admin.
    Administration,
    /// A key with the scope, or a session with role admin.
    ScopeOrAdmin(Scope),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_includes_read_of_the_same_subject_only() {
        assert!(Scope::ContactsWrite.covers(Scope::ContactsRead));
        assert!(!Scope::ContactsRead.covers(Scope::ContactsWrite));
        assert!(!Scope::ContactsWrite.covers(Scope::TemplatesRead));
        assert!(!Scope::EventsWrite.covers(Scope::MessagesSend));
        assert!(Scope::MessagesSend.covers(Scope::MessagesRead));
        assert!(!Scope::MessagesRead.covers(Scope::MessagesSend));
        for scope in Scope::ALL {
            assert!(Scope::All.covers(*scope) && scope.covers(*scope));
            assert_eq!(*scope == Scope::All, scope.covers(Scope::All));
        }
    }

    #[test]
    fn a_viewer_reads_everything_but_addresses() {
        let open: Vec<_> =
            Scope::ALL.iter().filter(|scope| Role::Viewer.covers(**scope)).map(|scope| scope.as_str()).collect();
        assert_eq!(
            open,
            [
                "contacts:read",
                "templates:read",
                "campaigns:read",
                "automations:read",
                "messages:read",
                "webhooks:read",
                "domains:read",
                "analytics:read"
            ]
        );
    }

    #[test]
    fn an_editor_has_no_administration() {
        let closed: Vec<_> =
            Scope::ALL.iter().filter(|scope| !Role::Editor.covers(**scope)).map(|scope| scope.as_str()).collect();
        assert_eq!(closed, ["webhooks:write", "domains:write", "*"]);
    }
}
