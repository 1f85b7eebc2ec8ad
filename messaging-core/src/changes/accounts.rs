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

/// A change of data of users and keys.
#[derive(Debug, Clone)]
pub enum AccountWrite {
    /// Removes a user with their sessions, tickets, second factors and memberships. A conflict if the user changed
    /// since.
    DeleteUser(UserId, u32),
    /// Opens a session.
    PutSession(Session),
    /// Ends a session; no conflict when it has ended already.
    DeleteSession(Digest),
    /// Records the last use of a session. Ignored when the session has ended or a later use is recorded.
    TouchSession(Digest, Timestamp),
    /// Stores a ticket, the secret of a sign-in link.
    PutTicket(Ticket),
    /// Consumes a ticket. A conflict when it was used already.
    TakeTicket(Digest),
    /// Counts an attempt to sign in as failed. A conflict when earlier failures reach a limit, or when another attempt
    /// was counted meanwhile that is [`slowed`](SignInAttempt::slowed) as much.
    CountSignIn(SignInAttempt),
    /// Deletes the failures of the attempt's email from its network, including the attempt itself.
    ForgetSignIns(SignInAttempt),
    /// Joins a person at a single sign-on provider to a user. A conflict when the person is joined to a user already.
    LinkIdentity(LinkedIdentity),
    /// Records the last use of an API key.
    TouchApiKey(ApiKeyId, Timestamp),
    /// Records the operations that API keys were used for, each with its last use. Ignored for a deleted key and where
    /// a later use is recorded.
    NoteKeyUses(Vec<OperationUse>),
    /// Creates or replaces a second factor.
    PutFactor(Box<Factor>, Expect),
    /// Removes a second factor of a user; no conflict when it was removed already.
    DeleteFactor(UserId, FactorId),
    /// Removes all second factors of a user, their recovery codes and the sign-ins that wait for them.
    DeleteFactors(UserId),
    /// Replaces the recovery codes of a user, stored as digests.
    PutRecoveryCodes(UserId, Vec<Digest>),
    /// Consumes a recovery code of a user. A conflict when it was used already.
    TakeRecoveryCode(UserId, Digest),
    /// Stores a sign-in that waits for a second factor.
    PutPendingSignIn(Box<PendingSignIn>),
    /// Counts a code that was tried in a sign-in. A conflict when the sign-in has ended, or
    /// [`MAX_TRIES`](crate::domain::security::factor::MAX_TRIES) codes were counted.
    CountCode(Digest),
    /// Ends a sign-in that waits for a second factor. A conflict when it has ended already.
    TakePendingSignIn(Digest),
}

impl AccountWrite {
    /// True if it stores something new on behalf of a caller, see [`Changes::adds`](super::Changes::adds).
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
