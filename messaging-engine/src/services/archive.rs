//! The archive of a workspace, as everybody may read it.
//!
//! Contract section 23. The archive is rendered for no recipient: without a contact, and so with the substitutes in a
//! template, without links of a recipient, without a pixel and without redirected links.

use std::sync::Arc;

use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::campaign::archive::{self, Archive};
use messaging_core::domain::security::account::Workspace;
use messaging_core::domain::template::compiled::{Compiled, Replaced};
use messaging_core::domain::template::values::Values;
use messaging_core::ids::{CampaignId, ListId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use serde_json::Map;

use crate::app::App;
use crate::error::Error;
use crate::services::templates::Unrendered;

/// Campaigns that are read at a time.
const READ_AT_ONCE: usize = 50;

/// Reads for a page at most: one may have fewer entries than there is room for.
const MAX_READS: usize = 10;

/// A page of an archive.
#[derive(Debug, Clone)]
pub struct ArchivePage {
    /// Workspace that owns the archive.
    pub workspace: Arc<Workspace>,
    /// Address of the archive.
    pub url: String,
    /// Campaigns, the latest first.
    pub entries: Vec<ArchiveEntry>,
    /// Campaign after which a further page begins.
    pub older: Option<CampaignId>,
}

impl ArchivePage {
    /// Settings of the archive.
    pub fn archive(&self) -> &Archive {
        &self.workspace.readers.archive
    }

    /// Title of the archive.
    pub fn title(&self) -> &str {
        self.archive().title.as_deref().unwrap_or(&self.workspace.name)
    }
}

/// A campaign in an archive.
#[derive(Debug, Clone)]
pub struct ArchiveEntry {
    /// Id of the campaign.
    pub id: CampaignId,
    /// Address of its page.
    pub url: String,
    /// Its subject; the day of its beginning where it has none.
    pub title: String,
    /// Day of its beginning in the time zone of the workspace, such as `2026-01-31`.
    pub day: String,
    /// When it began to be sent.
    pub sent_at: Timestamp,
}

/// The mail of a campaign as an archive shows it.
#[derive(Debug, Clone)]
pub struct ArchivedMail {
    /// True if search engines may list it.
    pub indexed: bool,
    /// Its subject; the day of its beginning where it has none.
    pub title: String,
    /// Its HTML, where it has one.
    pub html: Option<String>,
    /// Its text.
    pub text: String,
    /// When it began to be sent.
    pub sent_at: Timestamp,
}

impl App {
    /// A page of an archive: its latest campaigns, or those before one of them. `None` if there is no archive or no
    /// such campaign.
    pub async fn archive_page(
        &self,
        workspace: WorkspaceId,
        before: Option<CampaignId>,
        most: usize,
    ) -> Result<Option<ArchivePage>, Error> {
        let Some((workspace, public)) = self.open_archive(workspace).await? else { return Ok(None) };
        let archive = &workspace.readers.archive;
        if let Some(before) = before
            && self.campaign(workspace.id, before).await?.is_none()
        {
            return Ok(None);
        }
        let url = archive::archive_url(&self.settings().public_url, workspace.id);
        let mut page = ArchivePage { url, entries: Vec::new(), older: None, workspace: Arc::clone(&workspace) };
        let mut last = before;
        for _ in 0..MAX_READS {
            let read = self.store().archived_campaigns(workspace.id, last, READ_AT_ONCE).await?;
            let is_end = read.len() < READ_AT_ONCE;
            last = read.last().map(|campaign| campaign.id).or(last);
            for campaign in read.iter().filter(|campaign| archive.shows(campaign, &public)) {
                if page.entries.len() == most {
                    page.older = page.entries.last().map(|entry| entry.id);
                    return Ok(Some(page));
                }
                page.entries.extend(self.archive_entry(&workspace, campaign).await?);
            }
            if is_end {
                return Ok(Some(page));
            }
        }
        page.older = last;
        Ok(Some(page))
    }

    /// The mail of a campaign; `None` where the archive of the workspace does not show it.
    pub async fn archived_mail(&self, workspace: WorkspaceId, id: CampaignId) -> Result<Option<ArchivedMail>, Error> {
        let Some((workspace, public)) = self.open_archive(workspace).await? else { return Ok(None) };
        let archive = &workspace.readers.archive;
        let Some(campaign) = self.campaign(workspace.id, id).await? else { return Ok(None) };
        if !archive.shows(&campaign, &public) {
            return Ok(None);
        }
        let rendering = match self.compiled_for_archive(&campaign).await {
            Ok(compiled) => self.render(&compiled, self.values_for_nobody(&workspace, &campaign)).await,
            Err(fault) => Err(fault),
        };
        let Some(rendering) = shown(rendering)? else { return Ok(None) };
        let html = rendering.html.filter(|html| !html.trim().is_empty());
        let sent_at = campaign.started_at.unwrap_or(campaign.created_at);
        Ok(Some(ArchivedMail {
            indexed: archive.indexed,
            title: title(rendering.subject, &workspace, sent_at),
            html,
            text: rendering.text.unwrap_or_default(),
            sent_at,
        }))
    }

    /// Address of a campaign in the archive of its workspace, where that shows it once it begins.
    pub(crate) async fn archive_url(&self, campaign: &Campaign) -> Result<Option<String>, StoreError> {
        let Some((workspace, public)) = self.open_archive(campaign.workspace_id).await? else { return Ok(None) };
        let is_taken = workspace.readers.archive.takes(campaign, &public);
        Ok(is_taken.then(|| archive::campaign_url(&self.settings().public_url, workspace.id, campaign.id)))
    }

    /// A workspace whose archive is enabled, with its public lists. One under deletion shows nothing any more.
    async fn open_archive(
        &self,
        workspace: WorkspaceId,
    ) -> Result<Option<(Arc<Workspace>, Arc<Vec<ListId>>)>, StoreError> {
        let found = self.workspace(workspace).await?;
        let Some(workspace) = found.filter(|one| one.end.is_none() && one.readers.archive.enabled) else {
            return Ok(None);
        };
        let public = self.public_list_ids(workspace.id).await?;
        Ok(Some((workspace, public)))
    }

    /// The entry of a campaign; `None` where its content is gone.
    async fn archive_entry(&self, workspace: &Workspace, campaign: &Campaign) -> Result<Option<ArchiveEntry>, Error> {
        let subject = match self.compiled_for_archive(campaign).await {
            Ok(compiled) => self.render_subject(&compiled, self.values_for_nobody(workspace, campaign)).await,
            Err(fault) => Err(fault),
        };
        let Some(subject) = shown(subject)? else { return Ok(None) };
        let sent_at = campaign.started_at.unwrap_or(campaign.created_at);
        Ok(Some(ArchiveEntry {
            id: campaign.id,
            url: archive::campaign_url(&self.settings().public_url, workspace.id, campaign.id),
            title: title(subject, workspace, sent_at),
            day: day(workspace, sent_at),
            sent_at,
        }))
    }

    /// The version of the template that most recipients of a campaign got: the winner's, else the first variant's.
    async fn compiled_for_archive(&self, campaign: &Campaign) -> Result<Arc<Compiled>, Unrendered> {
        let place = (!campaign.plan.variants.is_empty()).then(|| campaign.winner.unwrap_or_default());
        let templates = self.campaign_templates(campaign.workspace_id, campaign.id).await?;
        let used = templates.and_then(|templates| templates.get(place.unwrap_or_default()).copied());
        let subject = campaign.plan.subject_of(place).map(ToOwned::to_owned);
        let replaced = Replaced { subject, from_name: campaign.plan.from_name.clone() };
        self.compiled_for_campaign(campaign.workspace_id, used.ok_or(Unrendered::Gone)?, replaced).await
    }

    /// The values of a campaign that concern no recipient.
    fn values_for_nobody(&self, workspace: &Workspace, campaign: &Campaign) -> Values {
        let url = archive::campaign_url(&self.settings().public_url, workspace.id, campaign.id);
        Values::new(&Map::new())
            .system("archive_url", url)
            .system_member("workspace", "name", workspace.name.clone())
            .system_members("campaign", [("id", campaign.id.to_string()), ("name", campaign.plan.name.clone())])
    }
}

/// The result of a rendering; `None` where it fails for good.
fn shown<T>(rendered: Result<T, Unrendered>) -> Result<Option<T>, Error> {
    match rendered {
        Ok(rendered) => Ok(Some(rendered)),
        Err(Unrendered::Store(error)) => Err(error.into()),
        Err(Unrendered::Busy) => Err(Error::Unavailable { retry_after: 1 }),
        Err(Unrendered::Gone | Unrendered::Broken | Unrendered::Failed { .. } | Unrendered::Unsendable(_)) => Ok(None),
    }
}

fn title(subject: Option<String>, workspace: &Workspace, sent_at: Timestamp) -> String {
    subject.filter(|subject| !subject.trim().is_empty()).unwrap_or_else(|| day(workspace, sent_at))
}

fn day(workspace: &Workspace, at: Timestamp) -> String {
    at.to_jiff().to_zoned(workspace.zone()).strftime("%Y-%m-%d").to_string()
}
