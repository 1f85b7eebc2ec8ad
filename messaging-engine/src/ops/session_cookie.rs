//! What the answer to a call says about the cookie that holds a session.

use std::time::Duration;

use messaging_core::domain::security::secret::Secret;

/// What a browser is told about the cookie that holds its session (contract section 2.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionCookie {
    /// Keep this session token for so long.
    Keep(Secret, Duration),
    /// Forget it: the session has ended.
    Forget,
}
