//! Which secret keys the processes of an installation hold.
//!
//! A change to another key locks the row of the check value and then looks at all processes. Whoever takes a term, or says
//! which keys it holds, locks that row first, so that either waits for the other and sees what it has done.

use deadpool_postgres::{Object, Transaction};

use super::super::fault::Fault;
use super::super::installation_values::{KEY_CHECK, SECRET_KEY};
use crate::row::get;

const LOCK: &str = "SELECT 1 FROM installation WHERE name = $1 FOR SHARE";

/// Fails while secrets are sealed under a key that is not among `keys`. A process that has not said which keys it holds is
/// let in: it is about to say so, and no key is changed before.
pub(super) async fn require_current(transaction: &Transaction<'_>, keys: Option<&str>) -> Result<(), Fault> {
    let Some(keys) = keys else { return Ok(()) };
    transaction.query_opt(LOCK, &[&KEY_CHECK]).await?;
    let current = transaction.query_opt("SELECT value FROM installation WHERE name = $1", &[&SECRET_KEY]).await?;
    let Some(current) = current else { return Ok(()) };
    let current: String = get(&current, 0)?;
    if keys.split(',').any(|key| key == current) {
        return Ok(());
    }
    tracing::error!(
        key = current,
        "secrets are sealed under a key that this process does not hold, so it does nothing: copy the secret key file of \
         another node over its own"
    );
    Err(Fault::Unhealthy)
}

/// Writes down which keys the process of a term holds; answers whether its term still is.
pub(super) async fn announce(connection: &mut Object, term: i64, keys: &str) -> Result<bool, Fault> {
    let transaction = connection.transaction().await?;
    transaction.query_opt(LOCK, &[&KEY_CHECK]).await?;
    let touched = transaction.execute("UPDATE nodes SET keys = $2 WHERE term = $1", &[&term, &keys]).await?;
    transaction.commit().await?;
    Ok(touched == 1)
}
