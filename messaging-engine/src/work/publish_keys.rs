//! Job that publishes the records of new DKIM keys by the stored DNS account of a sending domain.
//!
//! Contract section 14.5. It checks the domain after each round, so that new keys sign as soon as they are visible, and
//! ends when every key is published and nothing waits to be removed.

use std::time::Duration;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::mail::verification::{apply, is_exempt};
use messaging_core::ports::dns_provider::DnsProviderError;
use messaging_core::ports::store::{CommitError, Stored};

use crate::jobs::publish_keys::PublishKeys;
use crate::services::auto_dns::{DnsAccount, DnsFailure};
use crate::services::published_records::PublishedRecords;
use crate::work::job::{Job, JobContext, JobError};

/// Number of tries to store an outcome while the domain keeps changing.
const MAX_COMMITS: usize = 8;

impl PublishKeys {
    /// Returns the domain, while an account is stored for it.
    async fn domain(&self, cx: &JobContext) -> Result<Option<Stored<SendingDomain>>, JobError> {
        let stored = cx.app.store().domain(self.workspace_id, self.domain_id).await?;
        Ok(stored.filter(|stored| stored.record.dns_account.is_some() && !is_exempt(&stored.record)))
    }
}

impl Job for PublishKeys {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let app = &cx.app;
        let Some(Stored { record: domain, .. }) = self.domain(cx).await? else {
            return Ok(cx.finish(Changes::default()).await?);
        };
        let (Some(kept), Some(credentials)) = (&domain.dns_account, app.open_dns_account(&domain)) else {
            return Ok(cx.finish(Changes::default()).await?);
        };
        let here = app.installation().await?;
        cx.hold().await?;
        let account = DnsAccount { provider: kept.provider, credentials: &credentials };
        let mut at_least = Duration::ZERO;
        let (applied, removed) = match app.publish_keys(&account, &domain, &here, &kept.retired).await {
            Ok((applied, removed)) => (Some(applied), removed),
            Err(failure) => {
                if let DnsFailure::Provider(DnsProviderError::Later(_, wait)) = failure {
                    at_least = wait;
                }
                tracing::warn!(domain = %self.domain_id, why = told(&failure), "records of DKIM keys were not published");
                (None, Vec::new())
            }
        };
        let published = match applied {
            Some(mut applied) => app.read_back(&mut applied).await,
            None => PublishedRecords::default(),
        };
        let findings = app.look_at_published(&domain, &published).await?;
        for _ in 0..MAX_COMMITS {
            let Some(Stored { record: before, revision }) = self.domain(cx).await? else {
                return Ok(cx.finish(Changes::default()).await?);
            };
            let mut after = apply(before, findings.clone(), app.now());
            if let Some(account) = &mut after.dns_account {
                account.retired.retain(|record| !removed.contains(record));
            }
            let next = if after.awaits_publishing() { self.next() } else { None };
            let changes = Changes::from_iter([Write::put(after, Expect::Revision(revision))]);
            let outcome = match next {
                Some((job, wait)) => cx.again_at(app.now() + wait.max(at_least), &job, changes).await,
                None => cx.finish(changes).await.map_err(JobError::from),
            };
            match outcome {
                Err(JobError::Commit(CommitError::Conflict)) => {}
                outcome => return outcome,
            }
        }
        match self.next() {
            Some((job, wait)) => cx.again_at(app.now() + wait.max(at_least), &job, Changes::default()).await,
            None => Ok(cx.finish(Changes::default()).await?),
        }
    }
}

/// Describes a failed round for the log, without the text of a provider.
fn told(failure: &DnsFailure) -> &'static str {
    match failure {
        DnsFailure::Provider(DnsProviderError::Credentials(_)) => "the credentials are refused",
        DnsFailure::Provider(DnsProviderError::Blocked(_)) => "the server has a private address",
        DnsFailure::Provider(DnsProviderError::NoZone) => "the account has no zone of the domain",
        DnsFailure::Provider(DnsProviderError::Away(_)) => "the provider is away",
        DnsFailure::Provider(DnsProviderError::Later(..)) => "the provider asks to be left alone for a while",
        DnsFailure::Provider(DnsProviderError::Refused(_)) => "the provider refuses the change",
        DnsFailure::Provider(DnsProviderError::Changed) => "somebody else changed the records",
        DnsFailure::Unknown => "the provider is unknown here",
    }
}
