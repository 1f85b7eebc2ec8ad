//! The reading of an uploaded file, and the end of the wait for one.

use messaging_core::domain::audience::import::Import;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::{ImportId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// All imports of a workspace share a lane, so that many of them hold few of the places that all work shares.
fn lane(workspace: WorkspaceId) -> Lane {
    Lane::new(JobClass::Transactional, workspace, lanes::IMPORTS)
}

/// Reads the file of an import, a turn at a time, and removes it in the end.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ImportContacts {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) import_id: ImportId,
}

impl ImportContacts {
    /// The job of an import whose file is there.
    pub const fn of(import: &Import) -> Self {
        Self { workspace_id: import.workspace_id, import_id: import.id }
    }
}

impl JobData for ImportContacts {
    const KIND: &'static str = "import_contacts";
    const REACH: Reach = Reach::Inside;

    fn lane(&self) -> Lane {
        lane(self.workspace_id)
    }
}

/// Ends the wait for the file of an import.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ExpireImport {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) import_id: ImportId,
}

impl ExpireImport {
    /// The job of a new import.
    pub const fn of(import: &Import) -> Self {
        Self { workspace_id: import.workspace_id, import_id: import.id }
    }
}

impl JobData for ExpireImport {
    const KIND: &'static str = "expire_import";
    const REACH: Reach = Reach::Inside;

    fn lane(&self) -> Lane {
        lane(self.workspace_id)
    }
}
