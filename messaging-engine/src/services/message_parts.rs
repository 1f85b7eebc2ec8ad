//! The parts of a message that people read: taken from its request, or rendered from its template.
//!
//! A message of a campaign has no stored request: its content follows from the campaign, whose template versions were
//! pinned when it started (contract section 12.5).

use std::borrow::Cow;
use std::sync::LazyLock;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::limits::{MAX_DISPLAY_NAME, MAX_SUBJECT};
use messaging_core::domain::mail::plain_text;
use messaging_core::domain::mail::sending_domain::responsible;
use messaging_core::domain::mail::tracking::{self, Links, NumberedLink, footer};
use messaging_core::domain::message::channel_content::{ChannelContent, Parts, TooLong, ViberService};
use messaging_core::domain::message::content::{RequestContent, TemplateUse};
use messaging_core::domain::message::message_input::Category;
use messaging_core::domain::message::{Message, MessageSource};
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::domain::template::compiled::{Compiled, Rendering, Replaced};
use messaging_core::domain::template::values::{ContactValues, Values};
use messaging_core::ids::CampaignId;
use messaging_core::ports::store::StoreError;
use serde_json::{Map, Value};

use crate::app::App;
use crate::services::templates::Unrendered;

/// Characters of a display name; longer ones are cut.
const LONGEST_NAME: usize = 128;
static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
const _: () = assert!(LONGEST_NAME as u64 == MAX_DISPLAY_NAME);

/// The parts of a message that people read.
#[derive(Debug, Default)]
pub(crate) struct MessageParts {
    /// The sender's display name.
    pub(crate) from_name: Option<String>,
    /// Address that replies to an email go to.
    pub(crate) reply_to: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) html: Option<String>,
    pub(crate) text: Option<String>,
    /// Places of the campaign's links in the HTML, as far as they are known.
    pub(crate) links: Vec<NumberedLink>,
}

impl App {
    /// Returns the request of a campaign message, which delivery needs; `None` for another message, and once its
    /// campaign was removed.
    pub(crate) async fn campaign_request(&self, message: &Message) -> Result<Option<RequestContent>, StoreError> {
        let Some(id) = message.campaign_id.filter(|_| !message.is_redacted()) else { return Ok(None) };
        Ok(self.campaign_content(message, id).await?.map(|(request, _)| request))
    }

    /// Returns the size in bytes of the template of a campaign message; 0 if it has none, or it cannot be compiled now.
    pub(crate) async fn campaign_content_size(&self, message: &Message) -> Result<u64, StoreError> {
        let Some(id) = message.campaign_id else { return Ok(0) };
        let Some((request, used)) = self.campaign_content(message, id).await? else { return Ok(0) };
        let compiled = self.compiled_for_message(message, &request, used).await;
        Ok(compiled.map_or(0, |compiled| compiled.size() as u64))
    }

    /// Returns the request of a campaign message and the template of its variant; `None` once the campaign was removed.
    pub(super) async fn campaign_content(
        &self,
        message: &Message,
        id: CampaignId,
    ) -> Result<Option<(RequestContent, TemplateUse)>, StoreError> {
        let Some(campaign) = self.campaign(message.workspace_id, id).await? else { return Ok(None) };
        let templates = self.campaign_templates(message.workspace_id, id).await?;
        let place = usize::from(message.variant.unwrap_or_default());
        let used = templates.and_then(|templates| templates.get(place).copied());
        Ok(used.map(|used| (RequestContent::of_campaign(campaign, used), used)))
    }

    /// Returns the compiled template that the campaign of a message sends.
    pub(crate) async fn compiled_for_message(
        &self,
        message: &Message,
        request: &RequestContent,
        used: TemplateUse,
    ) -> Result<std::sync::Arc<Compiled>, Unrendered> {
        let Some(campaign) = &request.campaign else {
            return self.compiled_template(message.workspace_id, used.id, used.version).await;
        };
        let subject = campaign.plan.subject_of(message.variant.map(usize::from)).map(ToOwned::to_owned);
        let replaced = Replaced { subject, from_name: campaign.plan.from_name.clone() };
        self.compiled_for_campaign(message.workspace_id, used, replaced).await
    }

    /// Renders the parts of a message as its recipient gets it, before links are redirected.
    pub(crate) async fn message_parts(
        &self,
        message: &Message,
        request: &RequestContent,
    ) -> Result<MessageParts, Unrendered> {
        self.message_parts_for(message, request, Redactor::new(true)).await
    }

    /// Renders the parts of a message as a reader with this right to personal data may see them. The template could
    /// spell an address backwards, so values are masked before it is rendered.
    pub(super) async fn message_parts_for(
        &self,
        message: &Message,
        request: &RequestContent,
        redactor: Redactor,
    ) -> Result<MessageParts, Unrendered> {
        let input = &request.input;
        let (from_name, reply_to) = (input.from_name.clone(), input.reply_to.clone());
        let Some(used) = request.template else {
            let (subject, html, text) = (input.subject.clone(), input.html.clone(), input.text.clone());
            return Ok(MessageParts { from_name, reply_to, subject, html, text, links: Vec::new() });
        };
        let compiled = self.compiled_for_message(message, request, used).await?;
        let values = self.values(message, request, &compiled, redactor).await?;
        let Rendering { subject, preheader: _, html, text, from_name: rendered_name, links } =
            self.render(&compiled, values).await?;
        let mut parts = MessageParts { from_name, reply_to, subject, html, text, links };
        if let Some(campaign) = &request.campaign {
            parts.from_name = rendered_name.map(|name| name.chars().take(LONGEST_NAME).collect());
            parts.reply_to = campaign.plan.reply_to.clone().or_else(|| compiled.reply_to().map(ToOwned::to_owned));
        }
        if let Some(subject) = request.automation.as_ref().and_then(|automation| automation.subject.as_ref()) {
            parts.subject = Some(subject.clone());
        }
        if message.channel == Channel::Email && offers_unsubscribe(request) {
            self.add_unsubscribe_link(message, &mut parts).await?;
        }
        let viber = self.viber_service_for(message.workspace_id, message.channel).await?;
        match fault(message.channel, &parts, request, viber) {
            Some(fault) => Err(Unrendered::Unsendable(fault)),
            None => Ok(parts),
        }
    }

    /// Renders the content of a message on a channel other than email, and checks the limits that a request with its
    /// own content keeps.
    pub(crate) async fn channel_content(
        &self,
        message: &Message,
        request: &RequestContent,
    ) -> Result<ChannelContent, Unrendered> {
        let parts = self.message_parts(message, request).await?;
        typed(message.channel, &parts, request)
            .ok_or_else(|| Unrendered::Unsendable("an email is not made of this".to_owned()))
    }

    /// Renders the subject of a message alone, as a reader with this right to personal data may see it.
    pub(super) async fn rendered_subject(
        &self,
        message: &Message,
        request: &RequestContent,
        redactor: Redactor,
    ) -> Result<Option<String>, Unrendered> {
        let Some(used) = request.template else { return Ok(request.input.subject.clone()) };
        let compiled = self.compiled_for_message(message, request, used).await?;
        let values = self.values(message, request, &compiled, redactor).await?;
        self.render_subject(&compiled, values).await
    }

    /// Returns the values for the template of a message.
    async fn values(
        &self,
        message: &Message,
        request: &RequestContent,
        compiled: &Compiled,
        redactor: Redactor,
    ) -> Result<Values, StoreError> {
        let mut given = Cow::Borrowed(request.input.variables.as_ref().unwrap_or(&NOTHING));
        if request.automation.is_some() && !redactor.is_clear() {
            // The automation's node that sent the message has filled the variables in unmasked.
            given.to_mut().retain(|name, _| name == "event");
        }
        let mut values = Values::new(&given).system("message_id", message.id.to_string());
        if compiled.uses_system("unsubscribe_url") {
            values = values.system("unsubscribe_url", self.unsubscribe_url(message).await?);
        }
        if compiled.uses_system("preferences_url") && message.contact_id.is_some() {
            values = values.system("preferences_url", self.preferences_url(message).await?);
        }
        if compiled.uses_system("workspace")
            && let Some(workspace) = self.workspace(message.workspace_id).await?
        {
            values = values.system_member("workspace", "name", workspace.name.clone());
        }
        if let Some(campaign) = &request.campaign {
            if compiled.uses_system("archive_url")
                && let Some(url) = self.archive_url(campaign).await?
            {
                values = values.system("archive_url", url);
            }
            let members = [("id", campaign.id.to_string()), ("name", campaign.plan.name.clone())];
            values = values.system_members("campaign", members);
        }
        if compiled.asks_contact()
            && let Some(id) = message.contact_id
            && let Some(contact) = self.store().contact(message.workspace_id, id).await?
        {
            values = values.contact(&ContactValues::shown(&contact.record, redactor));
        }
        Ok(values)
    }

    /// Adds an unsubscribe link to the HTML of marketing email if its author forgot it; a text part made of the HTML
    /// gets it too.
    async fn add_unsubscribe_link(&self, message: &Message, parts: &mut MessageParts) -> Result<(), StoreError> {
        let Some(html) = parts.html.as_mut().filter(|html| !html.trim().is_empty()) else { return Ok(()) };
        footer::add_unsubscribe_url(html, &mut parts.links, &self.unsubscribe_url(message).await?);
        if parts.text.as_ref().is_none_or(String::is_empty) {
            parts.text = Some(plain_text::from_html(html));
        }
        Ok(())
    }

    /// Returns the page where the recipient of a message unsubscribes.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is one of links of one lifetime")]
    pub(crate) async fn unsubscribe_url(&self, message: &Message) -> Result<String, StoreError> {
        self.link_of(message, |links| links.unsubscribe_url()).await
    }

    /// Returns the preferences page of the recipient of a message.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is one of links of one lifetime")]
    async fn preferences_url(&self, message: &Message) -> Result<String, StoreError> {
        self.link_of(message, |links| links.preferences_url()).await
    }

    /// Returns a link of a message, under the tracking host of its sender.
    async fn link_of(
        &self,
        message: &Message,
        link: impl FnOnce(&Links<'_>) -> String + Send,
    ) -> Result<String, StoreError> {
        let domains = self.sending_domains(message.workspace_id).await?;
        let from = message.from_email.as_deref().and_then(|from| EmailAddress::parse(from).ok());
        let domain = from.and_then(|from| responsible(&domains, &from.ascii_domain()));
        let base = tracking::base(domain, &self.settings().public_url);
        let key = self.link_key();
        let links = Links {
            key: &key,
            base: &base,
            workspace: message.workspace_id,
            message: message.id,
            open: false,
            click: false,
        };
        Ok(link(&links))
    }
}

/// Returns true if a message is sent as marketing, which carries the offer to unsubscribe (contract section 10):
/// messages of campaigns, and of automations unless they are marked as transactional.
pub(crate) fn offers_unsubscribe(request: &RequestContent) -> bool {
    request.campaign.is_some() || request.automation.as_ref().is_some_and(|automation| automation.is_marketing)
}

/// Returns true if a message is marketing, for providers that ask and for its record: also if its request says so.
pub(crate) fn is_marketing(request: &RequestContent) -> bool {
    let asked = request.input.options.as_ref().and_then(|options| options.category);
    offers_unsubscribe(request) || asked == Some(Category::Marketing)
}

/// Returns true if a message went to a contact rather than to an address: it was not requested by itself.
pub(crate) fn is_to_contact(message: &Message) -> bool {
    message.source() != MessageSource::Transactional
}

/// Makes a channel's content of the rendered parts of a message and the other members of its request; `None` for email.
fn typed(channel: Channel, parts: &MessageParts, request: &RequestContent) -> Option<ChannelContent> {
    let rendered = Parts {
        subject: parts.subject.as_deref(),
        html: parts.html.as_deref(),
        text: parts.text.as_deref(),
        ..request.input.parts()
    };
    ChannelContent::of(channel, rendered)
}

/// Returns the fault of rendered parts, by the rules of section 4.1 that a request with its own parts keeps.
fn fault(channel: Channel, parts: &MessageParts, request: &RequestContent, viber: ViberService) -> Option<String> {
    let is_blank = |part: Option<&String>| part.is_none_or(|part| part.trim().is_empty());
    if is_blank(parts.text.as_ref()) && is_blank(parts.html.as_ref()) && request.input.provider_template.is_none() {
        return Some("the template came out empty".to_owned());
    }
    if channel == Channel::Email && is_blank(parts.subject.as_ref()) {
        return Some("the subject came out empty".to_owned());
    }
    if parts.subject.as_ref().is_some_and(|subject| subject.chars().count() as u64 > MAX_SUBJECT) {
        return Some(format!("the subject came out longer than {MAX_SUBJECT} characters"));
    }
    let TooLong { member, rule, .. } = typed(channel, parts, request)?.too_long(viber)?;
    Some(format!("the {member} came out too long: {rule}"))
}
