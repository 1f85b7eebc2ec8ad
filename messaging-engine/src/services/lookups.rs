//! Cached look-ups of the hot path: credentials, verified domains, channel settings.

use std::sync::Arc;

use messaging_core::changes::{AccountWrite, Changes, Write};
use messaging_core::domain::audience::custom_field::{FieldTypes, MAX_FIELDS};
use messaging_core::domain::audience::list::MAX_PUBLIC;
use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::provider::BUILTIN;
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::message::Message;
use messaging_core::domain::message::content::TemplateUse;
use messaging_core::domain::security::account::{Member, Workspace};
use messaging_core::domain::security::api_key::KeyText;
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::signature::SigningKey;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::domain::template::Template;
use messaging_core::domain::webhook::{MAX_WEBHOOKS, Webhook};
use messaging_core::ids::{CampaignId, Id as _, ListId, TemplateId, UserId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, StoreError};
use messaging_core::scope::{Access, Role};

use crate::app::App;
use crate::app::Provider;
use crate::app::caches::Listeners;
use crate::caller::{Caller, SignedIn};
use crate::error::Error;
use crate::vault::Unopenable;

/// Largest number of sending domains of a workspace.
pub(crate) const MAX_LOOKED_AT: usize = 1000;

/// Prefix of session tokens.
pub(crate) const SESSION_MARKER: &str = "ms_";

impl App {
    /// Returns the caller that a bearer token belongs to. Unknown, wrong, revoked and expired tokens get the same
    /// error.
    pub async fn authenticate(&self, token: &str) -> Result<Caller, Error> {
        if token.starts_with(SESSION_MARKER) {
            let session = self.signed_in(Digest::of(token)).await?.ok_or(Error::InvalidCredentials)?;
            return Ok(Caller::Session(session));
        }
        let text = KeyText::parse(token).ok_or(Error::InvalidCredentials)?;
        // Looked up by the secret, never by the prefix: a wrong secret takes the same way, in the cache and in the
        // store, whether or not there is a key with this prefix, so that time does not tell which prefixes exist.
        let digest = Digest::of(text.secret);
        let load =
            async { Ok::<_, StoreError>(self.store().api_key_by_secret(&digest, text.prefix).await?.map(Arc::new)) };
        let key = self.lookups().api_keys.get(digest.as_bytes(), self.now(), load).await?;
        match key {
            Some(key) if key.prefix == text.prefix && key.is_live(self.now()) => {
                self.note_use(key.id.to_bytes(), Write::Account(AccountWrite::TouchApiKey(key.id, self.now())));
                Ok(Caller::Key(key))
            }
            _ => Err(Error::InvalidCredentials),
        }
    }

    async fn signed_in(&self, digest: Digest) -> Result<Option<Arc<SignedIn>>, Error> {
        let now = self.now();
        let load = async {
            let Some(session) = self.store().session(&digest).await? else { return Ok(None) };
            let Some(user) = self.store().user(session.user_id).await? else { return Ok(None) };
            if session.password_version != user.record.password_version {
                return Ok(None);
            }
            Ok::<_, StoreError>(Some(Arc::new(SignedIn {
                id: session.id,
                token_digest: session.token_digest,
                expires_at: session.expires_at,
                user: user.record,
                membership: None,
            })))
        };
        let session = self.lookups().sessions.get(digest.as_bytes(), now, load).await?;
        let session = session.filter(|session| now < session.expires_at);
        if let Some(session) = &session {
            self.note_use(session.id.to_bytes(), Write::Account(AccountWrite::TouchSession(digest, now)));
        }
        Ok(session)
    }

    /// Checks that a caller may run an operation with this access, and in which workspace: [`Caller::admit`] after
    /// looking up the one membership that the call is about. Returns the caller to run the operation as.
    ///
    /// A person without a second factor is refused where the workspace demands one.
    ///
    /// This is one look-up by key, however many workspaces a person is a member of, by their own will or not.
    pub(crate) async fn admit_caller(
        &self,
        mut caller: Caller,
        access: Access,
        in_path: Option<&str>,
        in_header: Option<&str>,
    ) -> Result<(Caller, Option<WorkspaceId>), Error> {
        if let Caller::Session(session) = &caller {
            let named = in_path.or(in_header).and_then(|text| text.parse().ok());
            let membership = match named {
                Some(workspace) => self.role_of(session.user.id, workspace).await?.map(|role| (workspace, role)),
                None => None,
            };
            if membership != session.membership {
                caller = Caller::Session(Arc::new(SignedIn { membership, ..SignedIn::clone(session) }));
            }
        }
        let workspace = caller.admit(access, in_path, in_header)?;
        if let (Caller::Session(session), Some(id)) = (&caller, workspace)
            && !session.user.second_factor
            && self.workspace(id).await?.is_some_and(|workspace| workspace.require_second_factor)
        {
            return Err(Error::SecondFactorMissing);
        }
        Ok((caller, workspace))
    }

    async fn role_of(&self, user: UserId, workspace: WorkspaceId) -> Result<Option<Role>, StoreError> {
        let load = async {
            let member = self.store().member(workspace, user).await?.map(|stored| stored.record);
            Ok(member.filter(Member::is_active).map(|member| member.role))
        };
        self.lookups().roles.get(&(user, workspace), self.now(), load).await
    }

    /// Returns a workspace, at most a second old.
    pub async fn workspace(&self, id: WorkspaceId) -> Result<Option<Arc<Workspace>>, StoreError> {
        let load = async { Ok(self.store().workspace(id).await?.map(|stored| Arc::new(stored.record))) };
        self.lookups().workspaces.get(&id, self.now(), load).await
    }

    /// The sending domains of a workspace, verified or not.
    pub async fn sending_domains(&self, workspace: WorkspaceId) -> Result<Arc<Vec<SendingDomain>>, StoreError> {
        let page = PageRequest { after: None, limit: MAX_LOOKED_AT };
        let load = async { Ok(Some(Arc::new(self.store().domains(workspace, page).await?.items))) };
        let domains = self.lookups().domains.get(&workspace, self.now(), load).await?;
        Ok(domains.unwrap_or_default())
    }

    /// The provider that carries a channel for a workspace; `None` when the channel has no settings.
    pub async fn provider(&self, workspace: WorkspaceId, channel: Channel) -> Result<Option<Provider>, StoreError> {
        let load = async {
            let stored = self.store().channel(workspace, channel).await?;
            let provider = match stored {
                Some(stored) => Some(Provider {
                    settings: Arc::new(self.open_secrets(&stored.record)),
                    name: stored.record.provider,
                }),
                // Email needs no settings: it is delivered to the recipients' own servers.
                None if channel == Channel::Email => {
                    Some(Provider { name: BUILTIN.to_owned(), settings: Arc::default() })
                }
                None => None,
            };
            Ok(Some(Arc::new(provider)))
        };
        let provider = self.lookups().providers.get(&(workspace, channel), self.now(), load).await?;
        Ok(provider.and_then(|provider| provider.as_ref().clone()))
    }

    /// The declared types of a workspace's attributes.
    pub(crate) async fn field_types(&self, workspace: WorkspaceId) -> Result<Arc<FieldTypes>, StoreError> {
        let page = PageRequest { after: None, limit: MAX_FIELDS };
        let load = async {
            let fields = self.store().custom_fields(workspace, page).await?.items;
            let types: FieldTypes = fields.into_iter().map(|field| (field.key, field.kind)).collect();
            Ok(Some(Arc::new(types)))
        };
        let types = self.lookups().field_types.get(&workspace, self.now(), load).await?;
        Ok(types.unwrap_or_default())
    }

    /// The head of a template's current version: what accepting a message needs to know of it.
    pub async fn template_head(
        &self,
        workspace: WorkspaceId,
        id: TemplateId,
    ) -> Result<Option<Arc<Template>>, StoreError> {
        let load = async { Ok(self.store().template_head(workspace, id).await?.map(Arc::new)) };
        self.lookups().templates.get(&(workspace, id), self.now(), load).await
    }

    /// Returns a campaign, at most a second old.
    pub(crate) async fn campaign(
        &self,
        workspace: WorkspaceId,
        id: CampaignId,
    ) -> Result<Option<Arc<Campaign>>, StoreError> {
        let load = async { Ok(self.store().campaign(workspace, id).await?.map(|stored| Arc::new(stored.record))) };
        self.lookups().campaigns.get(&(workspace, id), self.now(), load).await
    }

    /// Returns the name of a message's variant; `None` if its campaign compares none.
    pub(crate) async fn variant_name(&self, message: &Message) -> Result<Option<String>, StoreError> {
        let Some((campaign, place)) = message.campaign_id.zip(message.variant) else { return Ok(None) };
        let campaign = self.campaign(message.workspace_id, campaign).await?;
        let variant = campaign.as_ref().and_then(|campaign| campaign.plan.variants.get(usize::from(place)));
        Ok(variant.map(|variant| variant.name.clone()))
    }

    /// The templates of a campaign's variants, pinned when it started; `None` before that.
    pub(crate) async fn campaign_templates(
        &self,
        workspace: WorkspaceId,
        id: CampaignId,
    ) -> Result<Option<Arc<[TemplateUse]>>, StoreError> {
        let load = async {
            let progress = self.store().campaign_progress(workspace, id).await?;
            Ok(progress.map(|stored| Arc::from(stored.record.templates)))
        };
        self.lookups().campaign_templates.get(&(workspace, id), self.now(), load).await
    }

    /// Returns true if the workspace has any contacts; if it has none, accepting a message looks for none.
    pub(crate) async fn has_contacts(&self, workspace: WorkspaceId) -> Result<bool, StoreError> {
        let load = async { Ok(Some(self.store().contact_count(workspace).await? > 0)) };
        let has = self.lookups().has_contacts.get(&workspace, self.now(), load).await?;
        Ok(has.unwrap_or(false))
    }

    /// The ids of the public lists of a workspace, up to a second old.
    pub(crate) async fn public_list_ids(&self, workspace: WorkspaceId) -> Result<Arc<Vec<ListId>>, StoreError> {
        let load = async {
            let lists = self.store().public_lists(workspace, MAX_PUBLIC).await?;
            Ok(Some(Arc::new(lists.into_iter().map(|list| list.id).collect())))
        };
        let lists = self.lookups().public_lists.get(&workspace, self.now(), load).await?;
        Ok(lists.unwrap_or_default())
    }

    /// Returns the contact data that the dynamic segments of a workspace read.
    pub(super) async fn segment_read_mask(&self, workspace: WorkspaceId) -> Result<ReadMask, StoreError> {
        let load = async { Ok(Some(self.store().segment_read_mask(workspace).await?)) };
        let read_mask = self.lookups().segment_read_mask.get(&workspace, self.now(), load).await?;
        Ok(read_mask.unwrap_or_default())
    }

    /// Returns the name of the installation, which is in every Message-ID, whichever process sends. Until it has one,
    /// this process's own.
    pub(crate) async fn installation_name(&self) -> Result<Arc<str>, StoreError> {
        let own = || self.settings().hostname.clone();
        let load = async { Ok(Some(Arc::from(self.store().installation_name().await?.unwrap_or_else(own)))) };
        let name = self.lookups().installation_name.get(&(), self.now(), load).await?;
        Ok(name.unwrap_or_default())
    }

    /// Returns the webhooks of a workspace, and the time until which a reader follows its events.
    pub(crate) async fn listeners(&self, workspace: WorkspaceId) -> Result<Arc<Listeners>, StoreError> {
        let page = PageRequest { after: None, limit: MAX_WEBHOOKS };
        let load = async {
            let webhooks = self.store().webhooks(workspace, page).await?.items;
            let followed_until = self.store().followed_until(workspace).await?;
            Ok(Some(Arc::new(Listeners { webhooks, followed_until })))
        };
        let listeners = self.lookups().listeners.get(&workspace, self.now(), load).await?;
        Ok(listeners.unwrap_or_default())
    }

    /// Returns the key that signs requests to a webhook with one of its secrets; `None` if the secret cannot be read.
    pub(crate) async fn webhook_key(&self, webhook: &Webhook, sealed: &str) -> Option<Arc<SigningKey>> {
        let load = async {
            let secret = self.vault().open(&webhook.secret_place(), sealed)?;
            Ok::<_, Unopenable>(SigningKey::parse(&secret).ok().map(Arc::new))
        };
        let keys = &self.lookups().webhook_keys;
        keys.get(&(webhook.id, sealed.to_owned()), self.now(), load).await.unwrap_or_else(|error| {
            tracing::error!(webhook = %webhook.id, %error, "a webhook cannot be signed");
            None
        })
    }

    /// Stores the last use of a key or session, at most once a minute each, without anybody waiting for it.
    fn note_use(&self, credential: [u8; 16], touch: Write) {
        if self.last_uses().is_news(credential, self.monotonic()) {
            let app = self.clone();
            tokio::spawn(async move {
                let changes = Changes::from_iter([touch]);
                if let Err(error) = app.commit_in_background(changes).await {
                    tracing::debug!(error = %messaging_core::error::Chain(&error), "the last use of a credential was not noted");
                }
            });
        }
    }
}
