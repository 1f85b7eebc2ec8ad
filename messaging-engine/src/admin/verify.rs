//! Verification of counters, rows and files against one another.

use messaging_core::domain::message::content;
use messaging_core::domain::security::audit::ChainCheck;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::store::verification::{Difference, PlacedContent, Verified};
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::Error;
use crate::jobs::JobData as _;
use crate::jobs::deliver_message::DeliverMessage;

/// Number of message contents that are read at a time; each may be as long as a request.
const PAGE: usize = 32;

/// Number of audit log rows that are read at a time.
const ROWS: usize = 500;

/// Maximum number of checks of an audit log, repeated if retention removes its first rows meanwhile, which it does
/// every few minutes at most. A log whose last check was disturbed is not counted.
const MAX_LOOKS: usize = 3;

/// Result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Number of counters, rows and files that were compared.
    pub checked: u64,
    /// Differences that were found; at most the first thousand.
    pub differences: Vec<DifferenceReport>,
}

/// Difference between a stored value and the counted one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DifferenceReport {
    /// Counter, row or file, described for people.
    pub what: String,
    /// Stored number. For a thing that may exist: 1 if it does, else 0.
    pub stored: i64,
    /// Number counted from the rows; for a thing that may exist, 1 if it should, else 0.
    pub counted: i64,
}

/// Recounts every counter, and checks that audit logs are unbroken and that rows and files that others name exist.
/// Changes nothing; may run while a server works on the database.
pub async fn verify(app: &App) -> Result<VerifyReport, Error> {
    let mut verified = Verified::default();
    audit_log(app, None, &mut verified).await?;
    let mut workspace = app.store().workspace_after(None).await?;
    while let Some(id) = workspace {
        verified.add(app.store().verify_workspace(id).await?);
        audit_log(app, Some(id), &mut verified).await?;
        workspace = app.store().workspace_after(Some(id)).await?;
    }
    verified.add(app.store().verify_message_jobs(DeliverMessage::KIND, message_of).await?);
    files(app, &mut verified).await?;
    let report = |Difference { what, stored, counted }| DifferenceReport { what, stored, counted };
    Ok(VerifyReport { checked: verified.checked, differences: verified.differences.into_iter().map(report).collect() })
}

/// Checks that each row of an audit log is linked to the one before it, from the anchor to the end that the log names.
async fn audit_log(app: &App, workspace: Option<WorkspaceId>, verified: &mut Verified) -> Result<(), Error> {
    let of = workspace.map_or_else(|| "the installation".to_owned(), |id| id.to_string());
    for _ in 0..MAX_LOOKS {
        let Some(chain) = app.store().audit_chain(workspace).await? else { return Ok(()) };
        let (mut found, mut check) = (Verified::default(), ChainCheck::begin(workspace, &chain));
        while check.number() < chain.last {
            let rows = app.store().audit_rows(workspace, check.number(), ROWS).await?;
            if rows.is_empty() {
                break;
            }
            // Rows after `chain.last` were added since it was read.
            for row in rows.iter().take_while(|row| row.number <= chain.last) {
                let what = || format!("{of}: entry {} of the audit log is as it was recorded", row.number);
                let follows = check.follows(row);
                found.compare(what, i64::from(follows), 1);
            }
            if rows.last().is_none_or(|row| row.number > chain.last) {
                break;
            }
        }
        found.compare(|| format!("{of}: the audit log is whole to its end"), i64::from(check.ends(&chain)), 1);
        let now = app.store().audit_chain(workspace).await?;
        // The check counts only if retention removed no rows meanwhile.
        if now.is_some_and(|now| now.anchor == chain.anchor) {
            verified.add(found);
            return Ok(());
        }
    }
    Ok(())
}

fn message_of(payload: &[u8]) -> Option<(WorkspaceId, MessageId)> {
    let job: DeliverMessage = serde_json::from_slice(payload).ok()?;
    Some((job.workspace_id, job.message_id))
}

/// Checks that the files of the attachments of messages exist, with their lengths, while the messages have content.
async fn files(app: &App, verified: &mut Verified) -> Result<(), Error> {
    let mut after = None;
    loop {
        let page = app.store().contents_after(after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.place);
        for placed in page {
            compare_files(app, placed, verified).await?;
        }
    }
}

async fn compare_files(app: &App, placed: PlacedContent, verified: &mut Verified) -> Result<(), StoreError> {
    let PlacedContent { workspace_id, message_id, content, place: _ } = placed;
    let Ok(request) = content::decode(&content) else {
        verified.compare(|| format!("{message_id}: a request that can be read"), 0, 1);
        return Ok(());
    };
    for file in request.files {
        let length = app.blobs().blob(workspace_id, file.blob).await?.map(|bytes| bytes.len() as u64);
        if length != Some(file.size) {
            // If the content was erased since it was read, its file is not missing.
            let now = app.store().message_with_content(workspace_id, message_id).await?;
            if now.is_none_or(|(_, stored)| stored.is_none()) {
                continue;
            }
        }
        let bytes = |length: u64| i64::try_from(length).unwrap_or(i64::MAX);
        let what = || format!("{message_id}: bytes of the file {}", file.blob);
        verified.compare(what, bytes(length.unwrap_or(0)), bytes(file.size));
    }
    Ok(())
}
