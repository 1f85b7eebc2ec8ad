//! What was looked up, for as long as it may be believed.

use std::collections::HashSet;
use std::sync::Arc;

use messaging_core::domain::audience::custom_field::FieldTypes;
use messaging_core::domain::automation::parse::AutomationPlan;
use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::queue::Suspensions;
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::message::content::TemplateUse;
use messaging_core::domain::security::account::Workspace;
use messaging_core::domain::security::api_key::ApiKey;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::domain::template::Template;
use messaging_core::domain::webhook::Webhook;
use messaging_core::ids::{AutomationId, CampaignId, TemplateId, UserId, WorkspaceId};
use messaging_core::ports::store::{Topic, Topics};
use messaging_core::scope::Role;
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

use crate::app::cache::Cache;
use crate::app::watched::Watched;
use crate::caller::SignedIn;

/// The caches.
#[derive(Debug)]
pub(crate) struct Lookups {
    /// By the digest of the secret.
    pub(crate) keys: Cache<[u8; 32], Arc<ApiKey>>,
    pub(crate) sessions: Cache<[u8; 32], Arc<SignedIn>>,
    pub(crate) roles: Cache<(UserId, WorkspaceId), Role>,
    pub(crate) workspaces: Cache<WorkspaceId, Arc<Workspace>>,
    /// The workspaces under deletion.
    pub(crate) ending_workspaces: Watched<HashSet<WorkspaceId>>,
    /// The parts of the queue that are suspended.
    pub(crate) suspensions: Watched<Suspensions>,
    pub(crate) domains: Cache<WorkspaceId, Arc<Vec<SendingDomain>>>,
    pub(crate) providers: Cache<(WorkspaceId, Channel), Arc<Option<Provider>>>,
    pub(crate) fields: Cache<WorkspaceId, Arc<FieldTypes>>,
    pub(crate) has_contacts: Cache<WorkspaceId, bool>,
    pub(crate) segment_read_mask: Cache<WorkspaceId, ReadMask>,
    pub(crate) templates: Cache<(WorkspaceId, TemplateId), Arc<Template>>,
    pub(crate) campaigns: Cache<(WorkspaceId, CampaignId), Arc<Campaign>>,
    /// The templates of a campaign's variants, pinned when it started.
    pub(crate) campaign_templates: Cache<(WorkspaceId, CampaignId), Arc<[TemplateUse]>>,
    /// What versions of automations mean; a version never changes.
    pub(crate) automation_plans: Cache<(WorkspaceId, AutomationId, u32), Arc<AutomationPlan>>,
    pub(crate) listeners: Cache<WorkspaceId, Arc<Listeners>>,
    /// The name of the installation.
    pub(crate) name: Cache<(), Arc<str>>,
}

/// Who wants to hear of a workspace's events.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    /// The webhooks, whatever their state.
    pub(crate) webhooks: Vec<Webhook>,
    /// Until when somebody asks for events.
    pub(crate) followed_until: Option<Timestamp>,
}

/// A channel's provider with its settings, secrets in clear.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The provider's name.
    pub name: String,
    /// Its settings.
    pub settings: Arc<Map<String, Value>>,
}

impl Provider {
    /// Whether it is the same provider under the same settings.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && (Arc::ptr_eq(&self.settings, &other.settings) || self.settings == other.settings)
    }
}

impl Lookups {
    pub(crate) fn new() -> Self {
        Self {
            keys: Cache::new(),
            sessions: Cache::new(),
            roles: Cache::new(),
            workspaces: Cache::new(),
            ending_workspaces: Watched::new(),
            suspensions: Watched::new(),
            domains: Cache::new(),
            providers: Cache::new(),
            fields: Cache::new(),
            has_contacts: Cache::new(),
            segment_read_mask: Cache::new(),
            templates: Cache::new(),
            campaigns: Cache::new(),
            campaign_templates: Cache::new(),
            automation_plans: Cache::new(),
            listeners: Cache::new(),
            name: Cache::new(),
        }
    }

    /// Forgets what is not true any more.
    pub(crate) fn forget(&self, topics: Topics) {
        if topics.contains(Topic::Credentials) {
            self.keys.clear();
            self.sessions.clear();
            self.roles.clear();
        }
        if topics.contains(Topic::Workspaces) {
            self.workspaces.clear();
            self.ending_workspaces.forget();
        }
        if topics.contains(Topic::Queue) {
            self.suspensions.forget();
        }
        if topics.contains(Topic::Domains) {
            self.domains.clear();
        }
        if topics.contains(Topic::Channels) {
            self.providers.clear();
        }
        if topics.contains(Topic::Fields) {
            self.fields.clear();
        }
        if topics.contains(Topic::Contacts) {
            self.has_contacts.clear();
        }
        if topics.contains(Topic::Segments) || topics.contains(Topic::Automations) {
            self.segment_read_mask.clear();
        }
        if topics.contains(Topic::Templates) {
            self.templates.clear();
        }
        if topics.contains(Topic::Campaigns) {
            self.campaigns.clear();
            self.campaign_templates.clear();
        }
        if topics.contains(Topic::Listeners) {
            self.listeners.clear();
        }
        if topics.contains(Topic::Name) {
            self.name.clear();
        }
    }
}
