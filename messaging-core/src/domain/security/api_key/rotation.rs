//! Rotation: a new key replaces an old one, which still works for a while.
//!
//! Contract section 2.2.

use std::time::Duration;

use super::{ApiKey, ApiKeyStatus};
use crate::domain::security::digest::Digest;
use crate::ids::ApiKeyId;
use crate::time::Timestamp;

/// Hours for which the old key still works by default.
pub const DEFAULT_OVERLAP_HOURS: u32 = 24;

/// Maximum number of hours for which the old key still works: 30 days.
pub const MAX_OVERLAP_HOURS: u32 = 720;

/// The part of a key that no other key shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyIdentity {
    /// Id of the key.
    pub id: ApiKeyId,
    /// Marker and prefix.
    pub prefix: String,
    /// SHA-256 of the secret.
    pub secret_digest: Digest,
}

/// Both keys after a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    /// The old key, which ends with the overlap.
    pub old: ApiKey,
    /// The new key.
    pub new: ApiKey,
}

/// Replaces a key. The new one has the same scopes and addresses, and the lifetime that the old one was given. The old
/// one ends after `overlap`, never later than it would have. Fails with the state of a key that is not active.
pub fn rotate(old: ApiKey, identity: KeyIdentity, overlap: Duration, now: Timestamp) -> Result<Rotated, ApiKeyStatus> {
    match old.status(now) {
        ApiKeyStatus::Active => {}
        status => return Err(status),
    }
    let KeyIdentity { id, prefix, secret_digest } = identity;
    let life = old.expires_at.map(|end| end.since(old.created_at));
    let new = ApiKey {
        id,
        prefix,
        secret_digest,
        created_at: now,
        expires_at: life.map(|life| now + life),
        rotated_from: Some(old.id),
        replaced_by: None,
        warned_days: None,
        ..old.clone()
    };
    let end = now + overlap;
    let end = old.expires_at.map_or(end, |expires_at| expires_at.min(end));
    Ok(Rotated { old: ApiKey { expires_at: Some(end), replaced_by: Some(id), ..old }, new })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::security::api_key::sample;
    use crate::scope::Scope;

    const HOUR: Duration = Duration::from_hours(1);

    fn at(hours: u32) -> Timestamp {
        Timestamp::from_millis(0) + HOUR * hours
    }

    fn identity() -> KeyIdentity {
        KeyIdentity {
            id: "key_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ".parse().unwrap(),
            prefix: "mk_live_new000000000".to_owned(),
            secret_digest: Digest::of("new"),
        }
    }

    #[test]
    fn the_new_key_may_do_what_the_old_one_may() {
        let old = ApiKey {
            scopes: vec![Scope::MessagesSend],
            rate_limit: 7,
            ip_allowlist: vec!["10.0.0.0/8".to_owned()],
            expires_at: Some(at(1000)),
            warned_days: Some(14),
            rotated_from: Some("key_01JB3Q8Z5N6W7X8Y9ZABCDEFGK".parse().unwrap()),
            ..sample(at(100))
        };
        let Rotated { old: ended, new } = rotate(old.clone(), identity(), HOUR * 24, at(700)).unwrap();
        assert_eq!(
            new,
            ApiKey {
                id: identity().id,
                prefix: identity().prefix,
                secret_digest: identity().secret_digest,
                created_at: at(700),
                expires_at: Some(at(1600)),
                rotated_from: Some(old.id),
                warned_days: None,
                ..old.clone()
            }
        );
        assert_eq!(ended, ApiKey { expires_at: Some(at(724)), replaced_by: Some(new.id), ..old });
    }

    #[test]
    fn the_old_key_never_lives_longer_than_it_would_have() {
        #[track_caller]
        fn check(expires_at: Option<Timestamp>, overlap: u32, ends: Timestamp, new_ends: Option<Timestamp>) {
            let old = ApiKey { expires_at, ..sample(at(0)) };
            let Rotated { old, new } = rotate(old, identity(), HOUR * overlap, at(10)).unwrap();
            assert_eq!((old.expires_at, new.expires_at), (Some(ends), new_ends));
        }
        check(None, 24, at(34), None);
        check(None, 0, at(10), None);
        check(None, MAX_OVERLAP_HOURS, at(730), None);
        check(Some(at(12)), 24, at(12), Some(at(22)));
        check(Some(at(50)), 24, at(34), Some(at(60)));
    }

    #[test]
    fn without_an_overlap_the_old_key_is_dead_at_once() {
        let Rotated { old, new } = rotate(sample(at(0)), identity(), Duration::ZERO, at(10)).unwrap();
        assert_eq!((old.is_live(at(10)), new.is_live(at(10))), (false, true));
    }

    #[test]
    fn only_an_active_key_is_rotated() {
        let refused = |key: ApiKey| rotate(key, identity(), HOUR, at(10)).unwrap_err();
        assert_eq!(refused(ApiKey { revoked_at: Some(at(9)), ..sample(at(0)) }), ApiKeyStatus::Revoked);
        assert_eq!(refused(ApiKey { expires_at: Some(at(10)), ..sample(at(0)) }), ApiKeyStatus::Expired);
        let once = rotate(sample(at(0)), identity(), HOUR * 24, at(9)).unwrap().old;
        assert_eq!(refused(once), ApiKeyStatus::Replaced);
    }
}
