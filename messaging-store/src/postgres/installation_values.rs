//! What holds for the database as a whole: rows of the table `installation`, by name.

use messaging_core::changes::SwitchSecretKey;
use messaging_core::domain::fence::Fence;
use messaging_core::ports::store::StoreError;

use super::fault::Fault;
use super::query::{Queries, one, params};
use super::reads::Reads;
use super::row::get as column;
use super::transaction::Transaction;

/// The check value of the secret key.
pub(super) const KEY_CHECK: &str = "key_check";

/// The id of the secret key that secrets are sealed under, once it is not the first.
pub(super) const SECRET_KEY: &str = "secret_key";

/// The name of the installation.
pub(super) const NAME: &str = "name";

/// Whether the installation is fenced, as [`Fence::to_text`] says it.
pub(super) const FENCE: &str = "fence";

const VALUE: &str = "SELECT value FROM installation WHERE name = $1";

/// Reads a value.
pub(super) async fn get(on: &mut impl Queries, name: &str) -> Result<Option<String>, Fault> {
    one(on, VALUE, params![name.to_owned()], |row| column(row, 0)).await
}

/// The same for what every message asks for.
pub(super) async fn get_shared(reads: &Reads, name: &str) -> Result<Option<String>, StoreError> {
    reads.one_shared(VALUE, params![name.to_owned()], |row| column(row, 0)).await
}

/// Keeps the check value of the secret key, unless there is one.
pub(super) fn put_key_check(transaction: &mut Transaction, check: &str) {
    put_first(transaction, KEY_CHECK, check);
}

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

/// Keeps the name of the installation in the place of `before`.
pub(super) fn put_name(transaction: &mut Transaction, name: &str, before: Option<&str>) {
    let Some(before) = before else { return put_first(transaction, NAME, name) };
    transaction.run_one(
        "UPDATE installation SET value = $2 WHERE name = $1 AND value = $3",
        params![NAME.to_owned(), name.to_owned(), before.to_owned()],
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
        (Some(text), None) => put_first(transaction, FENCE, &text),
        (Some(text), Some(_)) => {
            transaction.run_one("UPDATE installation SET value = $2 WHERE name = $1", params![FENCE.to_owned(), text]);
        }
        (None, _) => transaction.run("DELETE FROM installation WHERE name = $1", params![FENCE.to_owned()]),
    }
    Ok(())
}

/// Keeps a value, unless there is one.
fn put_first(transaction: &mut Transaction, name: &str, value: &str) {
    transaction
        .run("INSERT INTO installation (name, value) VALUES ($1, $2)", params![name.to_owned(), value.to_owned()]);
}
