//! Second factors of people, and sign-ins that wait for one.
//!
//! Contract section 25. A factor counts once it was confirmed, that is, used for the first time.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::security::account::User;
use crate::domain::security::digest::Digest;
use crate::domain::security::oidc::VerifiedIdentity;
use crate::domain::security::passkey::Passkey;
use crate::ids::{FactorId, UserId};
use crate::time::Timestamp;

/// Maximum number of factors of a person, unconfirmed ones included.
pub const MAX_FACTORS: usize = 10;

/// Time in which a new factor can be confirmed.
pub const CONFIRMED_WITHIN: Duration = Duration::from_mins(15);

/// Time in which the second step of a sign-in can be done.
pub const PENDING_FOR: Duration = Duration::from_mins(10);

/// Time after a sign-in in which a person with a second factor adds another one without using one again.
pub const SIGN_IN_PROVES_FOR: Duration = Duration::from_mins(15);

/// Time for which a used sign-in by a passkey alone is remembered after its end: longer than clocks are set back or
/// differ.
pub const REMEMBERED_FOR: Duration = Duration::from_hours(24);

/// Codes that may be tried in one sign-in (contract section 25).
pub const MAX_TRIES: u32 = 5;

/// Kind of a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FactorKind {
    /// An app that shows codes.
    Totp,
    /// A key that a device keeps, which signs in alone as well.
    Passkey,
}

/// Means by which a factor is checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum FactorProof {
    /// Codes that follow from a secret and the time.
    Totp {
        /// The secret in base32, sealed for [`Factor::place`].
        sealed: String,
        /// Step of the last valid code, after which only later ones are accepted.
        used_step: Option<u64>,
    },
    /// Signatures of a key that a device keeps.
    Passkey {
        /// Random text from which the challenge to make the key is derived.
        nonce: String,
        /// The key, once the device has made it.
        passkey: Option<Passkey>,
    },
}

/// A second factor of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// Its id.
    pub id: FactorId,
    /// Id of the person.
    pub user_id: UserId,
    /// The person's name for it, 1 to 100 characters.
    pub name: String,
    /// Means by which it is checked.
    pub proof: FactorProof,
    /// Time of its first use, from which on it counts.
    pub confirmed_at: Option<Timestamp>,
    /// When it was last used.
    pub last_used_at: Option<Timestamp>,
    /// When it was added.
    pub created_at: Timestamp,
}

impl Factor {
    /// Kind of the factor.
    pub const fn kind(&self) -> FactorKind {
        match self.proof {
            FactorProof::Totp { .. } => FactorKind::Totp,
            FactorProof::Passkey { .. } => FactorKind::Passkey,
        }
    }

    /// Returns the passkey of a confirmed factor that is one.
    pub const fn passkey(&self) -> Option<&Passkey> {
        match &self.proof {
            FactorProof::Passkey { passkey, .. } => passkey.as_ref(),
            FactorProof::Totp { .. } => None,
        }
    }

    /// Returns the time until which it has to be confirmed; `None` once it was.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.confirmed_at.is_none().then(|| self.created_at + CONFIRMED_WITHIN)
    }

    /// True until the end of the time to confirm it, and for good once it was.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.expires_at().is_none_or(|end| now < end)
    }

    /// Returns the place that the secret of a factor is sealed for.
    pub fn place(user: UserId, id: FactorId) -> String {
        format!("factor/{user}/{id}")
    }

    /// Returns the factor after a use, which confirms it.
    #[must_use]
    pub fn used(self, now: Timestamp) -> Self {
        Self { confirmed_at: self.confirmed_at.or(Some(now)), last_used_at: Some(now), ..self }
    }
}

/// First factor of a sign-in, used in its first step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstFactor {
    /// A password, or the link of a workspace.
    #[default]
    Password,
    /// A link of the operator.
    OperatorLink,
    /// A sign-in at the single sign-on provider. The second step links its person to the user, if they are not linked
    /// yet.
    SignOn(Box<VerifiedIdentity>),
}

impl FirstFactor {
    /// True if it is allowed where people sign in by single sign-on alone: the operator's link stays as the way back
    /// in.
    pub const fn counts_with_sign_on_only(&self) -> bool {
        match self {
            Self::Password => false,
            Self::OperatorLink | Self::SignOn(_) => true,
        }
    }
}

/// A sign-in that has passed its first step and waits for a factor. Its token is known to its holder alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingSignIn {
    /// SHA-256 of the token.
    pub digest: Digest,
    /// Id of the person.
    pub user_id: UserId,
    /// The person's [`password_version`](User::password_version) at the first step; under another one the sign-in is
    /// void.
    pub password_version: u32,
    /// Factor of the first step.
    #[serde(default)]
    pub first_factor: FirstFactor,
    /// True if the session becomes a cookie of a browser.
    pub cookie: bool,
    /// True if the operator, by a link, or the single sign-on provider vouches for the person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_vouched: bool,
    /// Argon2id hash of a password that is set once the factor was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_hash: Option<String>,
    /// Time of the first step.
    pub created_at: Timestamp,
    /// Time until which the second step is possible.
    pub expires_at: Timestamp,
}

impl PendingSignIn {
    /// True if a code can be tried after this many others.
    pub fn takes_a_try(&self, tries: u32, now: Timestamp) -> bool {
        tries < MAX_TRIES && now < self.expires_at
    }

    /// Returns the person as the sign-in leaves them; `None` if the password changed since the first step.
    pub fn completed(&self, user: User) -> Option<User> {
        if user.password_version != self.password_version {
            return None;
        }
        let user = if self.is_vouched { user.vouched_for() } else { user };
        Some(match &self.password_hash {
            None => user,
            Some(hash) => User {
                password_hash: Some(hash.clone()),
                password_version: user.password_version.wrapping_add(1),
                ..user
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Id as _, WorkspaceId};

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn user() -> User {
        User::new(UserId::from_bytes([1; 16]), "ann@example.com".to_owned(), at(0))
    }

    fn pending() -> PendingSignIn {
        PendingSignIn {
            digest: Digest::of("mf_token"),
            user_id: user().id,
            password_version: 0,
            first_factor: FirstFactor::Password,
            cookie: false,
            is_vouched: false,
            password_hash: None,
            created_at: at(0),
            expires_at: at(0) + PENDING_FOR,
        }
    }

    #[test]
    fn a_factor_expires_unless_it_is_confirmed() {
        let factor = Factor {
            id: FactorId::from_bytes([2; 16]),
            user_id: user().id,
            name: "phone".to_owned(),
            proof: FactorProof::Totp { sealed: "sealed:1:AAAA".to_owned(), used_step: None },
            confirmed_at: None,
            last_used_at: None,
            created_at: at(0),
        };
        let end = at(0) + CONFIRMED_WITHIN;
        assert_eq!(factor.expires_at(), Some(end));
        assert!(factor.is_live(at(899_999)) && !factor.is_live(end));
        let used = factor.used(at(5)).used(at(7));
        assert_eq!((used.confirmed_at, used.last_used_at), (Some(at(5)), Some(at(7))));
        assert!(used.is_live(at(i64::MAX / 2)));
    }

    #[test]
    fn five_tries_or_ten_minutes_end_a_sign_in() {
        let pending = pending();
        for (tries, now, takes) in
            [(0, 0, true), (4, 599_999, true), (5, 0, false), (u32::MAX, 0, false), (0, 600_000, false)]
        {
            assert_eq!(pending.takes_a_try(tries, at(now)), takes, "{tries} {now}");
        }
    }

    #[test]
    fn with_sign_on_alone_passwords_do_not_count() {
        let person = VerifiedIdentity {
            issuer: "https://id.example.com".into(),
            subject: "ann".into(),
            name: None,
            groups: vec![],
        };
        for (first, counts) in [
            (FirstFactor::Password, false),
            (FirstFactor::OperatorLink, true),
            (FirstFactor::SignOn(Box::new(person)), true),
        ] {
            assert_eq!(first.counts_with_sign_on_only(), counts, "{first:?}");
        }
    }

    #[test]
    fn a_sign_in_does_at_its_end_what_its_first_step_asked_for() {
        assert_eq!(pending().completed(user()), Some(user()));
        assert_eq!(pending().completed(User { password_version: 1, ..user() }), None);
        let made = User { created_by: Some(WorkspaceId::from_bytes([3; 16])), ..user() };
        let with_password =
            PendingSignIn { is_vouched: true, password_hash: Some("$argon2id$".to_owned()), ..pending() };
        let after = with_password.completed(made).unwrap();
        assert_eq!((after.created_by, after.password_version), (None, 2));
        assert_eq!(after.password_hash.as_deref(), Some("$argon2id$"));
    }
}
