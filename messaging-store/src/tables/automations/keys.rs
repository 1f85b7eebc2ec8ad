//! Keys of automations and their contacts in statements.

use messaging_core::ids::{AutomationId, WorkspaceId};

use crate::sql::{Value, key, params};

/// Key of an automation: its workspace and its id.
pub(super) type Of = (WorkspaceId, AutomationId);

/// The number of the automation `$2` of the workspace `$1`.
macro_rules! automation {
    () => {
        "(SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed)"
    };
}

/// The number of a contact of the workspace `$1`.
macro_rules! contact {
    ($id:literal) => {
        concat!(
            "(SELECT n FROM contacts
              WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = ",
            $id,
            ")"
        )
    };
}

pub(super) use {automation, contact};

/// Parameters `$1` and `$2`.
pub(super) fn key_of((workspace, automation): Of) -> Vec<Value> {
    params![key(workspace), key(automation)]
}
