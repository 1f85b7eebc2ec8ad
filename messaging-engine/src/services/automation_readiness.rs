//! Requirements of an automation in its workspace: the resources it names, senders, providers of its channels, allowed
//! web addresses.
//!
//! Contract section 13.4, "Checks". Checked when an automation is activated, and when an active one is changed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use messaging_core::domain::automation::Design;
use messaging_core::domain::automation::check::{Facts, ResolvedDesignReference, SendFacts};
use messaging_core::domain::automation::graph::Send;
use messaging_core::domain::automation::parse::{AutomationPlan, Reading};
use messaging_core::domain::campaign::check::ReferenceTarget;
use messaging_core::domain::campaign::schedule::SenderState;
use messaging_core::domain::segment::parse::Reference;
use messaging_core::domain::segment::resolve::{Unresolvable, named};
use messaging_core::ids::{DomainId, ListId, TemplateId, WorkspaceId};
use messaging_core::ports::fetch::UrlFault;
use messaging_core::ports::store::StoreError;
use messaging_core::violation::{FieldCode, Violations};

use crate::app::App;
use crate::error::Error;

impl App {
    /// Parses a design that was sent. Faults that no automation may have are added to `violations`, also those that
    /// only this installation can find: templates that do not compile, and texts that are no web addresses.
    pub(crate) async fn read_design(&self, design: &Design, violations: &mut Violations) -> Result<Reading, Error> {
        let reading = design.read();
        let mut found = reading.shape.clone();
        for (pointer, url) in &reading.urls {
            if self.fetch().check(url) == Err(UrlFault::Malformed) {
                found.add(pointer, FieldCode::InvalidFormat, UrlFault::Malformed);
            }
        }
        self.check_templates(reading.sources.clone(), &mut found).await?;
        violations.merge(found);
        Ok(reading)
    }

    /// Returns everything that keeps a design from being active in a workspace.
    pub(crate) async fn automation_faults(
        &self,
        workspace: WorkspaceId,
        reading: &Reading,
    ) -> Result<Violations, StoreError> {
        let mut facts = Facts { found: self.find_named(workspace, &reading.references).await?, ..Facts::default() };
        let refused = reading.urls.iter().filter(|(_, url)| self.fetch().check(url) == Err(UrlFault::NotAllowed));
        facts.refused_urls = refused.map(|(pointer, _)| pointer.clone()).collect();
        facts.sends = self.send_facts(workspace, &reading.sends).await?;
        let mut faults = reading.faults_with(&facts);
        if let Some(plan) = &reading.plan {
            self.check_lengths(workspace, plan, &mut faults).await?;
        }
        Ok(faults)
    }

    /// Looks up the resources that a design or a filter names, each once.
    pub(super) async fn find_named(
        &self,
        workspace: WorkspaceId,
        references: &[(String, Reference)],
    ) -> Result<Vec<ResolvedDesignReference>, StoreError> {
        let list = |(_, reference): &(String, Reference)| match reference {
            Reference::List(id) => Some(*id),
            _ => None,
        };
        let lists: Vec<ListId> = references.iter().filter_map(list).collect();
        let lists = if lists.is_empty() { lists } else { self.store().lists_among(workspace, &lists).await? };
        let mut known: HashMap<Reference, ReferenceTarget> = HashMap::new();
        let mut found = Vec::with_capacity(references.len());
        for (pointer, reference) in references {
            let target = match known.get(reference) {
                Some(target) => *target,
                None => self.find_one(workspace, *reference, &lists).await?,
            };
            known.insert(*reference, target);
            found.push(ResolvedDesignReference { pointer: pointer.clone(), reference: *reference, target });
        }
        Ok(found)
    }

    async fn find_one(
        &self,
        workspace: WorkspaceId,
        reference: Reference,
        lists: &[ListId],
    ) -> Result<ReferenceTarget, StoreError> {
        let is_there = match reference {
            Reference::List(id) => lists.contains(&id),
            Reference::Template(id) => return self.find_template(workspace, id).await,
            Reference::Segment(id) => self.store().segment(workspace, id).await?.is_some(),
            Reference::Campaign(id) => self.store().campaign(workspace, id).await?.is_some(),
            Reference::Automation(id) => self.store().automation(workspace, id).await?.is_some(),
        };
        Ok(if is_there { ReferenceTarget::Other } else { ReferenceTarget::Nothing })
    }

    /// Returns the facts about the sends of a design whose templates exist.
    async fn send_facts(&self, workspace: WorkspaceId, sends: &[(usize, Send)]) -> Result<Vec<SendFacts>, StoreError> {
        let mut heads: HashMap<TemplateId, _> = HashMap::new();
        let mut facts = Vec::new();
        for (node, send) in sends {
            let head = match heads.entry(send.template_id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.store().template_head(workspace, send.template_id).await?),
            };
            let Some(head) = head else { continue };
            let template_sender = head.design.from_email.as_deref();
            let named = send.from_email.as_deref();
            let sender = self.marketing_sender(workspace, head.channel, named, template_sender).await?;
            facts.push(SendFacts {
                node: *node,
                channel: head.channel,
                parts: head.parts,
                channel_is_configured: self.has_transport(workspace, head.channel).await?,
                sender: sender.err().unwrap_or(SenderState::Verified),
            });
        }
        Ok(facts)
    }

    /// Returns the domains that the emails of a design are sent from.
    pub(crate) async fn automation_domains(
        &self,
        workspace: WorkspaceId,
        sends: &[(usize, Send)],
    ) -> Result<Vec<DomainId>, StoreError> {
        let mut senders = Vec::new();
        for (_, send) in sends {
            let Some(head) = self.store().template_head(workspace, send.template_id).await? else { continue };
            let template_sender = head.design.from_email.as_deref();
            let sender =
                self.marketing_sender(workspace, head.channel, send.from_email.as_deref(), template_sender).await?;
            senders.extend(sender.ok().flatten());
        }
        self.sending_domains_of_senders(workspace, &senders).await
    }

    /// Adds violations for filters that have too many conditions together with those of the segments that they name.
    async fn check_lengths(
        &self,
        workspace: WorkspaceId,
        plan: &AutomationPlan,
        faults: &mut Violations,
    ) -> Result<(), StoreError> {
        let naming: Vec<_> = plan.filters().into_iter().filter(|(_, filter)| named(filter).next().is_some()).collect();
        if naming.is_empty() {
            return Ok(());
        }
        let segments = self.segment_graph(workspace).await?;
        for (pointer, filter) in naming {
            if segments.resolve(filter) == Err(Unresolvable::TooLong) {
                let rule = "has more than 1000 conditions with those of the segments that it names";
                faults.add(pointer, FieldCode::TooManyItems, rule);
            }
        }
        Ok(())
    }
}
