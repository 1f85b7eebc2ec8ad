//! MTA-STS policies of domains of recipients.

use std::time::Duration;

use messaging_core::changes::Write;
use messaging_core::domain::mail::mta_sts::{StsMode, StsPolicy, StsText};
use messaging_core::ports::store::Store;

use super::put;
use super::sample::at;

fn policy(domain: &str, id: &str, millis: u64) -> StsPolicy {
    let mx = vec!["mx.example.org".to_owned(), "*.example.net".to_owned()];
    let text = StsText { mode: StsMode::Enforce, mx, max_age: Duration::from_millis(millis) };
    StsPolicy::fetched(domain, id, text, at(0))
}

fn keep(policy: &StsPolicy) -> Write {
    Write::PutStsPolicy(Box::new(policy.clone()))
}

/// A domain has one policy: the last that was kept, also after it has expired.
pub async fn policies_are_kept_by_domain(store: &dyn Store) {
    assert_eq!(store.sts_policy("a.test").await.unwrap(), None);
    let (first, other) = (policy("a.test", "1", 100), policy("b.test", "1", 0));
    put(store, [keep(&first), keep(&other)]).await;
    assert_eq!(store.sts_policy("a.test").await.unwrap(), Some(first));
    let second = StsPolicy { mode: StsMode::None, mx: Vec::new(), ..policy("a.test", "2", 50) };
    put(store, [keep(&second)]).await;
    assert_eq!(store.sts_policy("a.test").await.unwrap(), Some(second));
    assert_eq!(store.sts_policy("b.test").await.unwrap(), Some(other));
}

/// Those that expired before a time are removed, a few at a time.
pub async fn expired_policies_go(store: &dyn Store) {
    let all: Vec<_> = (0..5).map(|n| policy(&format!("{n}.test"), "1", n * 10)).collect();
    put(store, all.iter().map(keep).collect::<Vec<_>>()).await;
    assert_eq!(store.forget_sts_policies(at(30), 2).await.unwrap(), 2);
    assert_eq!(store.forget_sts_policies(at(30), 2).await.unwrap(), 1);
    assert_eq!(store.forget_sts_policies(at(30), 2).await.unwrap(), 0);
    for (n, policy) in all.iter().enumerate() {
        let expected = (n >= 3).then(|| policy.clone());
        assert_eq!(store.sts_policy(&policy.domain).await.unwrap(), expected, "{n}");
    }
}
