//! What a campaign needs of its workspace: what it names, a sender, a provider of its channel.
//!
//! Contract sections 12.1 and 12.2. Asked when a campaign is written, scheduled and begun.

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

/// What a workspace has of all that a campaign needs.
#[derive(Debug)]
pub(crate) struct FoundReadiness {
    found: Vec<ResolvedReference>,
    sender: SenderState,
    channel_is_configured: bool,
    domains: Vec<DomainId>,
}

impl FoundReadiness {
    /// The same, as the rules take it.
    pub(crate) fn as_facts(&self) -> Readiness<'_> {
        let Self { found, sender, channel_is_configured, domains: _ } = self;
        Readiness { found, sender: *sender, channel_is_configured: *channel_is_configured }
    }

    /// The sending domains of the senders.
    pub(crate) fn into_domains(self) -> Vec<DomainId> {
        self.domains
    }
}

impl App {
    /// Looks up what a plan or an audience names.
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
            let what = match found.iter().find(|known| known.reference == reference) {
                Some(known) => known.what,
                None => match reference {
                    Reference::List(id) if lists.contains(&id) => ReferenceTarget::Other,
                    Reference::Segment(id) if self.store().segment(workspace, id).await?.is_some() => {
                        ReferenceTarget::Other
                    }
                    Reference::List(_) | Reference::Segment(_) | Reference::Domain(_) => ReferenceTarget::Nothing,
                    Reference::Template(id) => self.find_template(workspace, id).await?,
                },
            };
            found.push(ResolvedReference { pointer, reference, what });
        }
        Ok(found)
    }

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

    /// Looks up all that a campaign needs to be sent.
    pub(crate) async fn campaign_readiness(
        &self,
        workspace: WorkspaceId,
        plan: &CampaignPlan,
    ) -> Result<FoundReadiness, StoreError> {
        let (sender, domains) = match self.campaign_senders(workspace, plan).await? {
            Ok(senders) => (SenderState::Verified, self.domains_of(workspace, &senders).await?),
            Err(state) => (state, Vec::new()),
        };
        Ok(FoundReadiness {
            found: self.find_references(workspace, plan.references()).await?,
            sender,
            domains,
            channel_is_configured: self.has_transport(workspace, plan.channel).await?,
        })
    }

    /// Whether something carries a channel: it has settings, and this installation has their provider.
    pub(crate) async fn has_transport(&self, workspace: WorkspaceId, channel: Channel) -> Result<bool, StoreError> {
        let provider = self.provider(workspace, channel).await?;
        Ok(provider.is_some_and(|provider| self.transport(channel, &provider.name).is_some()))
    }

    /// Who sends on Viber for a workspace, by the provider of its settings.
    pub(crate) async fn viber_service(&self, workspace: WorkspaceId) -> Result<ViberService, StoreError> {
        let provider = self.provider(workspace, Channel::Viber).await?;
        let is_bot = provider.is_some_and(|provider| provider.name == provider::VIBER_BOT);
        Ok(if is_bot { ViberService::Bot } else { ViberService::Business })
    }

    /// The same for what goes over a channel: asked only where it matters.
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

    /// The senders of the variants of a campaign: the campaign's, else that of the template, else the workspace's own
    /// (contract section 12.3); or what is wrong with the first that is none.
    async fn campaign_senders(
        &self,
        workspace: WorkspaceId,
        plan: &CampaignPlan,
    ) -> Result<Result<Vec<String>, SenderState>, StoreError> {
        let mut senders = Vec::new();
        for place in plan.places() {
            let of_template = match &plan.from_email {
                Some(_) => None,
                None => self.store().template_head(workspace, plan.template_of(place)).await?,
            };
            let of_template = of_template.and_then(|template| template.design.from_email);
            match self.variant_sender(workspace, plan, of_template.as_deref()).await? {
                Ok(sender) => senders.extend(sender),
                Err(state) => return Ok(Err(state)),
            }
        }
        Ok(Ok(senders))
    }

    /// The sending domains that senders of a workspace belong to, each once.
    pub(crate) async fn domains_of(
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

    /// The sender of a variant: the campaign's, else that of the template, else the workspace's own; or what is wrong
    /// with it. `None` on channels that have none.
    pub(super) async fn variant_sender(
        &self,
        workspace: WorkspaceId,
        plan: &CampaignPlan,
        of_template: Option<&str>,
    ) -> Result<Result<Option<String>, SenderState>, StoreError> {
        self.marketing_sender(workspace, plan.channel, plan.from_email.as_deref(), of_template).await
    }

    /// The sender that is named, else that of the template, else the workspace's own; or what is wrong with it. `None` on
    /// channels that have none.
    pub(super) async fn marketing_sender(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        named: Option<&str>,
        of_template: Option<&str>,
    ) -> Result<Result<Option<String>, SenderState>, StoreError> {
        if channel != Channel::Email {
            return Ok(Ok(None));
        }
        let domains = self.sending_domains(workspace).await?;
        let asked = named.or(of_template).filter(|text| !text.is_empty());
        let asked = asked.map(EmailAddress::parse).transpose();
        Ok(match asked.map(|asked| sender::decide(asked.as_ref(), None, &domains)) {
            Ok(Ok(sender)) => Ok(Some(sender.as_str().to_owned())),
            Ok(Err(DomainError::SenderMissing)) => Err(SenderState::Missing),
            Ok(Err(_)) | Err(_) => Err(SenderState::NotVerified),
        })
    }

    /// Compiles the templates that stand in a plan itself, and adds what is wrong with them.
    pub(crate) async fn compile_sources(&self, plan: &CampaignPlan, violations: &mut Violations) -> Result<(), Error> {
        self.check_sources(plan.sources(), violations).await
    }

    /// Compiles templates, each with the pointer of its member, and adds what is wrong with them.
    pub(crate) async fn check_sources(
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
