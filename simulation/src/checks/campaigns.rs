//! Campaigns: each recipient has one message, or none was to be sent, and counters agree with the rows.

use std::collections::BTreeMap;

use messaging_core::domain::analytics::tally::{self, Counts, Row};
use messaging_core::domain::campaign::CampaignStatus;
use messaging_core::domain::message::Message;
use messaging_core::ids::{CampaignId, MessageId};
use messaging_core::ports::store::StoreError;
use messaging_engine::App;

use crate::fixture::Fixture;
use crate::world::World;

/// Checks that every campaign has ended, with one message for each recipient, and that its counters agree.
pub(super) async fn campaigns(
    world: &World,
    app: &App,
    messages: &BTreeMap<MessageId, Message>,
) -> Result<(), StoreError> {
    let fixture = Fixture::shared();
    for id in &fixture.campaigns {
        let Ok(id) = id.parse::<CampaignId>() else { continue };
        let Some(campaign) = app.store().campaign(fixture.workspace, id).await?.map(|stored| stored.record) else {
            world.ledger().broken(format!("{id} is not there any more"));
            continue;
        };
        let own: Vec<_> = messages.values().filter(|message| message.campaign_id == Some(id)).collect();
        let (found, recipients) = (own.len() as u64, campaign.recipients.unwrap_or(0));
        let is_whole = match campaign.status {
            CampaignStatus::Draft => found == 0,
            CampaignStatus::Sent => found == recipients,
            // Recipients without a message yet get none. The number of recipients may be unknown.
            CampaignStatus::Cancelled | CampaignStatus::Failed => campaign.recipients.is_none() || found <= recipients,
            CampaignStatus::Scheduled | CampaignStatus::Sending | CampaignStatus::Paused => false,
        };
        if !is_whole {
            let status = campaign.status.as_str();
            world.ledger().broken(format!("{id} is {status} and has {found} messages for {recipients} recipients"));
        }
        let waiting = app.store().waiting_tracks(fixture.workspace, id).await?;
        if !waiting.is_empty() {
            world.ledger().broken(format!("{id} has ended and messages of it wait: {waiting:?}"));
        }
        for (place, kept) in app.store().campaign_counts(fixture.workspace, id).await?.into_iter().enumerate() {
            let of_variant = own.iter().filter(|message| message.variant.map(usize::from) == Some(place));
            let counted: Counts = of_variant.map(|message| tally::tally(&Row::from(*message))).sum();
            if kept != counted {
                world.ledger().broken(format!("{id}, variant {place}: {kept:?} is said, {counted:?} are there"));
            }
        }
    }
    Ok(())
}
