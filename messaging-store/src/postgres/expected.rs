//! Statements that fail in the database itself unless they touch as many rows as they should.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The texts that were made, by the statement they are made of. There are as many as statements in the source.
static MADE: LazyLock<Mutex<HashMap<&'static str, &'static str>>> = LazyLock::new(Mutex::default);

/// The same statement, failing with a conflict unless it touches as many rows as its last parameter says, which is the
/// parameter with that number.
pub(super) fn expecting(sql: &'static str, last: usize) -> &'static str {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(sql).or_insert_with(|| {
        let text = format!("WITH done AS ({sql} RETURNING 1) SELECT expect_rows((SELECT count(*) FROM done), ${last})");
        Box::leak(text.into_boxed_str())
    })
}
