//! Visits of tracking links: opens and clicks, as they are recorded.
//!
//! Contract sections 4.2 (`open`, `click`) and 18. A visit adds an event and is counted with it, in one commit; the
//! first of its kind is noted in the message, under its revision, so that of two at once one is the first. Visits
//! beyond the recorded number are not counted either. If the recipient of a message was erased a visit is counted, and
//! nothing about the visitor is kept.

use std::net::IpAddr;

use messaging_core::changes::{Changes, CountLink, Write, visited};
use messaging_core::domain::analytics::bot_detection::{self, Signs};
use messaging_core::domain::audience::contact::erasure;
use messaging_core::domain::mail::link_token::{Link, UrlKey};
use messaging_core::domain::message::milestones::{EngagementFlags, Milestones};
use messaging_core::domain::message::{EventKind, Message, MessageEvent};
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::error::Error;
use crate::services::templates::Unrendered;

/// Number of opens recorded and counted per message, and of clicks: a program that loops must not fill the disk, nor
/// must its opens leave no room for clicks.
const MAX_OF_A_KIND: usize = 500;

/// Characters of a user agent that are kept.
const MAX_USER_AGENT: usize = 512;

/// Number of a message's deliveries that a click is compared with: as many as it can have recipients.
const MAX_DELIVERIES: usize = 128;

/// Client that follows a tracking link or loads a pixel.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// IP address that the request came from.
    pub ip: IpAddr,
    /// The `User-Agent` header.
    pub user_agent: Option<String>,
    /// True for a `HEAD` request.
    pub is_head: bool,
    /// True if a header marks the request as a prefetch, which no person asked for; see
    /// [`announces_prefetch`](messaging_core::domain::analytics::bot_detection::announces_prefetch).
    pub is_prefetch: bool,
}

/// A redirected link that was followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Click {
    /// Workspace of the message.
    pub workspace: WorkspaceId,
    /// Message that contains the link.
    pub message: MessageId,
    /// Key of the target.
    pub key: UrlKey,
    /// URL of the target.
    pub url: String,
    /// Number of the link in the message's template, if it has one.
    pub link: Option<u8>,
}

/// A visit to record.
struct Visit {
    kind: EventKind,
    is_machine: bool,
    /// The link that was followed, and its target.
    link: Option<(u8, String)>,
    meta: Map<String, Value>,
}

impl App {
    /// Returns the redirected link of a token; `None` if the token is none of ours.
    pub async fn click(&self, token: &str) -> Result<Option<Click>, StoreError> {
        let Some((workspace, message, Link::Click(key, link))) = self.link_key().read_link(token) else {
            return Ok(None);
        };
        let url = self.store().url(workspace, key).await?;
        Ok(url.map(|url| Click { workspace, message, key, url, link }))
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
        let visit = Visit { kind: EventKind::Open, is_machine, link: None, meta: visitor.meta(None, is_machine) };
        self.record(workspace, message, known, &visit).await
    }

    /// Records that a link was followed.
    pub async fn record_click(&self, click: &Click, visitor: &Visitor) -> Result<(), Error> {
        let Click { workspace, message, key, url, link } = click;
        let now = self.now();
        // Noted before anything is awaited: the clicks of a burst come at once.
        let seen_here = self.recent_clicks(|clicks| clicks.note(*message, *key, now));
        // Clicks that other processes saw, and this one before it started.
        let known = self.events_of(*workspace, *message, EventKind::Click).await?;
        let stored = known.iter().filter_map(|click| Some((click.at, UrlKey::of(click.meta.get("url")?.as_str()?))));
        let is_machine = bot_detection::is_burst(now, seen_here.into_iter().chain(stored))
            || bot_detection::shows_itself(visitor.signs())
            || bot_detection::is_hasty(now, self.deliveries(*workspace, *message).await?);
        let link = link.map(|number| (number, url.clone()));
        let visit = Visit { kind: EventKind::Click, is_machine, link, meta: visitor.meta(Some(url), is_machine) };
        self.record(*workspace, *message, known.len(), &visit).await
    }

    /// Returns the times when a message was handed to a server or delivered.
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

    /// Returns the recorded events of one kind of a message.
    async fn events_of(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        kind: EventKind,
    ) -> Result<Vec<MessageEvent>, StoreError> {
        self.store().message_events_of_kind(workspace, message, kind, MAX_OF_A_KIND).await
    }

    /// Records a visit, unless `known` visits of its kind are enough.
    async fn record(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        known: usize,
        visit: &Visit,
    ) -> Result<(), Error> {
        if known >= MAX_OF_A_KIND {
            return Ok(());
        }
        self.until_committed(|| async move {
            let Some(message) = self.store().message(workspace, message).await? else {
                return Ok((Changes::default(), ()));
            };
            Ok((self.visit_writes(&message, visit).await?, ()))
        })
        .await
    }

    /// Returns the writes that record a visit of a message.
    async fn visit_writes(&self, message: &Message, visit: &Visit) -> Result<Changes, StoreError> {
        let Visit { kind, is_machine, link, meta } = visit;
        let mut meta = meta.clone();
        if message.is_redacted() {
            erasure::forget_visitor(&mut meta);
        }
        let mut milestones = message.milestones.with_event(*kind, *is_machine);
        let followed = link.as_ref().filter(|_| !is_machine);
        if let Some((number, _)) = followed {
            milestones = milestones.with_followed_link(*number);
        }
        let mut changes = Changes::from_iter(visited(message, milestones, (*kind, *is_machine), self.now()));
        let is_opened = |milestones: &Milestones| milestones.seen.has(EngagementFlags::OPENED);
        if is_opened(&milestones) && !is_opened(&message.milestones) {
            changes.extend(self.count_first_open(message).await?);
        }
        if let Some((number, url)) = followed {
            changes.extend(self.link_count(message, *number, url).await?);
        }
        changes.extend(self.append_events(message.into(), [(*kind, meta)]).await?);
        Ok(changes)
    }

    /// Returns the write that counts a click on a link of a campaign, under its address in the template; under its
    /// target once the template is gone.
    async fn link_count(&self, message: &Message, link: u8, target: &str) -> Result<Option<Write>, StoreError> {
        let Some(campaign_id) = message.campaign_id else { return Ok(None) };
        let in_template = match self.campaign_content(message, campaign_id).await? {
            None => return Ok(None),
            Some((request, used)) => match self.compiled_for_message(message, &request, used).await {
                Ok(compiled) => compiled.links().get(usize::from(link)).cloned(),
                Err(Unrendered::Store(error)) => return Err(error),
                Err(_) => None,
            },
        };
        Ok(Some(Write::CountLink(Box::new(CountLink {
            workspace_id: message.workspace_id,
            campaign_id,
            variant: message.variant.unwrap_or_default(),
            link,
            url: in_template.unwrap_or_else(|| target.to_owned()),
            is_first: !message.milestones.has_followed(link),
        }))))
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
