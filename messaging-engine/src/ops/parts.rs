//! Requests that are done in parts, each a commit of its own.
//!
//! Under an Idempotency-Key the commit of a part also stores its result. When the request fails between two parts, by a
//! crash for example, its repetition replays the parts that were done and does the rest, so nothing happens twice. The
//! result of a part says how many items it covers, and the next part begins after them: a part that the store refuses
//! is done as smaller ones, down to the one item that is at fault.

use std::future::Future;

use messaging_core::changes::{Changes, Reply, ReplyKey, Write};
use messaging_core::error::Chain;
use messaging_core::ports::store::CommitError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::app::write_queues::ResourceKey;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::invoke::commit_with_files;
use crate::ops::progress::{MAX_RUNS, REMEMBERED_FOR};
use crate::services::acceptance::NewFile;

/// Result of a part.
pub(super) trait PartReport: Serialize + DeserializeOwned + Send {
    /// Number of items of the request that the part covers.
    fn items(&self) -> usize;
}

/// Limit on the items of a part, which begins at the first item that is not done.
#[derive(Clone, Copy)]
pub(super) struct PartLimit {
    /// Largest number of items.
    pub(super) most: usize,
    /// True if the store refuses the part's only item: nothing is to be stored for it, and its result says so.
    pub(super) is_refused: bool,
}

impl Context<'_> {
    /// Does the next part of the request: decides on changes, the files that they name and a result, and commits.
    /// Repeats this when the data changed meanwhile, then after the other writers of `serialized_resources`, and with
    /// fewer items when the store refuses one. A part that an earlier request with the same Idempotency-Key has done is
    /// not done again; its result is returned.
    ///
    /// Parts must come in the same order whenever the same request is made, each from the first item that is not done.
    pub(super) async fn do_part<R, D, F>(
        &mut self,
        serialized_resources: impl Fn() -> Vec<ResourceKey> + Send + Sync,
        mut decide: D,
    ) -> Result<R, Error>
    where
        R: PartReport,
        D: FnMut(PartLimit) -> F + Send,
        F: Future<Output = Result<(Changes, Vec<NewFile>, R), Error>> + Send,
    {
        let app = self.app;
        let key = self.progress.key.map(|(key, fingerprint)| (key.of_part(self.progress.done), fingerprint));
        self.progress.done += 1;
        if self.progress.is_repetition
            && let Some((key, fingerprint)) = &key
        {
            if let Some(result) = recall(app, key, *fingerprint).await? {
                return Ok(result);
            }
            self.progress.is_repetition = false;
        }
        let (mut turn, mut conflicts) = (None, 0);
        while conflicts < MAX_RUNS {
            let page = &mut self.progress.page;
            let limit = PartLimit { most: page.size(), is_refused: page.refused().is_some() };
            let (mut changes, files, result) = decide(limit).await?;
            if let Some((key, fingerprint)) = &key {
                let now = app.now();
                changes.push(Write::Remember(Box::new(Reply {
                    key: key.clone(),
                    fingerprint: *fingerprint,
                    status: 200,
                    content_type: String::new(),
                    body: serde_json::to_vec(&result).map_err(Error::internal)?.into(),
                    expires_at: now + REMEMBERED_FOR,
                    created_at: now,
                })));
            }
            let committed = if changes.is_empty() { Ok(()) } else { commit_with_files(app, changes, files).await };
            match committed {
                Ok(()) => {
                    if let Some(why) = page.refused() {
                        tracing::error!(reason = %Chain(why), "the store refuses an item of a request for good");
                    }
                    page.kept();
                    return Ok(result);
                }
                Err(CommitError::Conflict) => {
                    conflicts += 1;
                    if let Some((key, fingerprint)) = &key
                        && let Some(result) = recall(app, key, *fingerprint).await?
                    {
                        return Ok(result);
                    }
                    if turn.is_none() {
                        turn = Some(app.write_queues().enter(serialized_resources()).await?);
                    }
                }
                Err(error) => page.failed(error, result.items()).map_err(CommitError::into_store_error)?,
            }
        }
        Err(Error::Unavailable { retry_after: 1 })
    }
}

/// Returns the stored result of a part, if it was done.
async fn recall<R: DeserializeOwned>(app: &App, key: &ReplyKey, fingerprint: u128) -> Result<Option<R>, Error> {
    let Some(reply) = app.store().reply(key, app.now()).await? else { return Ok(None) };
    if reply.fingerprint != fingerprint {
        return Err(Error::IdempotencyKeyReused);
    }
    serde_json::from_slice(&reply.body).map(Some).map_err(Error::internal)
}
