//! Webhooks: URLs to which events are sent, and the secrets that sign the requests.
//!
//! Contract section 15. The body of a request is in [`payload`], the consequence of an attempt in [`outcome`].

pub mod delivery;
pub mod outcome;
pub mod payload;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::message::EventKind;
use crate::ids::{WebhookId, WorkspaceId};
use crate::time::Timestamp;

/// The most webhooks of a workspace. The contract sets no limit; there is one because every event is compared with all
/// of them.
pub const MAX_WEBHOOKS: usize = 200;

/// Time for which the previous secret still signs after a new one has taken its place (contract section 15.2).
pub(crate) const ROTATION: Duration = Duration::from_hours(24);

/// Time after which a webhook is disabled whose receiver fails at everything (contract section 15.3).
pub const DISABLE_AFTER: Duration = Duration::from_hours(5 * 24);

/// Time for which deliveries of a paused webhook are held before they expire (contract section 15.3).
pub const MAX_HOLD: Duration = Duration::from_hours(7 * 24);

/// Time for which deliveries (contract section 15.3) and the log of events are kept.
pub const RETENTION: Duration = Duration::from_hours(30 * 24);

macro_rules! event_types {
    ($($name:ident),+) => {
        /// Type of an event, as webhooks name it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[expect(missing_docs, reason = "the names are those of the contract")]
        pub enum EventType {
            $($name,)+
            Test,
            #[serde(rename = "audit.recorded")]
            AuditRecorded,
            #[serde(rename = "api_key.expiring")]
            KeyExpiring,
        }

        /// Type of event that a webhook asks for; `*` stands for all types of events of messages.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[expect(missing_docs, reason = "the names are those of the contract")]
        pub enum Topic {
            $($name,)+
            #[serde(rename = "audit.recorded")]
            AuditRecorded,
            #[serde(rename = "api_key.expiring")]
            KeyExpiring,
            #[serde(rename = "*")]
            Everything,
        }

        impl EventType {
            /// Every type, in the order of the stored numbers.
            pub const ALL: [Self; 14] = [$(Self::$name,)+ Self::Test, Self::AuditRecorded, Self::KeyExpiring];

            /// True for events of a workspace that are no events of messages: webhooks only get them if they name them,
            /// which requires the rights of an admin.
            pub const fn is_administrative(self) -> bool {
                matches!(self, Self::AuditRecorded | Self::KeyExpiring)
            }

            /// Returns the type of a message's event; `None` for `queued`, the first, which webhooks do not get.
            pub const fn of(kind: EventKind) -> Option<Self> {
                match kind {
                    EventKind::Queued => None,
                    $(EventKind::$name => Some(Self::$name),)+
                }
            }
        }

        impl Topic {
            /// True for a topic that requires the rights of an admin, see [`EventType::is_administrative`].
            pub const fn is_administrative(self) -> bool {
                matches!(self, Self::AuditRecorded | Self::KeyExpiring)
            }

            /// True if a webhook with this topic asks for events of a type.
            pub const fn covers(self, event_type: EventType) -> bool {
                match (self, event_type) {
                    (Self::AuditRecorded, EventType::AuditRecorded) | (Self::KeyExpiring, EventType::KeyExpiring) => true,
                    (_, event_type) if event_type.is_administrative() => false,
                    $((Self::$name, EventType::$name))|+ | (Self::Everything, _) => true,
                    _ => false,
                }
            }
        }
    };
}

event_types!(Sent, Delivered, Deferred, Bounce, Complaint, Open, Click, Unsubscribe, Failed, Suppressed, Cancelled);

/// Status of a webhook, which says whether it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookStatus {
    /// Events are sent.
    Active,
    /// Events are held until it is resumed.
    Paused,
    /// Events are not recorded; its receiver said that it is gone, or failed for days.
    Disabled,
}

impl WebhookStatus {
    /// Returns the text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Disabled => "disabled",
        }
    }
}

/// A URL to which events are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// Workspace that owns the webhook.
    pub workspace_id: WorkspaceId,
    /// URL to which events are sent.
    pub url: String,
    /// Topics of the events that it asks for.
    pub events: Vec<Topic>,
    /// Status of the webhook: active, paused or disabled.
    pub status: WebhookStatus,
    /// True if addresses are sent in clear, false if they are masked.
    pub pii: bool,
    /// Secret that requests are signed with, sealed.
    pub secret: String,
    /// The secret before it, sealed, and the time until which it signs as well.
    pub previous_secret: Option<(String, Timestamp)>,
    /// True while a job sends its backlog: there is at most one such job.
    pub draining: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl Webhook {
    /// True if events of a type are recorded for it: it asks for them and is not disabled.
    pub fn wants(&self, event_type: EventType) -> bool {
        self.status != WebhookStatus::Disabled && self.events.iter().any(|topic| topic.covers(event_type))
    }

    /// The place that its secrets are sealed for: a vault opens them for no other.
    pub fn secret_place(&self) -> String {
        format!("webhook/{}/{}/secret", self.workspace_id, self.id)
    }

    /// Returns the sealed secrets that sign at `now`, the newest first.
    pub fn live_secrets(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        let previous = self.previous_secret.as_ref().filter(|(_, until)| now < *until);
        std::iter::once(self.secret.as_str()).chain(previous.map(|(secret, _)| secret.as_str()))
    }

    /// Replaces the present secret by a new one, sealed; the replaced one still signs for 24 hours, and the one before
    /// it no more.
    pub fn rotate(&mut self, secret: String, now: Timestamp) {
        let old = std::mem::replace(&mut self.secret, secret);
        self.previous_secret = Some((old, now + ROTATION));
        self.updated_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_but_the_first_has_a_type_of_its_name() {
        for kind in EventKind::ALL {
            let name = serde_json::to_value(kind).unwrap();
            match EventType::of(kind) {
                Some(event_type) => assert_eq!(serde_json::to_value(event_type).unwrap(), name),
                None => assert_eq!(kind, EventKind::Queued),
            }
        }
    }

    #[test]
    fn a_topic_covers_its_type_and_everything_all_of_messages() {
        for event_type in EventType::ALL {
            assert_eq!(Topic::Everything.covers(event_type), !event_type.is_administrative());
            assert_eq!(Topic::AuditRecorded.covers(event_type), event_type == EventType::AuditRecorded);
            assert_eq!(Topic::KeyExpiring.covers(event_type), event_type == EventType::KeyExpiring);
            assert_eq!(Topic::Bounce.covers(event_type), event_type == EventType::Bounce);
        }
    }
}
