//! Images. Their bytes are in a table of their own, so that listings do not read them.

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::image::{Image, ImageUsage};
use messaging_core::ids::{Id as _, ImageId, TemplateId, WorkspaceId};
use messaging_core::ports::store::{Images, PageRequest, Slice, StoreError};

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, one_more, sql_limit};
use crate::row::{document, get, id, record};
use crate::sql::{Sql, key, params, sql};

/// Stores a new image with its bytes.
pub(crate) fn put(on: &mut dyn Statements, image: &Image, octets: &Bytes) -> Result<(), Fault> {
    on.run(
        sql!("INSERT INTO images (workspace, id, sha256, size, doc) VALUES ($1, $2, $3, $4, $5)"),
        params![
            key(image.workspace_id),
            key(image.id),
            image.sha256.as_str(),
            i64::try_from(image.bytes).unwrap_or(i64::MAX),
            document(image)?
        ],
    )?;
    on.run(
        sql!("INSERT INTO image_bytes (workspace, id, bytes) VALUES ($1, $2, $3)"),
        params![key(image.workspace_id), key(image.id), octets.clone()],
    )
}

/// Deletes an image with its bytes.
pub(crate) fn delete(on: &mut dyn Statements, workspace: WorkspaceId, image: ImageId) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM image_bytes WHERE workspace = $1 AND id = $2"), params![key(workspace), key(image)])?;
    on.run(sql!("DELETE FROM images WHERE workspace = $1 AND id = $2"), params![key(workspace), key(image)])
}

#[async_trait]
impl<D: Database> Images for SqlStore<D> {
    async fn image(&self, workspace: WorkspaceId, image: ImageId) -> Result<Option<Image>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM images WHERE workspace = $1 AND id = $2");
        self.one(Query::new(SQL, params![key(workspace), key(image)], |row| record(row, 0)).point()).await
    }

    async fn image_by_digest(&self, workspace: WorkspaceId, sha256: &str) -> Result<Option<Image>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM images WHERE workspace = $1 AND sha256 = $2");
        self.one(Query::new(SQL, params![key(workspace), sha256], |row| record(row, 0)).point()).await
    }

    async fn images(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Image>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM images WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
        let bounds = params![key(workspace), below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, |row| record::<Image>(row, 0));
        self.page(query, page, |image| image.id.to_bytes()).await
    }

    async fn image_bytes(&self, workspace: WorkspaceId, image: ImageId) -> Result<Option<Bytes>, StoreError> {
        const SQL: Sql = sql!("SELECT bytes FROM image_bytes WHERE workspace = $1 AND id = $2");
        let query = Query::new(SQL, params![key(workspace), key(image)], |row| get::<Vec<u8>>(row, 0));
        Ok(self.one(query).await?.map(Bytes::from))
    }

    async fn image_usage(&self, workspace: WorkspaceId) -> Result<ImageUsage, StoreError> {
        const SQL: Sql =
            sql!("SELECT count(*), CAST(coalesce(sum(size), 0) AS bigint) FROM images WHERE workspace = $1");
        let usage = Query::new(SQL, params![key(workspace)], |row| {
            let number = |column| get::<i64>(row, column).map(|number| u64::try_from(number).unwrap_or(0));
            Ok(ImageUsage { images: number(0)?, bytes: number(1)? })
        });
        Ok(self.one(usage).await?.unwrap_or_default())
    }

    async fn templates_with_text(
        &self,
        workspace: WorkspaceId,
        text: &str,
        limit: usize,
    ) -> Result<Vec<TemplateId>, StoreError> {
        macro_rules! having {
            ($place:literal) => {
                concat!(
                    "SELECT t.id FROM templates t JOIN template_versions v
                         ON v.workspace = t.workspace AND v.template = t.id AND v.version = t.version
                     WHERE t.workspace = $1 AND t.removed_at IS NULL AND ",
                    $place,
                    " > 0 ORDER BY t.id DESC LIMIT $3"
                )
            };
        }
        const SQL: Sql = sql!(sqlite: having!("instr(v.doc, $2)"), postgres: having!("strpos(v.doc, $2)"));
        let bounds = params![key(workspace), text, sql_limit(limit)];
        self.many(Query::new(SQL, bounds, |row| id(row, 0)).scan()).await
    }
}
