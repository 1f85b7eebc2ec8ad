//! Session cookies in answers.

use std::time::Duration;

use messaging_core::domain::security::secret::Secret;

/// Instruction to the browser about its session cookie (contract section 2.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionCookie {
    /// Store this session token for this time.
    Keep(Secret, Duration),
    /// Remove it: the session has ended.
    Forget,
}
