//! Keys of the campaign of an audience in statements.

use messaging_core::ids::{CampaignId, WorkspaceId};

use crate::database::Statements;
use crate::fault::Fault;
use crate::sql::{Params, Sql, key, params, sql};

/// Key of an audience: the workspace and the campaign that it was frozen for.
pub(super) type Of = (WorkspaceId, CampaignId);

/// The number of the campaign `$2` of the workspace `$1`.
macro_rules! campaign {
    () => {
        "(SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)"
    };
}

/// Adds a row of the campaign `$2` of the workspace `$1`; on PostgreSQL the campaign cannot be removed until the
/// transaction ends.
macro_rules! insert {
    ($columns:literal, $values:literal, $otherwise:literal) => {
        sql!(
            sqlite: insert!($columns, $values, "", $otherwise),
            postgres: insert!($columns, $values, " FOR KEY SHARE", $otherwise),
        )
    };
    ($columns:literal, $values:literal, $lock:literal, $otherwise:literal) => {
        concat!(
            "INSERT INTO ", $columns, " SELECT n, ", $values,
            " FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed", $lock, $otherwise
        )
    };
}

pub(super) use {campaign, insert};

/// Parameters `$1` and `$2`.
pub(super) fn key_of((workspace, campaign): Of) -> Params {
    params![key(workspace), key(campaign)]
}

/// Raises a conflict unless a campaign exists.
pub(super) fn expect_campaign(on: &mut dyn Statements, of: Of) -> Result<(), Fault> {
    const SQL: Sql = sql!("SELECT count(*) FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed");
    on.expect(1, SQL, key_of(of))
}
