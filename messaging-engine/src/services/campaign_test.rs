//! The message of a test of a campaign: its content as one contact would get it.

use messaging_core::domain::audience::contact::{Contact, ContactFilter};
use messaging_core::domain::campaign::test_send::test_subject;
use messaging_core::domain::campaign::{Audience, Campaign};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::limits::MAX_DISPLAY_NAME;
use messaging_core::domain::mail::tracking::{UNSUBSCRIBE_PATH, footer};
use messaging_core::domain::message::content::TemplateUse;
use messaging_core::domain::message::message_input::{MessageInput, MessageOptions};
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::domain::template::Template;
use messaging_core::domain::template::compiled::Replaced;
use messaging_core::domain::template::values::{ContactValues, Values};
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, StoreError};
use serde_json::Map;

use crate::app::App;
use crate::services::templates::Unrendered;

/// Tag of tests, by which a listing of messages finds them.
const TAG: &str = "test";
/// Newest contacts of a list or segment that are looked at for one that is not excluded.
const LOOKED_AT: usize = 50;

impl App {
    /// The message that a campaign is for a contact, without a recipient and without tracking; `template` is the head
    /// of the template of the variant. The contact is shown as the redactor lets the caller see it.
    pub(crate) async fn campaign_test(
        &self,
        campaign: &Campaign,
        place: Option<usize>,
        template: &Template,
        contact: Option<&Contact>,
        redactor: Redactor,
    ) -> Result<MessageInput, Unrendered> {
        let (workspace, plan) = (campaign.workspace_id, &campaign.plan);
        let used = TemplateUse { id: plan.template_of(place), version: template.version };
        let subject = plan.subject_of(place).map(ToOwned::to_owned);
        let replaced = Replaced { subject, from_name: plan.from_name.clone() };
        let compiled = self.compiled_for_campaign(workspace, used, replaced).await?;
        // Whoever looks at a test shall not unsubscribe somebody.
        let unsubscribe_url = format!("{}{UNSUBSCRIBE_PATH}preview", self.settings().public_url);
        let mut values = Values::new(&Map::new())
            .system("message_id", MessageId::from_bytes([0; 16]).to_string())
            .system("unsubscribe_url", unsubscribe_url.as_str())
            .system_members("campaign", [("id", campaign.id.to_string()), ("name", plan.name.clone())]);
        if let Some(url) = self.archive_url(campaign).await? {
            values = values.system("archive_url", url);
        }
        if let Some(workspace) = self.workspace(workspace).await? {
            values = values.system_member("workspace", "name", workspace.name.clone());
        }
        if let Some(contact) = contact {
            values = values.contact(&ContactValues::shown(contact, redactor));
        }
        let mut rendering = self.render(&compiled, values).await?;
        let mut input = MessageInput::new(plan.channel, "");
        if plan.channel == Channel::Email {
            if let Some(html) = rendering.html.as_mut().filter(|html| !html.trim().is_empty()) {
                footer::add_unsubscribe_url(html, &mut rendering.links, &unsubscribe_url);
            }
            let longest = usize::try_from(MAX_DISPLAY_NAME).unwrap_or(usize::MAX);
            let from_email = plan.from_email.clone().or_else(|| template.design.from_email.clone());
            input.from_email = from_email.filter(|from| !from.is_empty());
            input.from_name = rendering.from_name.map(|name| name.chars().take(longest).collect());
            input.reply_to = plan.reply_to.clone().or_else(|| compiled.reply_to().map(ToOwned::to_owned));
            input.options = Some(MessageOptions::default().track_opens(false).track_clicks(false));
        }
        if matches!(plan.channel, Channel::Email | Channel::Push) {
            input.subject = rendering.subject.map(|subject| test_subject(&subject));
        }
        if matches!(plan.channel, Channel::Email | Channel::Telegram) {
            input.html = rendering.html.filter(|html| !html.is_empty());
        }
        input.text = rendering.text.filter(|text| !text.is_empty());
        Ok(input.tag(TAG).metadata("campaign_id", campaign.id.to_string()))
    }

    /// The newest contact of an audience, as far as a look at the newest of each of its lists and segments finds one
    /// that is not excluded.
    pub(crate) async fn newest_of_audience(
        &self,
        workspace: WorkspaceId,
        audience: &Audience,
    ) -> Result<Option<Contact>, StoreError> {
        let lists = audience.list_ids.iter().map(|id| ContactFilter { list_id: Some(*id), ..ContactFilter::default() });
        let segments =
            audience.segment_ids.iter().map(|id| ContactFilter { segment_id: Some(*id), ..ContactFilter::default() });
        let mut newest: Option<Contact> = None;
        for filter in lists.chain(segments) {
            let page = PageRequest { after: None, limit: LOOKED_AT };
            let found = self.store().contacts(workspace, &filter, page).await?.items;
            let is_excluded =
                |contact: &Contact| contact.list_ids.iter().any(|id| audience.exclude_list_ids.contains(id));
            let candidate = found.into_iter().find(|contact| !is_excluded(contact));
            if let Some(candidate) = candidate
                && newest.as_ref().is_none_or(|newest| newest.id < candidate.id)
            {
                newest = Some(candidate);
            }
        }
        Ok(newest)
    }
}
