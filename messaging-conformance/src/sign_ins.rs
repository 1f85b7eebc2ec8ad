//! Failed sign-ins.

use std::time::Duration;

use messaging_core::changes::{AccountWrite, Write};
use messaging_core::domain::security::login_attempts::{
    KEPT_FOR, PER_ACCOUNT, PER_EMAIL, PER_NETWORK, PER_SITE, SLOWED_FOR, SignInAttempt, SignInBlocks, SlowedAccount,
};
use messaging_core::ports::store::{Priority, Store};
use messaging_core::time::Timestamp;

use super::commit::at_once;
use super::sample::at;
use super::{put, refuse};

fn attempt(email: &str, address: &str, at: Timestamp) -> SignInAttempt {
    SignInAttempt::new(email, Some(address.parse().expect("an address")), at)
}

/// Ten failures of an email from a network use up their limit, for a quarter of an hour; a success forgets them.
pub async fn failures_of_an_email_count(store: &dyn Store) {
    for second in 0..10 {
        put(store, [Write::Account(AccountWrite::CountSignIn(attempt("a@b.co", "192.0.2.1", at(second * 1000))))])
            .await;
    }
    let eleventh = |millis| attempt("a@b.co", "192.0.2.1", at(millis));
    let used_up = SignInBlocks { email: Some(at(0)), ..SignInBlocks::default() };
    assert_eq!(store.sign_in_blocks(&eleventh(10_000)).await.unwrap(), used_up);
    refuse(store, [Write::Account(AccountWrite::CountSignIn(eleventh(10_000)))]).await;
    for other in [attempt("a@b.co", "192.0.2.2", at(10_000)), attempt("other@b.co", "192.0.2.1", at(10_000))] {
        assert_eq!(store.sign_in_blocks(&other).await.unwrap(), SignInBlocks::default());
    }
    let window = i64::try_from(PER_EMAIL.window.as_millis()).unwrap();
    assert_eq!(store.sign_in_blocks(&eleventh(window - 1)).await.unwrap(), used_up);
    assert_eq!(store.sign_in_blocks(&eleventh(window)).await.unwrap(), SignInBlocks::default());
    put(store, [Write::Account(AccountWrite::ForgetSignIns(eleventh(10_000)))]).await;
    put(store, [Write::Account(AccountWrite::CountSignIn(eleventh(10_000)))]).await;
}

/// A hundred failures of a network use up its limit, whatever the emails, for an hour.
pub async fn failures_of_a_network_count(store: &dyn Store) {
    for number in 0..100 {
        put(
            store,
            [Write::Account(AccountWrite::CountSignIn(attempt(&format!("{number}@b.co"), "2001:db8::1", at(number))))],
        )
        .await;
    }
    let next = |address, millis| attempt("next@b.co", address, at(millis));
    let used_up = SignInBlocks { network: Some(at(0)), ..SignInBlocks::default() };
    assert_eq!(store.sign_in_blocks(&next("2001:db8::2", 100)).await.unwrap(), used_up);
    refuse(store, [Write::Account(AccountWrite::CountSignIn(next("2001:db8::2", 100)))]).await;
    assert_eq!(store.sign_in_blocks(&next("2001:db8:0:1::2", 100)).await.unwrap(), SignInBlocks::default());
    let window = i64::try_from(PER_NETWORK.window.as_millis()).unwrap();
    assert_eq!(store.sign_in_blocks(&next("2001:db8::2", window)).await.unwrap(), SignInBlocks::default());
}

/// A thousand failures of the networks of a /48 use up its limit, for an hour.
pub async fn failures_of_a_site_count(store: &dyn Store) {
    for number in 0..1000_i64 {
        let address = format!("2001:db8:0:{:x}::1", number / 50);
        put(
            store,
            [Write::Account(AccountWrite::CountSignIn(attempt(&format!("{number}@b.co"), &address, at(number))))],
        )
        .await;
    }
    let next = |address, millis| attempt("next@b.co", address, at(millis));
    let used_up = SignInBlocks { site: Some(at(0)), ..SignInBlocks::default() };
    assert_eq!(store.sign_in_blocks(&next("2001:db8:0:ffff::1", 1000)).await.unwrap(), used_up);
    refuse(store, [Write::Account(AccountWrite::CountSignIn(next("2001:db8:0:ffff::1", 1000)))]).await;
    assert_eq!(store.sign_in_blocks(&next("2001:db8:1::1", 1000)).await.unwrap(), SignInBlocks::default());
    let window = i64::try_from(PER_SITE.window.as_millis()).unwrap();
    assert_eq!(store.sign_in_blocks(&next("2001:db8:0:ffff::1", window)).await.unwrap(), SignInBlocks::default());
}

/// Fifty failures of an email from anywhere slow it down: each further try is counted with how many before it had to wait,
/// and one that was not told of another is a conflict. A success forgets its own network alone.
pub async fn failures_of_an_account_slow_it(store: &dyn Store) {
    let from = |n: i64, millis| attempt("a@b.co", &format!("192.0.2.{n}"), at(millis));
    for n in 0..50 {
        put(store, [Write::Account(AccountWrite::CountSignIn(from(n, n)))]).await;
    }
    let slowed = |millis, slowed| SignInBlocks {
        account: Some(SlowedAccount { at: at(millis), slowed }),
        ..SignInBlocks::default()
    };
    let blocks = async |attempt: SignInAttempt| store.sign_in_blocks(&attempt).await.unwrap();
    assert_eq!(blocks(from(60, 50)).await, slowed(49, 0));
    refuse(store, [Write::Account(AccountWrite::CountSignIn(from(60, 60_050)))]).await;
    let waited = |n, millis, slowed| SignInAttempt { slowed, ..from(n, millis) };
    put(store, [Write::Account(AccountWrite::CountSignIn(waited(60, 60_050, 1)))]).await;
    refuse(store, [Write::Account(AccountWrite::CountSignIn(waited(61, 60_051, 1)))]).await;
    assert_eq!(blocks(from(61, 60_051)).await, slowed(60_050, 1));
    assert_eq!(blocks(attempt("other@b.co", "192.0.2.61", at(60_051))).await, SignInBlocks::default());

    // It is remembered for longer than the fifty count.
    let window = i64::try_from(PER_ACCOUNT.window.as_millis()).unwrap();
    assert_eq!(blocks(from(61, window + 100)).await, slowed(60_050, 1));
    put(store, [Write::Account(AccountWrite::CountSignIn(waited(61, window + 100, 2)))]).await;
    put(store, [Write::Account(AccountWrite::ForgetSignIns(waited(61, window + 100, 2)))]).await;
    assert_eq!(blocks(from(61, window + 200)).await, slowed(60_050, 1));
    let end = 60_050 + i64::try_from(SLOWED_FOR.as_millis()).unwrap();
    assert_eq!(blocks(from(61, end)).await, SignInBlocks::default());
}

/// Of attempts at the same moment no more than the limit are counted.
pub async fn a_crowd_of_attempts_is_counted(store: &dyn Store) {
    let crowd = (0..30).map(|_| {
        let writes = [Write::Account(AccountWrite::CountSignIn(attempt("a@b.co", "192.0.2.1", at(0))))];
        store.commit(writes.into_iter().collect(), Priority::Foreground)
    });
    let outcomes = at_once(crowd.collect()).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), PER_EMAIL.failures);
    let crowd = (0..80).map(|n| {
        let writes = [Write::Account(AccountWrite::CountSignIn(attempt("b@b.co", &format!("192.0.2.{n}"), at(0))))];
        store.commit(writes.into_iter().collect(), Priority::Foreground)
    });
    let outcomes = at_once(crowd.collect()).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), PER_ACCOUNT.failures);
}

/// Failures dated by a clock that was wrong block nobody, and go with those that are old.
pub async fn old_and_future_failures_are_forgotten(store: &dyn Store) {
    let now = at(0);
    let (old, future) = (now - KEPT_FOR, now + Duration::from_hours(87_600));
    for time in [old, future] {
        for _ in 0..10 {
            put(store, [Write::Account(AccountWrite::CountSignIn(attempt("a@b.co", "192.0.2.1", time)))]).await;
        }
    }
    assert_eq!(store.sign_in_blocks(&attempt("a@b.co", "192.0.2.1", now)).await.unwrap(), SignInBlocks::default());
    put(store, [Write::Account(AccountWrite::CountSignIn(attempt("a@b.co", "192.0.2.1", now)))]).await;
    assert_eq!(store.forget_sign_ins(now, 15).await.unwrap(), 15);
    assert_eq!(store.forget_sign_ins(now, 15).await.unwrap(), 5);
    assert_eq!(store.forget_sign_ins(now, 15).await.unwrap(), 0);
}
