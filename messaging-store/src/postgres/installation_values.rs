//! Values that apply to the whole database: rows of the table `installation`, by name.

use messaging_core::changes::SwitchSecretKey;

use super::transaction::Transaction;
use crate::sql::params;
pub(super) use crate::tables::installation::{KEY_CHECK, SECRET_KEY};

/// Makes another secret key the one that seals secrets, if all processes hold it. The row of the check value is locked
/// first: processes that begin a term or announce their keys wait for that row, so that none is overlooked.
pub(super) fn switch_secret_key(transaction: &mut Transaction, switch: &SwitchSecretKey) {
    transaction.run_one(
        "UPDATE installation SET value = $2 WHERE name = $1 AND value = $3",
        params![KEY_CHECK.to_owned(), switch.after.clone(), switch.before.clone()],
    );
    transaction.run_one(
        "UPDATE installation SET value = value WHERE name = $1 AND NOT EXISTS
             (SELECT 1 FROM nodes WHERE keys IS NULL OR $2 <> ALL (string_to_array(keys, ',')))",
        params![KEY_CHECK.to_owned(), switch.key.clone()],
    );
    transaction.run(
        "INSERT INTO installation (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        params![SECRET_KEY.to_owned(), switch.key.clone()],
    );
}
