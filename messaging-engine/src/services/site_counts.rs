//! Counters of sites, for what comes after a delivery: mail that comes back, complaints, opens.
//!
//! The exchanger that took the message is in the event of its delivery, which determines the site. A bounce that comes
//! late is subtracted where the delivery was counted, as in all series.

use std::collections::BTreeMap;

use messaging_core::changes::{CountSites, Write};
use messaging_core::domain::analytics::site_tally::{SiteCounter, SiteCounts, counter_of};
use messaging_core::domain::analytics::tally::buckets::Quarter;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::normalize_email;
use messaging_core::domain::delivery::site::SiteName;
use messaging_core::domain::message::{EventKind, Message, MessageEvent};
use messaging_core::ports::store::StoreError;
use serde_json::{Map, Value};

use crate::app::App;

/// Deliveries of a message that are looked at: as many as it can have recipients.
pub(super) const MAX_DELIVERIES: usize = 128;

impl App {
    /// The write that counts events which came back by mail.
    pub(crate) async fn count_returned(
        &self,
        message: &Message,
        events: &[(EventKind, Map<String, Value>)],
    ) -> Result<Option<Write>, StoreError> {
        let late = events.iter().filter_map(|(kind, meta)| {
            let counter = counter_of(*kind, meta)?;
            // A delay or a delivery that is told by mail is that of somebody to whom a site has passed it on.
            let is_late = !matches!(counter, SiteCounter::Deferred | SiteCounter::Delivered);
            is_late.then(|| (meta.get("recipient").and_then(Value::as_str).unwrap_or(&message.to), counter))
        });
        self.count_late(message, &late.collect::<Vec<_>>()).await
    }

    /// The write that counts the first time that a person opened a message.
    pub(crate) async fn count_first_open(&self, message: &Message) -> Result<Option<Write>, StoreError> {
        self.count_late(message, &[(message.to.as_str(), SiteCounter::OpenedHuman)]).await
    }

    async fn count_late(
        &self,
        message: &Message,
        counted: &[(&str, SiteCounter)],
    ) -> Result<Option<Write>, StoreError> {
        if message.channel != Channel::Email || counted.is_empty() {
            return Ok(None);
        }
        let (workspace, now) = (message.workspace_id, self.now());
        let kind = EventKind::Delivered;
        let deliveries = self.store().message_events_of_kind(workspace, message.id, kind, MAX_DELIVERIES).await?;
        let mut counts: BTreeMap<(SiteName, Quarter), SiteCounts> = BTreeMap::new();
        for (address, counter) in counted {
            let Some(delivery) = delivery_to(&deliveries, address) else { continue };
            let exchanger = delivery.meta.get("mx").and_then(Value::as_str);
            let site = exchanger.and_then(|host| self.counted_sites().of_exchanger(workspace, host, now));
            let Some(site) = site else { continue };
            if matches!(counter, SiteCounter::BouncedHard | SiteCounter::BouncedSoft) {
                let of_delivery = counts.entry((site.clone(), Quarter::of(delivery.at))).or_default();
                of_delivery.count(SiteCounter::Delivered, -1);
            }
            counts.entry((site, Quarter::of(now))).or_default().count(*counter, 1);
        }
        let counts: Vec<_> = counts.into_iter().map(|((site, quarter), counts)| (site, quarter, counts)).collect();
        Ok((!counts.is_empty()).then(|| Write::CountSites(Box::new(CountSites { workspace_id: workspace, counts }))))
    }
}

/// The delivery to an address. Of a message with one delivery there is no doubt, also after its recipient was erased.
pub(super) fn delivery_to<'a>(deliveries: &'a [MessageEvent], address: &str) -> Option<&'a MessageEvent> {
    if let [only] = deliveries {
        return Some(only);
    }
    let address = normalize_email(address);
    let is_to = |event: &&MessageEvent| {
        let recipient = event.meta.get("recipient").and_then(Value::as_str);
        recipient.is_some_and(|recipient| normalize_email(recipient) == address)
    };
    deliveries.iter().find(is_to)
}
