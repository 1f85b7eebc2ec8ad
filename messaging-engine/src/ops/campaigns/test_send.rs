//! Tests of a campaign: sending it to members of the workspace or contacts, ahead of its audience.
//!
//! Contract section 26. A test consists of transactional messages that are marked as tests: no statistics count them.

use http::{Method, StatusCode};
use messaging_core::domain::audience::contact::{Contact, Identifier};
use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::campaign::test_send::CampaignTestInput;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::normalize;
use messaging_core::domain::security::account::MemberStatus;
use messaging_core::domain::template::Template;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::input;
use messaging_core::input::Empty;
use messaging_core::scope::{Access, Scope};
use messaging_core::violation::{At, FieldCode, Violations, refuse as refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CampaignPath, find, refuse};
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::services::acceptance::SentMessage;
use crate::services::templates::Unrendered;

/// The messages of a test of a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CampaignTest {
    /// Ids of the messages, in the order of `to`.
    pub message_ids: Vec<MessageId>,
}

/// `POST /workspaces/{workspace_id}/campaigns/{id}/test`
pub struct TestCampaign;

impl Operation for TestCampaign {
    const ID: &'static str = "testCampaign";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns/{id}/test";
    const ACCESS: Access = Access::Scopes(Scope::CampaignsWrite, Scope::MessagesSend);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "campaign test";
    const SUMMARY: &'static str = "Send a campaign as a test to members or contacts; nothing counts or tracks it";
    const LOOKS_UP: bool = true;
    type Path = CampaignPath;
    type Query = Empty;
    type Body = CampaignTestInput;
    type Output = CampaignTest;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CampaignTest, Error> {
        let campaign = find(cx, call.path).await?.record;
        let (workspace, channel) = (campaign.workspace_id, campaign.plan.channel);
        let mut found = Violations::new();
        call.body.check_recipients(channel, &mut found);
        let place = call.body.place(&campaign.plan, &mut found);
        let contact = contact(cx, &campaign, &call.body, &mut found).await?;
        for (index, to) in call.body.to.iter().enumerate() {
            let pointer = format!("/to/{index}");
            if found.as_slice().iter().all(|known| known.at != At::Pointer(pointer.clone()))
                && !may_get_tests(cx, workspace, channel, to, contact.as_ref()).await?
            {
                found.add(pointer, FieldCode::NotAllowed, "must be the address of a member or a contact");
            }
        }
        let template = cx.app.template_head(workspace, campaign.plan.template_of(place)).await?;
        if template.is_none() {
            found.add("/template_id", FieldCode::NotFound, "the template of the campaign is gone");
        }
        refuse(cx, found)?;
        let template = template.ok_or(Error::NotFound)?;
        cx.take_tokens_in_all(call.body.to.len())?;
        send(cx, &campaign, place, &template, contact.as_ref(), &call.body.to).await
    }
}

/// Returns the contact for whom the test is rendered: the one that the input names, else the newest of the audience. A
/// named contact that does not exist is added to the violations.
async fn contact(
    cx: &Context<'_>,
    campaign: &Campaign,
    input: &CampaignTestInput,
    found: &mut Violations,
) -> Result<Option<Contact>, Error> {
    let workspace = campaign.workspace_id;
    let Some(id) = input.contact_id.as_ref().filter(|id| !id.is_empty()) else {
        return Ok(cx.app.newest_of_audience(workspace, &campaign.plan.audience).await?);
    };
    let contact = match id.parse() {
        Ok(id) => cx.store().contact(workspace, id).await?,
        Err(_) => None,
    };
    if contact.is_none() {
        found.add("/contact_id", FieldCode::NotFound, "no such contact in this workspace");
    }
    Ok(contact.map(|stored| stored.record))
}

/// Returns true if an address belongs to a contact or, for email, to an active member. An address that no index finds,
/// such as a chat, must belong to `contact`, for whom the test is rendered.
async fn may_get_tests(
    cx: &Context<'_>,
    workspace: WorkspaceId,
    channel: Channel,
    to: &str,
    contact: Option<&Contact>,
) -> Result<bool, Error> {
    if let Some(contact) = contact
        && cx
            .app
            .addresses_of(contact, channel)
            .await?
            .iter()
            .any(|own| normalize(channel, own) == normalize(channel, to))
    {
        return Ok(true);
    }
    if let Some(identifier) = Identifier::of_address(channel, to)
        && cx.store().contact_identified(workspace, &identifier).await?.is_some()
    {
        return Ok(true);
    }
    if channel != Channel::Email {
        return Ok(false);
    }
    let Some(user) = cx.store().user_by_email(&to.to_lowercase()).await? else { return Ok(false) };
    let member = cx.store().member(workspace, user.record.id).await?;
    Ok(member.is_some_and(|member| member.record.status == MemberStatus::Active))
}

/// Renders the test and accepts a message for each recipient.
async fn send(
    cx: &mut Context<'_>,
    campaign: &Campaign,
    place: Option<usize>,
    template: &Template,
    contact: Option<&Contact>,
    to: &[String],
) -> Result<CampaignTest, Error> {
    let rendered = cx.app.campaign_test(campaign, place, template, contact, cx.redactor()).await.map_err(refused)?;
    let mut message_ids = Vec::with_capacity(to.len());
    for to in to {
        let mut input = rendered.clone();
        input.to = Some(to.clone());
        let (input, mut violations) = input::made_body(input)?;
        let sent = SentMessage { is_test: true, ..SentMessage::new(campaign.workspace_id, input) };
        let accepted = cx.app.accept_message(sent, cx.now, &mut violations).await?;
        cx.changes.extend(accepted.writes);
        message_ids.push(accepted.message_id);
    }
    Ok(CampaignTest { message_ids })
}

/// Returns the error for a failed rendering: a violation at `/template_id`, unless rendering is busy or the store
/// fails.
fn refused(cause: Unrendered) -> Error {
    match cause {
        Unrendered::Busy => Error::Unavailable { retry_after: 1 },
        Unrendered::Store(error) => error.into(),
        Unrendered::Gone => refusal("/template_id", FieldCode::NotFound, cause).into(),
        Unrendered::Failed { .. } | Unrendered::Broken | Unrendered::Unsendable(_) => {
            refusal("/template_id", FieldCode::Syntax, cause).into()
        }
    }
}
