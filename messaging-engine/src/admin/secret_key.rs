//! Rotation of the secret key while the installation works.
//!
//! A key that all processes hold becomes the one that they seal and sign with, by one commit. Stored secrets that were
//! sealed before are sealed anew, a record at a time. Until then, and for tokens in mail that was sent already, the
//! older keys stay in the ring.

use std::sync::atomic::{AtomicU64, Ordering};

use messaging_core::changes::{AccountWrite, Changes, Expect, SwitchSecretKey, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::settings::ChannelSettings;
use messaging_core::domain::mail::auto_dns::KeptDnsAccount;
use messaging_core::domain::mail::sending_domain::{DkimKey, SendingDomain};
use messaging_core::domain::security::account::Workspace;
use messaging_core::domain::security::factor::{Factor, FactorProof};
use messaging_core::domain::security::secret_key::{SecretKey, replace_channel_secrets};
use messaging_core::domain::webhook::Webhook;
use messaging_core::ids::{DomainId, FactorId, UserId, WebhookId, WorkspaceId};
use messaging_core::ports::store::{CommitError, PageRequest, Slice, StoreError};
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::Error;
use crate::services::auditing::Command;
use crate::vault::{KeyRefused, check_value, is_checked_by};

/// Number of records that are read at a time.
const PAGE_SIZE: usize = 100;

/// The most attempts to commit the switch to another key while other commits conflict with it.
const MAX_ATTEMPTS: usize = 8;

/// Numbers of sealed values that were sealed anew, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResealReport {
    /// Sending domains with DKIM keys.
    pub domains: u64,
    /// Channels with settings of a provider.
    pub channels: u64,
    /// Webhooks with secrets.
    pub webhooks: u64,
    /// Second factors of users.
    pub factors: u64,
    /// Secrets that no key opens; they stay as they are.
    pub unreadable: u64,
}

impl ResealReport {
    /// Records that were sealed anew.
    pub const fn records(&self) -> u64 {
        self.domains + self.channels + self.webhooks + self.factors
    }

    /// Adds the numbers of a later pass. Its number of unreadable secrets replaces the one before, because every pass
    /// meets the same ones.
    pub fn add(&mut self, other: &Self) {
        self.domains += other.domains;
        self.channels += other.channels;
        self.webhooks += other.webhooks;
        self.factors += other.factors;
        self.unreadable = other.unreadable;
    }
}

/// Makes a key the one that all processes seal and sign with, and answers `true`, also if it was that already. This
/// process and all others must hold it; answers `false`, and changes nothing, where one does not
/// ([`key_holders`](messaging_core::ports::store::Installation::key_holders)).
pub async fn switch_secret_key(app: &App, key: &SecretKey) -> Result<bool, Error> {
    let id = key.id();
    for _ in 0..MAX_ATTEMPTS {
        let before = app.store().key_check().await?.ok_or_else(|| Error::internal(KeyRefused::WrongKey))?;
        if !is_checked_by(key, &before) {
            let after = check_value(key, app.entropy());
            let switch = SwitchSecretKey { before, after, key: id.clone() };
            let changes = Changes::from_iter([Write::SwitchSecretKey(Box::new(switch))]);
            let command = Command::new("admin rotate-secret-key", "installation", Some(id.clone()), None);
            match app.commit(app.record_command(changes, command).await?).await {
                Ok(()) => {}
                Err(CommitError::Conflict) => {
                    if app.store().key_holders().await?.iter().any(|holder| !holder.holds(&id)) {
                        return Ok(false);
                    }
                    continue;
                }
                Err(error) => return Err(error.into_store_error().into()),
            }
        }
        app.take_secret_keys(&app.secret_keys()).await.map_err(Error::internal)?;
        return Ok(true);
    }
    Err(Error::Unavailable { retry_after: 1 })
}

/// Seals anew what is sealed under an older key, each record in a commit of its own. It can be stopped anywhere and
/// begun again.
pub async fn reseal(app: &App) -> Result<ResealReport, Error> {
    let mut report = ResealReport::default();
    let mut workspaces = Pages::default();
    while let Some(page) = workspaces.next(|page| app.store().workspaces(page)).await? {
        for Workspace { id, .. } in page {
            reseal_workspace(app, id, &mut report).await?;
        }
    }
    let (sealer, mut factors) = (Sealer::new(app), Pages::default());
    while let Some(page) = factors.next(|page| app.store().factors(page)).await? {
        for mut factor in page {
            if sealer.seal_factor(&mut factor) {
                report.factors += u64::from(reseal_factor(app, factor.user_id, factor.id).await?);
            }
        }
    }
    report.unreadable += sealer.unreadable();
    Ok(report)
}

/// Seals anew the secrets of a workspace's sending domains, webhooks and channels, and adds to the report. Each record
/// of a page is sealed in memory first, to see whether it has to change; only then it is read once more, with its
/// revision, and committed.
async fn reseal_workspace(app: &App, workspace: WorkspaceId, report: &mut ResealReport) -> Result<(), Error> {
    let sealer = Sealer::new(app);
    let mut domains = Pages::default();
    while let Some(page) = domains.next(|page| app.store().domains(workspace, page)).await? {
        for mut domain in page {
            if sealer.seal_domain(&mut domain) {
                report.domains += u64::from(reseal_domain(app, workspace, domain.id).await?);
            }
        }
    }
    let mut webhooks = Pages::default();
    while let Some(page) = webhooks.next(|page| app.store().webhooks(workspace, page)).await? {
        for mut webhook in page {
            if sealer.seal_webhook(&mut webhook) {
                report.webhooks += u64::from(reseal_webhook(app, workspace, webhook.id).await?);
            }
        }
    }
    for mut settings in app.store().channels(workspace).await? {
        if sealer.seal_channel(&mut settings) {
            report.channels += u64::from(reseal_channel(app, workspace, settings.channel).await?);
        }
    }
    report.unreadable += sealer.unreadable();
    Ok(())
}

/// Seals the DKIM keys of a sending domain anew in a commit of its own; answers whether one was changed.
async fn reseal_domain(app: &App, workspace: WorkspaceId, id: DomainId) -> Result<bool, Error> {
    app.until_committed(|| async {
        let Some(mut found) = app.store().domain(workspace, id).await? else { return Ok((Changes::default(), false)) };
        let is_new = Sealer::new(app).seal_domain(&mut found.record);
        let write = is_new.then_some(Write::put(found.record, Expect::Revision(found.revision)));
        Ok((write.into_iter().collect(), is_new))
    })
    .await
}

/// Seals the secrets of a webhook anew in a commit of its own; answers whether one was changed.
async fn reseal_webhook(app: &App, workspace: WorkspaceId, id: WebhookId) -> Result<bool, Error> {
    app.until_committed(|| async {
        let Some(mut found) = app.store().webhook(workspace, id).await? else { return Ok((Changes::default(), false)) };
        let is_new = Sealer::new(app).seal_webhook(&mut found.record);
        let write = is_new.then_some(Write::put(Box::new(found.record), Expect::Revision(found.revision)));
        Ok((write.into_iter().collect(), is_new))
    })
    .await
}

/// Seals the secrets in the settings of a channel anew in a commit of its own; answers whether one was changed.
async fn reseal_channel(app: &App, workspace: WorkspaceId, channel: Channel) -> Result<bool, Error> {
    app.until_committed(|| async {
        let found = app.store().channel(workspace, channel).await?;
        let Some(mut found) = found else { return Ok((Changes::default(), false)) };
        let is_new = Sealer::new(app).seal_channel(&mut found.record);
        let write = is_new.then_some(Write::put(found.record, Expect::Revision(found.revision)));
        Ok((write.into_iter().collect(), is_new))
    })
    .await
}

/// Seals the secret of a second factor anew in a commit of its own; answers whether it was changed.
async fn reseal_factor(app: &App, user: UserId, id: FactorId) -> Result<bool, Error> {
    app.until_committed(|| async {
        let Some(mut found) = app.store().factor(user, id).await? else { return Ok((Changes::default(), false)) };
        let is_new = Sealer::new(app).seal_factor(&mut found.record);
        let put = AccountWrite::PutFactor(Box::new(found.record), Expect::Revision(found.revision));
        Ok((is_new.then_some(Write::Account(put)).into_iter().collect(), is_new))
    })
    .await
}

/// Seals records anew, in memory, and counts the secrets that no key opens. Each `seal_…` answers whether anything
/// changed.
struct Sealer<'a> {
    app: &'a App,
    unreadable: AtomicU64,
}

impl<'a> Sealer<'a> {
    fn new(app: &'a App) -> Self {
        Self { app, unreadable: AtomicU64::new(0) }
    }

    fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// The secret sealed under the first key. `None` where it is so already, or where no key opens it, which is logged
    /// and counted.
    fn resealed(&self, place: &str, sealed: &str) -> Option<String> {
        self.app.vault().reseal(place, sealed, self.app.entropy()).unwrap_or_else(|error| {
            tracing::warn!(place, %error, "a secret stays sealed as it is");
            self.unreadable.fetch_add(1, Ordering::Relaxed);
            None
        })
    }

    /// Replaces a secret by the one sealed anew; answers whether it changed.
    fn replace(&self, place: &str, sealed: &mut String) -> bool {
        let resealed = self.resealed(place, sealed);
        let is_new = resealed.is_some();
        if let Some(resealed) = resealed {
            *sealed = resealed;
        }
        is_new
    }

    fn seal_domain(&self, domain: &mut SendingDomain) -> bool {
        let id = domain.id;
        let replace = |key: &mut DkimKey| self.replace(&DkimKey::place(id, &key.selector), &mut key.sealed);
        // `count`, because `any` would stop at the first key that changed.
        let keys = domain.dkim.iter_mut().map(replace).filter(|is_new| *is_new).count();
        let account = domain.dns_account.as_mut();
        let is_new = account.is_some_and(|account| self.replace(&KeptDnsAccount::place(id), &mut account.sealed));
        keys > 0 || is_new
    }

    fn seal_webhook(&self, webhook: &mut Webhook) -> bool {
        let place = webhook.secret_place();
        let previous = webhook.previous_secret.as_mut().map(|(secret, _)| secret);
        let secrets = [&mut webhook.secret].into_iter().chain(previous);
        secrets.map(|secret| self.replace(&place, secret)).filter(|is_new| *is_new).count() > 0
    }

    fn seal_factor(&self, factor: &mut Factor) -> bool {
        let place = Factor::place(factor.user_id, factor.id);
        match &mut factor.proof {
            FactorProof::Totp { sealed, .. } => self.replace(&place, sealed),
            // Its public half is all that is kept.
            FactorProof::Passkey { .. } => false,
        }
    }

    fn seal_channel(&self, settings: &mut ChannelSettings) -> bool {
        let mut is_new = false;
        replace_channel_secrets(settings, |place, sealed| {
            let resealed = self.resealed(place, sealed);
            is_new |= resealed.is_some();
            resealed
        });
        is_new
    }
}

/// Goes through a listing, a page at a time.
struct Pages {
    page: Option<PageRequest>,
}

impl Default for Pages {
    fn default() -> Self {
        Self { page: Some(PageRequest { after: None, limit: PAGE_SIZE }) }
    }
}

impl Pages {
    /// The next page; `None` after the last.
    async fn next<T, F>(&mut self, look: impl FnOnce(PageRequest) -> F) -> Result<Option<Vec<T>>, StoreError>
    where
        F: Future<Output = Result<Slice<T>, StoreError>>,
    {
        let Some(page) = self.page.take() else { return Ok(None) };
        let slice = look(page).await?;
        self.page = slice.next.map(|after| PageRequest { after: Some(after), limit: PAGE_SIZE });
        Ok(Some(slice.items))
    }
}
