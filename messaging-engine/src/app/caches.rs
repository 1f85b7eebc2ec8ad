//! Caches of the hot path's look-ups. An entry expires after a second. A change in this process, or one that the store
//! reports, clears the caches of its topic at once; others, such as `public_lists` and `live_sources`, only expire.

use std::collections::HashSet;
use std::sync::Arc;

use messaging_core::domain::audience::custom_field::FieldTypes;
use messaging_core::domain::automation::parse::AutomationPlan;
use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::ip_pool::IpPool;
use messaging_core::domain::delivery::ip_pool::source::NodeSource;
use messaging_core::domain::delivery::queue::Suspensions;
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::message::content::TemplateUse;
use messaging_core::domain::security::account::Workspace;
use messaging_core::domain::security::api_key::ApiKey;
use messaging_core::domain::security::signature::SigningKey;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::domain::template::Template;
use messaging_core::domain::webhook::Webhook;
use messaging_core::ids::{AutomationId, CampaignId, ListId, TemplateId, UserId, WebhookId, WorkspaceId};
use messaging_core::ports::store::{Topic, Topics};
use messaging_core::scope::Role;
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

use crate::app::cache::Cache;
use crate::app::watched::Watched;
use crate::caller::SignedIn;

/// All caches of an [`App`](crate::app::App), one for each kind of look-up.
#[derive(Debug)]
pub(crate) struct Lookups {
    /// API keys by the digest of their secret.
    pub(crate) api_keys: Cache<[u8; 32], Arc<ApiKey>>,
    /// Sessions by the digest of their token, without the membership, which is looked up for every call.
    pub(crate) sessions: Cache<[u8; 32], Arc<SignedIn>>,
    /// Roles of the active members of workspaces.
    pub(crate) roles: Cache<(UserId, WorkspaceId), Role>,
    pub(crate) workspaces: Cache<WorkspaceId, Arc<Workspace>>,
    /// The workspaces under deletion.
    pub(crate) ending_workspaces: Watched<HashSet<WorkspaceId>>,
    /// The parts of the queue that are suspended.
    pub(crate) suspensions: Watched<Suspensions>,
    /// The IP pools of all workspaces.
    pub(crate) ip_pools: Watched<Vec<IpPool>>,
    /// Sources that the running processes send from.
    pub(crate) live_sources: Watched<Vec<NodeSource>>,
    /// Sending domains of a workspace, verified or not.
    pub(crate) domains: Cache<WorkspaceId, Arc<Vec<SendingDomain>>>,
    /// The provider of a channel; `None` if the channel has no settings.
    pub(crate) providers: Cache<(WorkspaceId, Channel), Arc<Option<Provider>>>,
    /// Declared types of the attributes of a workspace's contacts.
    pub(crate) field_types: Cache<WorkspaceId, Arc<FieldTypes>>,
    /// The public lists of a workspace.
    pub(crate) public_lists: Cache<WorkspaceId, Arc<Vec<ListId>>>,
    /// True for a workspace with at least one contact.
    pub(crate) has_contacts: Cache<WorkspaceId, bool>,
    /// Data of contacts that the dynamic segments of a workspace read; see `Segments::segment_read_mask`.
    pub(crate) segment_read_mask: Cache<WorkspaceId, ReadMask>,
    pub(crate) templates: Cache<(WorkspaceId, TemplateId), Arc<Template>>,
    pub(crate) campaigns: Cache<(WorkspaceId, CampaignId), Arc<Campaign>>,
    /// The template versions of a campaign's variants, pinned when it started.
    pub(crate) campaign_templates: Cache<(WorkspaceId, CampaignId), Arc<[TemplateUse]>>,
    /// Parsed versions of automations. No change clears them, because a version never changes.
    pub(crate) automation_plans: Cache<(WorkspaceId, AutomationId, u32), Arc<AutomationPlan>>,
    /// The webhooks of a workspace, and the readers of its event log.
    pub(crate) listeners: Cache<WorkspaceId, Arc<Listeners>>,
    /// Keys that sign requests to a webhook, by its sealed secret, which opens for that webhook alone.
    pub(crate) webhook_keys: Cache<(WebhookId, String), Arc<SigningKey>>,
    /// The name of the installation.
    pub(crate) installation_name: Cache<(), Arc<str>>,
}

/// The recipients of a workspace's events: its webhooks, and the readers of its event log.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    /// The webhooks, in any state.
    pub(crate) webhooks: Vec<Webhook>,
    /// Time until which events are also logged for readers; `None` if no reader has asked for events.
    pub(crate) followed_until: Option<Timestamp>,
}

/// A channel's provider with its settings, secrets in clear.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The provider's name.
    pub name: String,
    /// Settings of the provider, secrets in clear.
    pub settings: Arc<Map<String, Value>>,
}

impl Provider {
    /// Returns true if both have the same name and settings.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && (Arc::ptr_eq(&self.settings, &other.settings) || self.settings == other.settings)
    }
}

impl Lookups {
    pub(crate) fn new() -> Self {
        Self {
            api_keys: Cache::new(),
            sessions: Cache::new(),
            roles: Cache::new(),
            workspaces: Cache::new(),
            ending_workspaces: Watched::new(),
            suspensions: Watched::new(),
            ip_pools: Watched::new(),
            live_sources: Watched::new(),
            domains: Cache::new(),
            providers: Cache::new(),
            field_types: Cache::new(),
            public_lists: Cache::new(),
            has_contacts: Cache::new(),
            segment_read_mask: Cache::new(),
            templates: Cache::new(),
            campaigns: Cache::new(),
            campaign_templates: Cache::new(),
            automation_plans: Cache::new(),
            listeners: Cache::new(),
            webhook_keys: Cache::new(),
            installation_name: Cache::new(),
        }
    }

    /// Clears the caches that changes of these topics concern.
    pub(crate) fn forget(&self, topics: Topics) {
        if topics.contains(Topic::Credentials) {
            self.api_keys.clear();
            self.sessions.clear();
            self.roles.clear();
        }
        if topics.contains(Topic::Pools) {
            self.ip_pools.forget();
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
            self.field_types.clear();
        }
        if topics.contains(Topic::Contacts) {
            // The topic also reports the first contact of a workspace: only entries that say it has none are dropped.
            self.has_contacts.retain(|has_any| *has_any);
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
            self.webhook_keys.clear();
        }
        if topics.contains(Topic::Name) {
            self.installation_name.clear();
        }
    }
}
