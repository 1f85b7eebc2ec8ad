//! What holds for the database as a whole: rows of the table `installation`, by name.

use messaging_core::changes::SwitchSecretKey;
use messaging_core::domain::fence::Fence;

use super::fault::Fault;
use super::query::{one, params};
use super::row::get as column;
use super::transaction::Transaction;
pub(super) use crate::tables::installation::{FENCE, KEY_CHECK, SECRET_KEY, put_first};

/// Makes another secret key the one that secrets are sealed under, if all processes hold it. The row of the check value
/// is locked first: whoever begins, or says which keys it holds, waits for that row, so that none is overlooked.
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

/// Puts a fence in the place of `before`. It looks first: more than one text may say the same fence.
pub(super) async fn put_fence(
    transaction: &mut Transaction,
    fence: Option<Fence>,
    before: Option<Fence>,
) -> Result<(), Fault> {
    let sql = "SELECT value FROM installation WHERE name = $1 FOR UPDATE";
    let found = one(transaction, sql, params![FENCE.to_owned()], |row| column::<String>(row, 0)).await?;
    if found.map(|text| Fence::parse(&text)) != before {
        return Err(Fault::Conflict);
    }
    let text = fence.map(Fence::to_text);
    match (text, before) {
        (Some(text), None) => put_first(transaction, FENCE, &text)?,
        (Some(text), Some(_)) => {
            transaction.run_one("UPDATE installation SET value = $2 WHERE name = $1", params![FENCE.to_owned(), text]);
        }
        (None, _) => transaction.run("DELETE FROM installation WHERE name = $1", params![FENCE.to_owned()]),
    }
    Ok(())
}
