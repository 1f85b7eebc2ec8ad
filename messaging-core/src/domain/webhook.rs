//! Webhooks: who wants to hear of which events, and how they recognize us.
//!
//! Contract section 15. What is sent is in [`payload`], what becomes of an attempt in [`outcome`].

pub mod delivery;
pub mod outcome;
pub mod payload;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::message::EventKind;
use crate::ids::{WebhookId, WorkspaceId};
use crate::time::Timestamp;

/// Webhooks of a workspace. The contract is silent; every event is compared with all of them.
pub const MAX_WEBHOOKS: usize = 200;

/// How long the secret before the last one still signs (contract section 15.2).
pub(crate) const ROTATION: Duration = Duration::from_hours(24);

/// How long a receiver may fail at everything before its webhook is disabled (contract section 15.3).
pub const PATIENCE: Duration = Duration::from_hours(5 * 24);

/// How long deliveries of a paused webhook are held (contract section 15.3).
pub const HELD: Duration = Duration::from_hours(7 * 24);

/// How long deliveries are kept (contract section 15.3), and the log of events.
pub const KEPT: Duration = Duration::from_hours(30 * 24);

macro_rules! event_types {
    ($($name:ident),+) => {
        /// What happened, as webhooks call it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[expect(missing_docs, reason = "the names are those of the contract")]
        pub enum EventType {
            $($name,)+
            Test,
        }

        /// Type of event that a webhook asks for; `*` stands for all types.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[expect(missing_docs, reason = "the names are those of the contract")]
        pub enum Topic {
            $($name,)+
            #[serde(rename = "*")]
            Everything,
        }

        impl EventType {
            /// Every type, in the order of the stored numbers.
            pub const ALL: [Self; 12] = [$(Self::$name,)+ Self::Test];

            /// The type of a message's event; the first, `queued`, has none.
            pub const fn of(kind: EventKind) -> Option<Self> {
                match kind {
                    EventKind::Queued => None,
                    $(EventKind::$name => Some(Self::$name),)+
                }
            }
        }

        impl Topic {
            /// Whether events of a type belong to it.
            pub const fn covers(self, event_type: EventType) -> bool {
                matches!(
                    (self, event_type),
                    $((Self::$name, EventType::$name))|+ | (Self::Everything, _)
                )
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
    /// The text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Disabled => "disabled",
        }
    }
}

/// A URL that is told of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// Workspace that owns the webhook.
    pub workspace_id: WorkspaceId,
    /// URL to which events are sent.
    pub url: String,
    /// Which events.
    pub events: Vec<Topic>,
    /// Status of the webhook: active, paused or disabled.
    pub status: WebhookStatus,
    /// Whether addresses are sent in clear.
    pub pii: bool,
    /// What requests are signed with, sealed.
    pub secret: String,
    /// The secret before it and until when it signs too, sealed.
    pub previous_secret: Option<(String, Timestamp)>,
    /// Whether a job is sending its backlog.
    pub draining: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl Webhook {
    /// Whether events of a type are recorded for it.
    pub fn wants(&self, event_type: EventType) -> bool {
        self.status != WebhookStatus::Disabled && self.events.iter().any(|topic| topic.covers(event_type))
    }

    /// The place of its secret, for the vault.
    pub fn secret_place(&self) -> String {
        format!("webhook/{}/{}/secret", self.workspace_id, self.id)
    }

    /// The sealed secrets that sign at `now`, the newest first.
    pub fn live_secrets(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        let previous = self.previous_secret.as_ref().filter(|(_, until)| now < *until);
        std::iter::once(self.secret.as_str()).chain(previous.map(|(secret, _)| secret.as_str()))
    }

    /// Puts a new secret, sealed, in place of the present one, which signs for some time on.
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
    fn a_topic_covers_its_type_and_everything_all() {
        for event_type in EventType::ALL {
            assert!(Topic::Everything.covers(event_type));
            assert_eq!(Topic::Bounce.covers(event_type), event_type == EventType::Bounce);
        }
    }
}
