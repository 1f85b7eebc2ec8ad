//! The jobs of an import: one reads the uploaded file, one ends the wait for it.

use std::time::Duration;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::ids::{BlobId, ImportId, WorkspaceId};
use messaging_core::ports::store::{CommitError, StoreError};
use messaging_core::ports::uploads::UploadFile;

use crate::app::App;
use crate::jobs::imports::{ExpireImport, ImportContacts};
use crate::services::importing::ended;
use crate::work::job::{Job, JobContext, JobError};

/// When to go on where others were in the way.
const RETRY: Duration = Duration::from_secs(1);

impl Job for ImportContacts {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let app = &cx.app;
        match app.advance_import(self.workspace_id, self.import_id, Some(cx.handle())).await {
            Ok(true) => return cx.again_at(app.now(), &self, Changes::default()).await,
            Ok(false) => {}
            // Others change the same contacts all the time.
            Err(CommitError::Conflict) => return cx.again_at(app.now() + RETRY, &self, Changes::default()).await,
            Err(error) => return Err(error.into()),
        }
        // The file goes after the import has ended, and before the job does: a crash leaves it to nobody.
        remove_files(app, self.workspace_id, self.import_id, None).await?;
        Ok(cx.finish(Changes::default()).await?)
    }
}

impl Job for ExpireImport {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let app = &cx.app;
        let mut reading = None;
        if let Some(stored) = app.store().import(self.workspace_id, self.import_id).await? {
            reading = stored.record.reading().map(|(upload, _)| upload);
            let now = app.now();
            if stored.record.admits_upload(now).is_ok() {
                // The clock was ahead when the job was claimed, and a file may be on its way.
                return cx.again_at(stored.record.expires_at(), &self, Changes::default()).await;
            }
            if let Some(expired) = stored.record.expire(now) {
                let ended = ended(&expired, "expired");
                let put = Write::put(Box::new(expired), Expect::Revision(stored.revision));
                match cx.commit(Changes::from_iter([put, ended])).await {
                    // The file came in the last moment.
                    Err(CommitError::Conflict) => return cx.again_at(app.now(), &self, Changes::default()).await,
                    outcome => outcome?,
                }
            }
        }
        remove_files(app, self.workspace_id, self.import_id, reading).await?;
        Ok(cx.finish(Changes::default()).await?)
    }
}

impl App {
    /// Does what the job of an import does, to the end: for a program that imports a file where no server
    /// works. The job then finds nothing left to do.
    pub async fn run_import(&self, workspace: WorkspaceId, import: ImportId) -> Result<(), CommitError> {
        while self.advance_import(workspace, import, None).await? {}
        Ok(remove_files(self, workspace, import, None).await?)
    }
}

/// Removes the files of an import, but for the one that is being read.
async fn remove_files(
    app: &App,
    workspace_id: WorkspaceId,
    import_id: ImportId,
    but: Option<BlobId>,
) -> Result<(), StoreError> {
    for upload_id in app.uploads().uploads(workspace_id, import_id).await? {
        if Some(upload_id) != but {
            app.uploads().remove_upload(UploadFile { workspace_id, import_id, upload_id }).await?;
        }
    }
    Ok(())
}
