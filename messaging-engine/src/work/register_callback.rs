//! The job that registers our callback address with the provider of a channel.
//!
//! The job exists as long as the settings that it was made for. Every ten minutes it compares the address with the
//! registered one, because the public URL of a server may change. The result is stored with the settings.

use std::time::Duration;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::channel::settings::{CallbackRegistration, ChannelSettings};
use messaging_core::domain::security::digest::Digest;
use messaging_core::ports::store::{CommitError, Stored};
use messaging_core::ports::transport::Registration;
use tokio::time::timeout;

use crate::jobs::register_callback::RegisterCallback;
use crate::work::job::{Job, JobContext, JobError};

/// Time limit for the answer of the provider.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Characters of a provider's error that are stored.
const MAX_ERROR: usize = 500;

/// Number of tries to store an outcome while the settings keep changing.
const MAX_COMMITS: usize = 8;

impl RegisterCallback {
    /// Returns the settings, while this job belongs to them.
    async fn settings(
        &self,
        cx: &JobContext,
    ) -> Result<Option<(Stored<ChannelSettings>, CallbackRegistration)>, JobError> {
        let stored = cx.app.store().channel(self.workspace_id, self.channel).await?;
        let ours = |stored: Stored<ChannelSettings>| {
            let registration = stored.record.registration.clone()?;
            (registration.job == cx.handle().id).then_some((stored, registration))
        };
        Ok(stored.and_then(ours))
    }
}

impl Job for RegisterCallback {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let app = &cx.app;
        let Some((Stored { record: settings, .. }, known)) = self.settings(cx).await? else {
            return Ok(cx.finish(Changes::default()).await?);
        };
        let (Some(transport), Some(address)) =
            (app.transport(self.channel, &settings.provider), app.channel_callback(&settings))
        else {
            return Ok(cx.finish(Changes::default()).await?);
        };
        let digest = Digest::of(&address.url);
        if known.error.is_none() && known.address == Some(digest) {
            return cx.again_at(app.now() + Self::CHECK_INTERVAL, &self, Changes::default()).await;
        }
        cx.hold().await?;
        let told = timeout(TIMEOUT, transport.register(&app.open_secrets(&settings), &address)).await;
        let told = told.unwrap_or_else(|_| Err(format!("no answer within {} seconds", TIMEOUT.as_secs())));
        let (job, wait, address, error) = match told {
            Ok(Registration::NotNeeded) => return Ok(cx.finish(Changes::default()).await?),
            Ok(Registration::Registered) => (Self { failures: 0, ..self }, Self::CHECK_INTERVAL, Some(digest), None),
            Err(error) => {
                tracing::warn!(workspace = %self.workspace_id, channel = %self.channel, "a provider was not told where to call");
                let (job, wait) = self.failed();
                (job, wait, None, Some(error.chars().take(MAX_ERROR).collect()))
            }
        };
        for _ in 0..MAX_COMMITS {
            let Some((Stored { record, revision }, known)) = self.settings(cx).await? else {
                return Ok(cx.finish(Changes::default()).await?);
            };
            let found = CallbackRegistration { address, error: error.clone(), ..known.clone() };
            let mut changes = Changes::default();
            if found != known {
                let record = ChannelSettings { registration: Some(found), ..record };
                changes.push(Write::put(record, Expect::Revision(revision)));
            }
            match cx.again_at(app.now() + wait, &job, changes).await {
                Err(JobError::Commit(CommitError::Conflict)) => {}
                outcome => return outcome,
            }
        }
        cx.again_at(app.now() + wait, &job, Changes::default()).await
    }
}
