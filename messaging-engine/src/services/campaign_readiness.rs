//! Looks up what a campaign needs from its workspace: the objects that it names, a sender, a provider for its channel.
//!
//! Contract sections 12.1 and 12.2. Used when a campaign is written, scheduled and started; automations and single
//! messages share parts of it.

use std::collections::{BTreeSet, HashSet};

use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::campaign::check::{self, ReferenceTarget, ResolvedReference};
use messaging_core::domain::campaign::schedule::{Readiness, SenderState};
use messaging_core::domain::campaign::{CampaignPlan, Reference};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::channel::provider;
use messaging_core::domain::mail::sender;
use messaging_core::domain::mail::sending_domain::responsible;
use messaging_core::domain::message::channel_content::ViberService;
use messaging_core::error::DomainError;
use messaging_core::ids::{DomainId, ListId, TemplateId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::violation::Violations;

use crate::app::App;
use crate::error::Error;

/// Result of looking up everything that a campaign needs from its workspace. It owns what [`Readiness`] borrows.
#[derive(Debug)]
pub(crate) struct CampaignReadiness {
    /// Result of the look-up of each object that the campaign names.
    found: Vec<ResolvedReference>,
    /// `Verified`, or what is wrong with the first variant that has no valid sender.
    sender: SenderState,
    /// See [`App::has_transport`].
    channel_is_configured: bool,
    /// Sending domains of the senders, each once; empty unless `sender` is `Verified`.
    domains: Vec<DomainId>,
}

impl CampaignReadiness {
    /// The same facts, borrowed in the form that the campaign rules in core take.
    pub(crate) fn as_readiness(&self) -> Readiness<'_> {
        let Self { found, sender, channel_is_configured, domains: _ } = self;
        Readiness { found, sender: *sender, channel_is_configured: *channel_is_configured }
    }

    /// The sending domains that the campaign's senders belong to.
    pub(crate) fn into_domains(self) -> Vec<DomainId> {
        self.domains
    }
}

impl App {
    /// Looks up the objects that a plan or an audience names. Each reference comes with the JSON pointer of its member;
    /// the result has the same order. A [`Reference::Domain`] counts as not found, because neither a plan nor an
    /// audience names one.
    pub(crate) async fn find_references(
        &self,
        workspace: WorkspaceId,
        references: Vec<(String, Reference)>,
    ) -> Result<Vec<ResolvedReference>, StoreError> {
        let list = |(_, reference): &(String, Reference)| match reference {
            Reference::List(id) => Some(*id),
            _ => None,
        };
        let named: Vec<ListId> = references.iter().filter_map(list).collect();
        let lists: HashSet<ListId> = match &named[..] {
            [] => HashSet::new(),
            named => self.store().lists_among(workspace, named).await?.into_iter().collect(),
        };
        let mut found: Vec<ResolvedReference> = Vec::with_capacity(references.len());
        for (pointer, reference) in references {
            let target = match found.iter().find(|known| known.reference == reference) {
                Some(known) => known.target,
                None => match reference {
                    Reference::List(id) if lists.contains(&id) => ReferenceTarget::Other,
                    Reference::Segment(id) if self.store().segment(workspace, id).await?.is_some() => {
                        ReferenceTarget::Other
                    }
                    Reference::List(_) | Reference::Segment(_) | Reference::Domain(_) => ReferenceTarget::Nothing,
                    Reference::Template(id) => self.find_template(workspace, id).await?,
                },
            };
            found.push(ResolvedReference { pointer, reference, target });
        }
        Ok(found)
    }

    /// The channel and the parts of a template; [`ReferenceTarget::Nothing`] if the workspace has no such template.
    pub(super) async fn find_template(
        &self,
        workspace: WorkspaceId,
        id: TemplateId,
    ) -> Result<ReferenceTarget, StoreError> {
        let head = self.store().template_head(workspace, id).await?;
        Ok(head.map_or(ReferenceTarget::Nothing, |head| {
            let (channel, parts) = (head.channel, head.parts);
            ReferenceTarget::Template { channel, parts }
        }))
    }

    /// Looks up everything that a campaign needs before it can be sent. What is missing is part of the result; an error
    /// is only a failure of the store.
    pub(crate) async fn campaign_readiness(
        &self,
        workspace: WorkspaceId,
        plan: &CampaignPlan,
    ) -> Result<CampaignReadiness, StoreError> {
        let (sender, domains) = match self.campaign_senders(workspace, plan).await? {
            Ok(senders) => (SenderState::Verified, self.sending_domains_of_senders(workspace, &senders).await?),
            Err(state) => (state, Vec::new()),
        };
        Ok(CampaignReadiness {
            found: self.find_references(workspace, plan.references()).await?,
            sender,
            domains,
            channel_is_configured: self.has_transport(workspace, plan.channel).await?,
        })
    }

    /// True if the workspace has a provider for the channel, which on email needs no settings, and this installation
    /// has a transport for that provider.
    pub(crate) async fn has_transport(&self, workspace: WorkspaceId, channel: Channel) -> Result<bool, StoreError> {
        let provider = self.provider(workspace, channel).await?;
        Ok(provider.is_some_and(|provider| self.transport(channel, &provider.name).is_some()))
    }

    /// The Viber service through which a workspace sends: a bot if that is the provider in its settings, else a
    /// business, also without settings.
    pub(crate) async fn viber_service(&self, workspace: WorkspaceId) -> Result<ViberService, StoreError> {
        let provider = self.provider(workspace, Channel::Viber).await?;
        let is_bot = provider.is_some_and(|provider| provider.name == provider::VIBER_BOT);
        Ok(if is_bot { ViberService::Bot } else { ViberService::Business })
    }

    /// The Viber service for a message of `channel`. On all channels but Viber it has no effect, so `Business` is
    /// answered without a look-up.
    pub(crate) async fn viber_service_for(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
    ) -> Result<ViberService, StoreError> {
        match channel {
            Channel::Viber => self.viber_service(workspace).await,
            _ => Ok(ViberService::Business),
        }
    }

    /// The addresses of a contact for a channel, by the provider that the channel has now (contract section 6.3).
    pub(crate) async fn addresses_of(&self, contact: &Contact, channel: Channel) -> Result<Vec<String>, StoreError> {
        let viber = self.viber_service_for(contact.workspace_id, channel).await?;
        Ok(contact.addresses(channel, viber))
    }

    /// The sender address of each variant of a campaign, chosen as in [`App::marketing_sender`] (contract section
    /// 12.3); empty on channels other than email. The inner `Err` says what is wrong with the first variant that has no
    /// valid sender.
    async fn campaign_senders(
        &self,
        workspace: WorkspaceId,
        plan: &CampaignPlan,
    ) -> Result<Result<Vec<String>, SenderState>, StoreError> {
        let mut senders = Vec::new();
        for place in plan.places() {
            let template_sender = match &plan.from_email {
                Some(_) => None,
                None => self.store().template_head(workspace, plan.template_of(place)).await?,
            };
            let template_sender = template_sender.and_then(|template| template.design.from_email);
            match self.variant_sender(workspace, plan, template_sender.as_deref()).await? {
                Ok(sender) => senders.extend(sender),
                Err(state) => return Ok(Err(state)),
            }
        }
        Ok(Ok(senders))
    }

    /// The sending domains of the workspace that sender addresses belong to, verified or not, each once, ordered by id.
    /// An address that is malformed or belongs to none of them is skipped.
    pub(crate) async fn sending_domains_of_senders(
        &self,
        workspace: WorkspaceId,
        senders: &[String],
    ) -> Result<Vec<DomainId>, StoreError> {
        if senders.is_empty() {
            return Ok(Vec::new());
        }
        let domains = self.sending_domains(workspace).await?;
        let domain = |sender: &String| {
            let host = EmailAddress::parse(sender).ok()?.ascii_domain();
            responsible(&domains, &host).map(|domain| domain.id)
        };
        let found: BTreeSet<_> = senders.iter().filter_map(domain).collect();
        Ok(found.into_iter().collect())
    }

    /// The sender address of one variant of a campaign, see [`App::marketing_sender`]. `template_sender` is the sender
    /// of the variant's template.
    pub(super) async fn variant_sender(
        &self,
        workspace: WorkspaceId,
        plan: &CampaignPlan,
        template_sender: Option<&str>,
    ) -> Result<Result<Option<String>, SenderState>, StoreError> {
        self.marketing_sender(workspace, plan.channel, plan.from_email.as_deref(), template_sender).await
    }

    /// Chooses the sender address of a marketing email: `named`, else `template_sender`, else `noreply@` the
    /// workspace's only verified domain, which also stands in where the chosen address is empty. `None` on channels
    /// other than email. The inner `Err` says what is wrong; a malformed address counts as
    /// [`SenderState::NotVerified`].
    pub(super) async fn marketing_sender(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        named: Option<&str>,
        template_sender: Option<&str>,
    ) -> Result<Result<Option<String>, SenderState>, StoreError> {
        if channel != Channel::Email {
            return Ok(Ok(None));
        }
        let domains = self.sending_domains(workspace).await?;
        let asked = named.or(template_sender).filter(|text| !text.is_empty());
        let asked = asked.map(EmailAddress::parse).transpose();
        Ok(match asked.map(|asked| sender::decide(asked.as_ref(), None, &domains)) {
            Ok(Ok(sender)) => Ok(Some(sender.as_str().to_owned())),
            Ok(Err(DomainError::SenderMissing)) => Err(SenderState::Missing),
            Ok(Err(_)) | Err(_) => Err(SenderState::NotVerified),
        })
    }

    /// Compiles the template texts in the plan itself (subjects, the sender's name) and adds their syntax errors to
    /// `violations`.
    pub(crate) async fn check_plan_templates(
        &self,
        plan: &CampaignPlan,
        violations: &mut Violations,
    ) -> Result<(), Error> {
        self.check_templates(plan.sources(), violations).await
    }

    /// Compiles template texts, given as pairs of the member's JSON pointer and the text, and adds their syntax errors
    /// to `violations`. Compiling takes a processor for a while, so it waits for its turn among template work; texts
    /// without template tags need none.
    pub(crate) async fn check_templates(
        &self,
        sources: Vec<(String, String)>,
        violations: &mut Violations,
    ) -> Result<(), Error> {
        if sources.iter().any(|(_, source)| check::is_template(source)) {
            violations.merge(self.template_work().run(move || check::check_syntax(sources)).await?);
        }
        Ok(())
    }
}
