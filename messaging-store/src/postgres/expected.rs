//! Statements that fail in the database itself unless they touch the expected number of rows.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::sql::Params;

/// Generated texts, by the statement they are generated from. There are as many as statements in the source.
static MADE: LazyLock<Mutex<HashMap<&'static str, &'static str>>> = LazyLock::new(Mutex::default);

/// Error that is raised if a row is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Raises {
    /// The term of the process is over.
    Term,
    /// The claim of a job was lost.
    Claim,
}

impl Raises {
    /// The function of the schema that raises the error.
    const fn function(self) -> &'static str {
        match self {
            Self::Term => "expect_term",
            Self::Claim => "expect_claim",
        }
    }
}

/// Returns the statement in a form that fails with its own error unless it touches one row.
pub(super) fn expecting_one(sql: &'static str, raises: Raises) -> &'static str {
    let function = raises.function();
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(sql).or_insert_with(|| {
        let text = format!("WITH done AS ({sql} RETURNING 1) SELECT {function}((SELECT count(*) FROM done))");
        Box::leak(text.into_boxed_str())
    })
}

/// Returns the statement in a form that fails with a conflict unless it touches `rows` rows; adds the number to its
/// parameters.
pub(super) fn expecting(sql: &'static str, params: &mut Params, rows: i64) -> &'static str {
    params.push(rows.into());
    let last = params.len();
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(sql).or_insert_with(|| {
        let text = format!("WITH done AS ({sql} RETURNING 1) SELECT expect_rows((SELECT count(*) FROM done), ${last})");
        Box::leak(text.into_boxed_str())
    })
}

/// Returns the statement in a form for gathered rows that fails with its own error unless it touches all of them; adds
/// their number to its parameters.
pub(super) fn expecting_all(sql: &'static str, params: &mut Params, rows: i64, raises: Raises) -> &'static str {
    params.push(rows.into());
    let last = params.len();
    let function = raises.function();
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(sql).or_insert_with(|| {
        let all = format!("CASE WHEN (SELECT count(*) FROM done) = ${last} THEN 1 ELSE 0 END");
        Box::leak(format!("WITH done AS ({sql} RETURNING 1) SELECT {function}({all})").into_boxed_str())
    })
}

/// Turns a query of one number into a statement that fails with a conflict unless it is `number`, which is added to its
/// parameters.
pub(super) fn expecting_number(sql: &'static str, params: &mut Params, number: i64) -> &'static str {
    params.push(number.into());
    let last = params.len();
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(sql).or_insert_with(|| Box::leak(format!("SELECT expect_rows(({sql}), ${last})").into_boxed_str()))
}
