//! Documents: records that are stored whole, read by their key, listed and deleted.

use crate::domain::audience::custom_field::CustomField;
use crate::domain::audience::form::Form;
use crate::domain::audience::import::Import;
use crate::domain::audience::list::ContactList;
use crate::domain::campaign::Campaign;
use crate::domain::campaign::progress::CampaignProgress;
use crate::domain::channel::Channel;
use crate::domain::channel::settings::ChannelSettings;
use crate::domain::delivery::ip_pool::IpPool;
use crate::domain::mail::link_token::UrlKey;
use crate::domain::mail::sending_domain::SendingDomain;
use crate::domain::security::account::{Member, User, Workspace};
use crate::domain::security::api_key::ApiKey;
use crate::domain::template::Template;
use crate::domain::webhook::Webhook;
use crate::ids::{CampaignId, DomainId, FieldId, FormId, ListId, PoolId, UserId, WebhookId, WorkspaceId};

use super::ContactSends;

/// A record that is stored whole.
#[derive(Debug, Clone)]
pub enum Document {
    /// A user. The email is unique.
    User(User),
    /// A workspace. A conflict if it is created under the id of a deleted one.
    Workspace(Workspace),
    /// A membership of a user in a workspace.
    Member(Member),
    /// An API key. The prefix is unique.
    ApiKey(ApiKey),
    /// A sending domain. The name is unique in its workspace.
    Domain(Box<SendingDomain>),
    /// An IP pool. The name is unique in its workspace, and among the shared ones.
    Pool(IpPool),
    /// The settings of a channel.
    Channel(ChannelSettings),
    /// A list of contacts; an existing one gets another name and other settings.
    List(ContactList),
    /// A form by which readers subscribe.
    Form(Box<Form>),
    /// A custom field. The key is unique in the workspace.
    Field(CustomField),
    /// An import.
    Import(Box<Import>),
    /// A template. An existing one gets its next version, which becomes the current one.
    Template(Box<Template>),
    /// A campaign. A conflict if it begins to hold the resources that it names
    /// ([`CampaignStatus::holds_references`](crate::domain::campaign::CampaignStatus::holds_references)) and one of
    /// these is gone.
    Campaign(Box<Campaign>),
    /// The progress of a campaign.
    CampaignProgress(Box<CampaignProgress>),
    /// Times of the marketing messages to a contact. A conflict if the contact is gone. A revision of a contact and
    /// channel is never used twice: a record without times stays until it is swept.
    ContactSends(ContactSends),
    /// A webhook.
    Webhook(Box<Webhook>),
}

impl Document {
    /// True if storing it adds something new on behalf of a caller, see [`Changes::adds`](super::Changes::adds).
    pub(super) const fn adds(&self) -> bool {
        !matches!(self, Self::CampaignProgress(_) | Self::ContactSends(_))
    }
}

/// Key of a document to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentKey {
    /// The membership of a user.
    Member(WorkspaceId, UserId),
    /// A sending domain.
    Domain(WorkspaceId, DomainId),
    /// An IP pool; `None` for a shared one.
    Pool(Option<WorkspaceId>, PoolId),
    /// The settings of a channel.
    Channel(WorkspaceId, Channel),
    /// A list; its members are removed later.
    List(WorkspaceId, ListId),
    /// A form; its address is not found from then on.
    Form(WorkspaceId, FormId),
    /// A custom field.
    Field(WorkspaceId, FieldId),
    /// A campaign with its progress, its audience and its counters; its messages stay.
    Campaign(WorkspaceId, CampaignId),
    /// A webhook; its deliveries cannot be reached any more.
    Webhook(WorkspaceId, WebhookId),
    /// The target of redirected links, which are not found from then on.
    Url(WorkspaceId, UrlKey),
}

macro_rules! documents {
    ($($record:ty => $variant:ident),* $(,)?) => {$(
        impl From<$record> for Document {
            fn from(record: $record) -> Self {
                Self::$variant(record.into())
            }
        }
    )*};
}

documents!(
    User => User,
    Workspace => Workspace,
    Member => Member,
    ApiKey => ApiKey,
    SendingDomain => Domain,
    IpPool => Pool,
    ChannelSettings => Channel,
    ContactList => List,
    Form => Form,
    CustomField => Field,
    Import => Import,
    Template => Template,
    Campaign => Campaign,
    CampaignProgress => CampaignProgress,
    ContactSends => ContactSends,
    Webhook => Webhook,
    Box<Import> => Import,
    Box<Template> => Template,
    Box<Campaign> => Campaign,
    Box<CampaignProgress> => CampaignProgress,
    Box<Webhook> => Webhook,
);
