//! Visits of tracking links: what is recorded of them.
//!
//! Contract sections 4.2 (`open`, `click`) and 18. A visit changes nothing but the list of events. Of a message
//! whose recipient was erased it is counted, and nothing about the visitor is kept.

use std::net::IpAddr;

use messaging_core::domain::bot_detection::{self, Signs};
use messaging_core::domain::contact::erasure;
use messaging_core::domain::link_token::{Link, UrlKey};
use messaging_core::domain::message::{EventKind, MessageEvent};
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::error::Error;

/// Opens recorded per message, and as many clicks: a program that goes in circles must not fill the disk,
/// nor must its opens leave no room for clicks.
const MAX_OF_A_KIND: usize = 500;

/// Characters of a user agent that are kept.
const MAX_USER_AGENT: usize = 512;

/// Deliveries of a message that a click is compared with: as many as it can have recipients.
const MAX_DELIVERIES: usize = 128;

/// Who visits a link.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// Where from.
    pub ip: IpAddr,
    /// The `User-Agent` header.
    pub user_agent: Option<String>,
    /// Whether only the head of the answer was asked for.
    pub is_head: bool,
    /// Whether a header says that nobody asked for this yet; see
    /// [`announces_prefetch`](messaging_core::domain::bot_detection::announces_prefetch).
    pub is_prefetch: bool,
}

/// A redirected link that was followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Click {
    /// Workspace of the message.
    pub workspace: WorkspaceId,
    /// The message it stands in.
    pub message: MessageId,
    /// The target's key.
    pub key: UrlKey,
    /// The target.
    pub url: String,
}

impl App {
    /// Where the link of a token leads; `None` when it is none of ours.
    pub async fn click(&self, token: &str) -> Result<Option<Click>, StoreError> {
        let Some((workspace, message, Link::Click(key))) = self.link_key().read_link(token) else { return Ok(None) };
        let url = self.store().url(workspace, key).await?;
        Ok(url.map(|url| Click { workspace, message, key, url }))
    }

    /// Records that the pixel of a message was loaded.
    pub async fn record_open(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        visitor: &Visitor,
    ) -> Result<(), Error> {
        let is_machine = bot_detection::shows_itself(visitor.signs());
        let known = self.events_of(workspace, message, EventKind::Open).await?.len();
        self.record(workspace, message, (EventKind::Open, known), visitor.meta(None, is_machine)).await
    }

    /// Records that a link was followed.
    pub async fn record_click(&self, click: &Click, visitor: &Visitor) -> Result<(), Error> {
        let Click { workspace, message, key, url } = click;
        let now = self.now();
        // Noted before anything is waited for: the clicks of a burst come at once.
        let seen_here = self.recent_clicks(|clicks| clicks.note(*message, *key, now));
        // What other processes saw, and this one before it started.
        let known = self.events_of(*workspace, *message, EventKind::Click).await?;
        let stored = known.iter().filter_map(|click| Some((click.at, UrlKey::of(click.meta.get("url")?.as_str()?))));
        let is_machine = bot_detection::is_burst(now, seen_here.into_iter().chain(stored))
            || bot_detection::shows_itself(visitor.signs())
            || bot_detection::is_hasty(now, self.deliveries(*workspace, *message).await?);
        self.record(*workspace, *message, (EventKind::Click, known.len()), visitor.meta(Some(url), is_machine)).await
    }

    /// When a message was delivered, or handed to a relay.
    async fn deliveries(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
    ) -> Result<Vec<messaging_core::time::Timestamp>, StoreError> {
        let store = self.store();
        let mut events = store.message_events_of_kind(workspace, message, EventKind::Sent, MAX_DELIVERIES).await?;
        events.extend(store.message_events_of_kind(workspace, message, EventKind::Delivered, MAX_DELIVERIES).await?);
        Ok(events.into_iter().map(|event| event.at).collect())
    }

    /// The events of one kind that are recorded of a message.
    async fn events_of(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        kind: EventKind,
    ) -> Result<Vec<MessageEvent>, StoreError> {
        self.store().message_events_of_kind(workspace, message, kind, MAX_OF_A_KIND).await
    }

    /// Records a visit, unless as many of its kind as are `known` are enough.
    async fn record(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        (kind, known): (EventKind, usize),
        mut meta: Map<String, Value>,
    ) -> Result<(), Error> {
        if known >= MAX_OF_A_KIND {
            return Ok(());
        }
        let Some(visited) = self.store().message(workspace, message).await? else { return Ok(()) };
        if visited.is_redacted() {
            erasure::forget_visitor(&mut meta);
        }
        let writes = self.append_events(workspace, message, [(kind, meta)]).await?;
        self.commit(writes.into_iter().collect()).await.map_err(Error::internal)
    }
}

impl Visitor {
    fn signs(&self) -> Signs<'_> {
        Signs {
            is_head: self.is_head,
            user_agent: self.user_agent.as_deref().unwrap_or_default(),
            is_prefetch: self.is_prefetch,
        }
    }

    fn meta(&self, url: Option<&str>, is_machine: bool) -> Map<String, Value> {
        let agent = self.user_agent.as_deref().map(|text| text.chars().take(MAX_USER_AGENT).collect::<String>());
        let visitor =
            [("ip", json!(self.ip.to_string())), ("user_agent", json!(agent)), ("machine", json!(is_machine))];
        let url = url.map(|url| ("url", json!(url)));
        url.into_iter().chain(visitor).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
