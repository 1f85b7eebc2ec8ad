//! Digests by which suppressed addresses are found: an address may be longer than a key should be.

use messaging_core::domain::security::digest::Digest;
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;

/// Digest by which an address is found.
pub(super) fn digest(address: &str) -> [u8; 32] {
    *Digest::of(address).as_bytes()
}

/// Defines the function `address_digest` for a connection, for statements that look up addresses they have read.
pub(super) fn define_digest(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function("address_digest", 1, flags, |call| {
        Ok(call.get_raw(0).as_str_or_null()?.map(|address| digest(address).to_vec()))
    })
}
