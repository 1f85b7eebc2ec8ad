//! Custom fields.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::audience::custom_field::CustomField;
use crate::ids::{FieldId, WorkspaceId};

/// Reads of custom fields.
#[async_trait]
pub trait CustomFields {
    /// A field by id.
    async fn custom_field(
        &self,
        workspace: WorkspaceId,
        id: FieldId,
    ) -> Result<Option<Stored<CustomField>>, StoreError>;
    /// The fields of the workspace, newest first.
    async fn custom_fields(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<CustomField>, StoreError>;
}
