//! Second factors of users, their recovery codes, and sign-ins that wait for a factor.

use messaging_core::changes::{AccountWrite, Expect, Write};
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::factor::{CONFIRMED_WITHIN, Factor, FactorProof, MAX_TRIES, PendingSignIn};
use messaging_core::ids::UserId;
use messaging_core::ports::store::{SealedSecret, Store, needs_its_key};

use super::sample::{at, factor, id, pending_sign_in, user};
use super::{all_pages, first, put, refuse};

fn put_factor(factor: &Factor, expect: Expect) -> Write {
    Write::Account(AccountWrite::PutFactor(Box::new(factor.clone()), expect))
}

fn put_codes(user: UserId, codes: &[&str]) -> Write {
    Write::Account(AccountWrite::PutRecoveryCodes(user, codes.iter().map(|code| Digest::of(code)).collect()))
}

fn take_code(user: UserId, code: &str) -> Write {
    Write::Account(AccountWrite::TakeRecoveryCode(user, Digest::of(code)))
}

fn put_pending(pending: &PendingSignIn) -> Write {
    Write::Account(AccountWrite::PutPendingSignIn(Box::new(pending.clone())))
}

/// A factor is only found under its user, and is only changed at its revision.
pub async fn factors_round_trip(store: &dyn Store) {
    let owner: UserId = id();
    let (older, newer) = (factor(owner), factor(owner));
    let elsewhere = factor(id());
    put(store, [&older, &newer, &elsewhere].map(|one| put_factor(one, Expect::Absent))).await;
    let found = store.factor(owner, older.id).await.unwrap().unwrap();
    assert_eq!((&found.record, found.revision), (&older, 1));
    assert_eq!(store.factor(owner, elsewhere.id).await.unwrap(), None);
    let listed = store.factors_of(owner, first(10)).await.unwrap();
    let records: Vec<_> = listed.items.into_iter().map(|one| one.record).collect();
    assert_eq!((records, listed.next), (vec![newer.clone(), older.clone()], None));

    let used = Factor {
        proof: FactorProof::Totp { sealed: "sealed:1:BBBB".to_owned(), used_step: Some(56_666_667) },
        ..older.clone().used(at(9))
    };
    put(store, [put_factor(&used, Expect::Revision(1))]).await;
    // A commit that read the factor before this change is refused, so that a code counts once.
    refuse(store, [put_factor(&used, Expect::Revision(1))]).await;
    let found = store.factor(owner, older.id).await.unwrap().unwrap();
    assert_eq!((found.record, found.revision), (used, 2));
    for _ in 0..2 {
        put(store, [Write::Account(AccountWrite::DeleteFactor(owner, older.id))]).await;
        assert_eq!(store.factor(owner, older.id).await.unwrap(), None);
    }
    put(store, [Write::Account(AccountWrite::DeleteFactor(owner, elsewhere.id))]).await;
    assert!(store.factor(elsewhere.user_id, elsewhere.id).await.unwrap().is_some(), "it is somebody else's");
}

/// The factors of all users are listed newest first, page by page, and their secrets are among the sealed secrets.
pub async fn factors_of_everybody_are_listed(store: &dyn Store) {
    assert!(!needs_its_key(store).await.unwrap());
    let mut made = Vec::new();
    for _ in 0..5 {
        let one = factor(id());
        put(store, [put_factor(&one, Expect::Absent)]).await;
        made.insert(0, one);
    }
    let add = async || put(store, [put_factor(&factor(id()), Expect::Absent)]).await;
    assert_eq!(all_pages(2, async |page| store.factors(page).await, add).await, made);
    assert!(needs_its_key(store).await.unwrap());
    let place = Factor::place(made[0].user_id, made[0].id);
    let secret = SealedSecret { place, sealed: "sealed:1:AAAA".to_owned() };
    assert!(store.sealed_secrets(99).await.unwrap().contains(&secret));
}

/// A recovery code is taken once, by its own user; new codes replace the older ones.
pub async fn recovery_codes_are_good_once(store: &dyn Store) {
    let (owner, other): (UserId, UserId) = (id(), id());
    put(store, [put_codes(owner, &["one", "two"]), put_codes(other, &["three"])]).await;
    assert_eq!(store.recovery_code_count(owner).await.unwrap(), 2);
    assert!(store.has_recovery_code(owner, &Digest::of("one")).await.unwrap());
    assert!(!store.has_recovery_code(other, &Digest::of("one")).await.unwrap());
    refuse(store, [take_code(other, "one")]).await;
    put(store, [take_code(owner, "one")]).await;
    refuse(store, [take_code(owner, "one")]).await;
    assert!(!store.has_recovery_code(owner, &Digest::of("one")).await.unwrap());
    put(store, [put_codes(owner, &["four", "five", "six"])]).await;
    assert!(!store.has_recovery_code(owner, &Digest::of("two")).await.unwrap());
    assert_eq!(store.recovery_code_count(owner).await.unwrap(), 3);
    assert_eq!(store.recovery_code_count(other).await.unwrap(), 1);
}

/// A pending sign-in counts at most `MAX_TRIES` codes, over all processes, and is taken once.
pub async fn codes_of_a_sign_in_are_counted(store: &dyn Store) {
    let pending = pending_sign_in("mf_token", id());
    put(store, [put_pending(&pending)]).await;
    let count = || Write::Account(AccountWrite::CountCode(pending.digest));
    for tries in 0..MAX_TRIES {
        assert_eq!(store.pending_sign_in(&pending.digest).await.unwrap(), Some((pending.clone(), tries)));
        put(store, [count()]).await;
    }
    refuse(store, [count()]).await;
    assert_eq!(store.pending_sign_in(&pending.digest).await.unwrap(), Some((pending.clone(), MAX_TRIES)));
    assert_eq!(store.pending_sign_in(&Digest::of("mf_other")).await.unwrap(), None);
    let take = || Write::Account(AccountWrite::TakePendingSignIn(pending.digest));
    put(store, [take()]).await;
    refuse(store, [take()]).await;
    refuse(store, [count()]).await;
    assert_eq!(store.pending_sign_in(&pending.digest).await.unwrap(), None);
}

/// Expired sign-ins and factors that nobody confirmed in time are deleted, and nothing else.
pub async fn what_is_over_is_forgotten(store: &dyn Store) {
    let owner: UserId = id();
    let confirmed = factor(owner);
    let waiting = Factor { confirmed_at: None, created_at: at(100), ..factor(owner) };
    let over = Factor { confirmed_at: None, created_at: at(0), ..factor(owner) };
    let (ended, open) = (pending_sign_in("mf_ended", owner), pending_sign_in("mf_open", owner));
    let now = at(0) + CONFIRMED_WITHIN;
    let open = PendingSignIn { expires_at: at(1) + CONFIRMED_WITHIN, ..open };
    put(store, [&confirmed, &waiting, &over].map(|one| put_factor(one, Expect::Absent))).await;
    put(store, [&ended, &open].map(put_pending)).await;
    assert_eq!(store.forget_expired(now, 100).await.unwrap(), 2);
    assert_eq!(store.forget_expired(now, 100).await.unwrap(), 0);
    for (one, is_left) in [(&confirmed, true), (&waiting, true), (&over, false)] {
        assert_eq!(store.factor(owner, one.id).await.unwrap().is_some(), is_left);
    }
    assert!(store.pending_sign_in(&ended.digest).await.unwrap().is_none());
    assert!(store.pending_sign_in(&open.digest).await.unwrap().is_some());
    // A factor that was confirmed meanwhile stays.
    put(store, [put_factor(&waiting.clone().used(now), Expect::Revision(1))]).await;
    assert_eq!(store.forget_expired(at(1_000_000_000), 100).await.unwrap(), 1);
    assert!(store.factor(owner, waiting.id).await.unwrap().is_some());
}

/// Factors, recovery codes and pending sign-ins are deleted with their user, and when the user's factors are reset;
/// those of other users stay.
pub async fn factors_go_with_their_user(store: &dyn Store) {
    let people = [user(), user(), user()];
    for one in &people {
        let pending = pending_sign_in(&format!("mf_{}", one.id), one.id);
        let factor = put_factor(&factor(one.id), Expect::Absent);
        put(
            store,
            [Write::put(one.clone(), Expect::Absent), factor, put_codes(one.id, &["code"]), put_pending(&pending)],
        )
        .await;
    }
    put(store, [Write::Account(AccountWrite::DeleteUser(people[0].id, 1))]).await;
    put(store, [Write::Account(AccountWrite::DeleteFactors(people[1].id))]).await;
    for (one, left) in people.iter().zip([0, 0, 1]) {
        assert_eq!(store.factors_of(one.id, first(10)).await.unwrap().items.len(), left);
        assert_eq!(store.recovery_code_count(one.id).await.unwrap(), left as u64);
        let token = Digest::of(&format!("mf_{}", one.id));
        assert_eq!(store.pending_sign_in(&token).await.unwrap().is_some(), left > 0);
    }
}
