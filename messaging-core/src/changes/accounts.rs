//! Writes about users and API keys: sessions, tickets, attempts to sign in, last uses.

use crate::domain::security::account::{Session, Ticket};
use crate::domain::security::digest::Digest;
use crate::domain::security::login_attempts::SignInAttempt;
use crate::domain::security::oidc::LinkedIdentity;
use crate::ids::{ApiKeyId, UserId};
use crate::time::Timestamp;

/// A change of what belongs to users and keys.
#[derive(Debug, Clone)]
pub enum AccountWrite {
    /// Removes a user with their sessions, tickets and memberships. A conflict when the user changed since.
    DeleteUser(UserId, u32),
    /// Opens a session.
    PutSession(Session),
    /// Ends a session; no conflict when it is gone already.
    DeleteSession(Digest),
    /// Notes when a session was used; nothing where it is gone or was used later.
    TouchSession(Digest, Timestamp),
    /// Keeps a ticket.
    PutTicket(Ticket),
    /// Uses a ticket up. A conflict when it is gone already.
    TakeTicket(Digest),
    /// Counts an attempt to sign in as failed. A conflict when the failures before it use up a limit, or others had to wait
    /// as often as it says that it had to.
    CountSignIn(SignInAttempt),
    /// Forgets the failures of an attempt's email from its network, the attempt itself among them.
    ForgetSignIns(SignInAttempt),
    /// Joins a person at a single sign-on provider to a user. A conflict when they are joined to one already.
    LinkIdentity(LinkedIdentity),
    /// Notes when a key was last used.
    TouchApiKey(ApiKeyId, Timestamp),
}

impl AccountWrite {
    /// Whether it stores something new on behalf of somebody, see [`Changes::adds`](super::Changes::adds).
    pub(super) const fn adds(&self) -> bool {
        matches!(self, Self::PutSession(_) | Self::PutTicket(_) | Self::CountSignIn(_) | Self::LinkIdentity(_))
    }
}
