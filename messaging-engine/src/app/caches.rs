//! What was looked up, for as long as it may be believed.

use std::sync::Arc;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::account::Workspace;
use messaging_core::domain::api_key::ApiKey;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::custom_field::FieldTypes;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::domain::sending_domain::SendingDomain;
use messaging_core::domain::template::Template;
use messaging_core::domain::webhook::Webhook;
use messaging_core::ids::{TemplateId, UserId, WorkspaceId};
use messaging_core::scope::Role;
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

use crate::app::cache::Cache;
use crate::caller::SignedIn;

/// The caches.
#[derive(Debug)]
pub(crate) struct Lookups {
    /// By the digest of the secret.
    pub(crate) keys: Cache<[u8; 32], Arc<ApiKey>>,
    pub(crate) sessions: Cache<[u8; 32], Arc<SignedIn>>,
    pub(crate) roles: Cache<(UserId, WorkspaceId), Role>,
    pub(crate) workspaces: Cache<WorkspaceId, Arc<Workspace>>,
    pub(crate) domains: Cache<WorkspaceId, Arc<Vec<SendingDomain>>>,
    pub(crate) providers: Cache<(WorkspaceId, Channel), Arc<Option<Provider>>>,
    pub(crate) fields: Cache<WorkspaceId, Arc<FieldTypes>>,
    pub(crate) has_contacts: Cache<WorkspaceId, bool>,
    pub(crate) segment_read_mask: Cache<WorkspaceId, ReadMask>,
    pub(crate) templates: Cache<(WorkspaceId, TemplateId), Arc<Template>>,
    pub(crate) listeners: Cache<WorkspaceId, Arc<Listeners>>,
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
            domains: Cache::new(),
            providers: Cache::new(),
            fields: Cache::new(),
            has_contacts: Cache::new(),
            segment_read_mask: Cache::new(),
            templates: Cache::new(),
            listeners: Cache::new(),
        }
    }

    /// Forgets what the changes, now committed, made untrue.
    pub(crate) fn forget(&self, invalidation: CacheInvalidation) {
        if invalidation.credentials {
            self.keys.clear();
            self.sessions.clear();
            self.roles.clear();
        }
        if invalidation.workspaces {
            self.workspaces.clear();
        }
        if invalidation.domains {
            self.domains.clear();
        }
        if invalidation.channels {
            self.providers.clear();
        }
        if invalidation.fields {
            self.fields.clear();
        }
        if invalidation.contacts {
            self.has_contacts.clear();
        }
        if invalidation.segments {
            self.segment_read_mask.clear();
        }
        if invalidation.templates {
            self.templates.clear();
        }
        if invalidation.listeners {
            self.listeners.clear();
        }
    }
}

/// Which look-ups a set of changes makes untrue.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "one flag per cache")]
pub(crate) struct CacheInvalidation {
    credentials: bool,
    workspaces: bool,
    domains: bool,
    channels: bool,
    fields: bool,
    /// Whether contacts were added.
    contacts: bool,
    segments: bool,
    templates: bool,
    listeners: bool,
}

impl CacheInvalidation {
    pub(crate) fn by(changes: &Changes) -> Self {
        let mut invalidation = Self::default();
        for write in changes.writes() {
            match write {
                Write::PutUser(..)
                | Write::DeleteSession(..)
                | Write::PutMember(..)
                | Write::DeleteMember(..)
                | Write::PutApiKey(..) => invalidation.credentials = true,
                Write::PutWorkspace(..) => invalidation.workspaces = true,
                Write::PutDomain(..) | Write::DeleteDomain(..) => invalidation.domains = true,
                Write::PutChannel(..) | Write::DeleteChannel(..) => invalidation.channels = true,
                Write::PutField(..) | Write::DeleteField(..) => invalidation.fields = true,
                Write::PutSegment(..) | Write::DeleteSegment(..) => invalidation.segments = true,
                Write::PutTemplate(..) | Write::DeleteTemplate(..) => invalidation.templates = true,
                Write::PutWebhook(..) | Write::DeleteWebhook(..) | Write::FollowEvents(..) => {
                    invalidation.listeners = true;
                }
                Write::PutContacts(puts) => {
                    invalidation.contacts |= puts.iter().any(|put| put.expect == Expect::Absent);
                }
                _ => {}
            }
        }
        invalidation
    }
}
