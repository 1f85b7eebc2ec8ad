//! Writes about users and API keys: sessions, tickets, second factors, attempts to sign in, last uses.

use crate::domain::security::account::{Session, Ticket};
use crate::domain::security::api_key::usage::OperationUse;
use crate::domain::security::digest::Digest;
use crate::domain::security::factor::{Factor, PendingSignIn};
use crate::domain::security::login_attempts::SignInAttempt;
use crate::domain::security::oidc::LinkedIdentity;
use crate::ids::{ApiKeyId, FactorId, UserId};
use crate::revision::Expect;
use crate::time::Timestamp;

/// A change of what belongs to users and keys.
#[derive(Debug, Clone)]
pub enum AccountWrite {
    /// Removes a user with their sessions, tickets, second factors and memberships. A conflict when the user changed since.
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
    /// Notes the operations that keys were used for, each with its last time; nothing where a key is gone or the operation
    /// was used later.
    NoteKeyUses(Vec<OperationUse>),
    /// Creates or replaces a second factor.
    PutFactor(Box<Factor>, Expect),
    /// Removes a second factor of a user; no conflict when it is gone already.
    DeleteFactor(UserId, FactorId),
    /// Removes all second factors of a user, their recovery codes and the sign-ins that wait for them.
    DeleteFactors(UserId),
    /// Keeps the digests of recovery codes of a user, in place of all that there were.
    PutRecoveryCodes(UserId, Vec<Digest>),
    /// Uses a recovery code of a user up. A conflict when it is gone already.
    TakeRecoveryCode(UserId, Digest),
    /// Keeps a sign-in that waits for a second factor.
    PutPendingSignIn(Box<PendingSignIn>),
    /// Counts a code that is tried in a sign-in. A conflict when the sign-in is gone, or
    /// [`MAX_TRIES`](crate::domain::security::factor::MAX_TRIES) were counted.
    CountCode(Digest),
    /// Ends a sign-in that waits for a second factor. A conflict when it is gone already.
    TakePendingSignIn(Digest),
}

impl AccountWrite {
    /// Whether it stores something new on behalf of somebody, see [`Changes::adds`](super::Changes::adds).
    pub(super) const fn adds(&self) -> bool {
        matches!(
            self,
            Self::PutSession(_)
                | Self::PutTicket(_)
                | Self::CountSignIn(_)
                | Self::LinkIdentity(_)
                | Self::PutFactor(..)
                | Self::PutRecoveryCodes(..)
                | Self::PutPendingSignIn(_)
        )
    }
}
