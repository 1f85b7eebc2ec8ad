//! MTA-STS policies (RFC 8461): found through DNS, fetched over HTTPS, kept until they expire.
//!
//! A kept policy holds even if its record is gone or its server does not answer: an attacker on the network could bring
//! about both. So the record can only add a policy, or replace the one before. A kept policy that cannot be read is not
//! the same as none: no mail goes to the domain until it can be read.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};
use messaging_core::domain::mail::mta_sts::{MAX_POLICY_BYTES, StsMode, StsPolicy, StsText, parse, policy_id};
use messaging_core::ports::fetch::{Fetch, FetchRequest, Protocol};
use messaging_core::ports::sts_policy_cache::{PolicyUnread, StsPolicyCache};
use messaging_core::time::Timestamp;
use tokio::sync::Mutex as Turn;
use tokio::time::Instant;

use crate::dns::{Dns, LookupFailure};

/// Time limit for the web server of a domain (RFC 8461 section 3.3).
const FETCH_TIME: Duration = Duration::from_mins(1);

/// Minimum time between two fetches of a policy, successful or not; also the minimum time for which a policy is kept.
const FETCH_AGAIN_AFTER: Duration = Duration::from_mins(5);

/// Time after which a policy is read again from the cache that all processes share.
const READ_AGAIN_AFTER: Duration = Duration::from_hours(1);

/// Maximum number of domains that are remembered, with a policy or without.
const MAX_REMEMBERED: usize = 10_000;

/// Finds the MTA-STS policies of domains.
pub(crate) struct MtaSts {
    dns: Dns,
    fetch: Arc<dyn Fetch>,
    kept: Arc<dyn StsPolicyCache>,
    remembered: Mutex<HashMap<String, Remembered>>,
    /// One lock for each domain whose policy is being fetched.
    turns: Mutex<HashMap<String, Arc<Turn<()>>>>,
}

/// The policy of a domain, as last read.
struct Remembered {
    policy: Option<Arc<StsPolicy>>,
    read_at: Instant,
    /// The id for which the policy was last fetched, successfully or not, and the time of that.
    fetched: Option<(String, Instant)>,
    /// Time at which the last look-up of the record failed.
    silent_since: Option<Instant>,
}

impl fmt::Debug for MtaSts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MtaSts").finish_non_exhaustive()
    }
}

impl MtaSts {
    pub(crate) fn new(dns: Dns, fetch: Arc<dyn Fetch>, kept: Arc<dyn StsPolicyCache>) -> Self {
        Self { dns, fetch, kept, remembered: Mutex::default(), turns: Mutex::default() }
    }

    /// Returns the policy that holds for mail to a domain (lower case, A-labels), if there is one.
    pub(crate) async fn policy(&self, domain: &str, now: Timestamp) -> Result<Option<Arc<StsPolicy>>, PolicyUnread> {
        Ok(self.found(domain, now).await?.filter(|policy| policy.mode != StsMode::None))
    }

    async fn found(&self, domain: &str, now: Timestamp) -> Result<Option<Arc<StsPolicy>>, PolicyUnread> {
        let known = self.known(domain, now).await?;
        let Some(id) = self.published_id(domain).await else { return Ok(known.filter(|policy| policy.holds(now))) };
        if !self.is_to_be_fetched(domain, known.as_deref(), &id, now) {
            return Ok(known.filter(|policy| policy.holds(now)));
        }
        let turn = self.turn(domain);
        let _turn = turn.lock().await;
        // Another attempt may have fetched the policy while this one waited.
        let known = self.known(domain, now).await?;
        if self.is_to_be_fetched(domain, known.as_deref(), &id, now) {
            match fetch_policy(self.fetch.as_ref(), domain, FETCH_TIME).await {
                Ok(text) => {
                    let policy = Arc::new(StsPolicy::fetched(domain, &id, text, now));
                    self.kept.keep(&policy).await;
                    self.remember(domain, Some(Arc::clone(&policy)), Some(id));
                    return Ok(Some(policy));
                }
                Err(reason) => {
                    tracing::info!(domain, %reason, "an MTA-STS policy cannot be fetched");
                    self.remember(domain, known.clone(), Some(id));
                }
            }
        }
        Ok(known.filter(|policy| policy.holds(now)))
    }

    /// Returns the id in the record of a domain. If its servers do not answer, they are not asked again for a while:
    /// each message would wait for them.
    async fn published_id(&self, domain: &str) -> Option<String> {
        let is_silent = |known: &Remembered| known.silent_since.is_some_and(|at| at.elapsed() < FETCH_AGAIN_AFTER);
        if self.lock().get(domain).is_some_and(is_silent) {
            return None;
        }
        let records = self.dns.texts(&format!("_mta-sts.{domain}")).await;
        if let (Err(LookupFailure::Temporary(_)), Some(known)) = (&records, self.lock().get_mut(domain)) {
            known.silent_since = Some(Instant::now());
        }
        policy_id(&records.ok()?)
    }

    /// Returns true if the policy of this id is unknown or no longer fresh, and was not fetched a moment ago.
    fn is_to_be_fetched(&self, domain: &str, known: Option<&StsPolicy>, id: &str, now: Timestamp) -> bool {
        let is_fresh = known.is_some_and(|known| known.id == id && known.holds(now) && !known.is_aging(now));
        let is_recent = |(last, at): &(String, Instant)| last == id && at.elapsed() < FETCH_AGAIN_AFTER;
        let was_fetched = || self.lock().get(domain).is_some_and(|known| known.fetched.as_ref().is_some_and(is_recent));
        !is_fresh && !was_fetched()
    }

    /// Returns the policy that is remembered or kept, even if it has expired. A remembered policy that still holds is
    /// used when it cannot be read again or could not be kept. A failure to read is not remembered.
    async fn known(&self, domain: &str, now: Timestamp) -> Result<Option<Arc<StsPolicy>>, PolicyUnread> {
        let remembered = self.lock().get(domain).map(|known| (known.policy.clone(), known.read_at));
        let before = match remembered {
            Some((policy, read_at)) if read_at.elapsed() < READ_AGAIN_AFTER => return Ok(policy),
            Some((policy, _)) => policy.filter(|policy| policy.holds(now)),
            None => None,
        };
        match (self.kept.policy(domain).await, before) {
            (Err(_), Some(before)) => Ok(Some(before)),
            (Err(unread), None) => Err(unread),
            (Ok(kept), before) => {
                let policy = kept.map(Arc::new);
                if let (None, Some(before)) = (&policy, &before) {
                    self.kept.keep(before).await;
                }
                let policy = policy.or(before);
                self.remember(domain, policy.clone(), None);
                Ok(policy)
            }
        }
    }

    /// Remembers the policy of a domain, and the id for which it was just fetched.
    fn remember(&self, domain: &str, policy: Option<Arc<StsPolicy>>, fetched: Option<String>) {
        let mut remembered = self.lock();
        if remembered.len() >= MAX_REMEMBERED && !remembered.contains_key(domain) {
            remembered.clear();
        }
        let now = Instant::now();
        let before = remembered.remove(domain);
        let silent_since = before.as_ref().and_then(|known| known.silent_since);
        let fetched = fetched.map(|id| (id, now)).or_else(|| before.and_then(|known| known.fetched));
        remembered.insert(domain.to_owned(), Remembered { policy, read_at: now, fetched, silent_since });
    }

    /// Returns the lock that lets one task at a time fetch the policy of a domain.
    fn turn(&self, domain: &str) -> Arc<Turn<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // Only locks of fetches under way stay in the map.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(domain.to_owned()).or_default())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Remembered>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fetches the policy of a domain (RFC 8461 section 3.3), within a time limit.
pub(crate) async fn fetch_policy(fetch: &dyn Fetch, domain: &str, within: Duration) -> Result<StsText, String> {
    let request = FetchRequest {
        protocol: Protocol::Negotiated,
        method: Method::GET,
        url: format!("https://mta-sts.{domain}/.well-known/mta-sts.txt"),
        headers: HeaderMap::new(),
        body: Bytes::new(),
        time_limit: within,
        body_limit: MAX_POLICY_BYTES,
        redirects: 0,
    };
    let fetched = fetch.fetch(request).await.map_err(|error| error.to_string())?;
    if fetched.status != StatusCode::OK {
        return Err(format!("the web server answered {}", fetched.status.as_u16()));
    }
    let kind = fetched.headers.get(CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default());
    let is_plain =
        |kind: &str| kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/plain"));
    if !kind.is_none_or(is_plain) {
        return Err("the policy is not text/plain".to_owned());
    }
    if fetched.truncated {
        return Err("the policy is larger than 64 KiB".to_owned());
    }
    let text = std::str::from_utf8(&fetched.body).map_err(|_| "the policy is no text".to_owned())?;
    let text = parse(text).map_err(|fault| fault.to_string())?;
    Ok(StsText { max_age: text.max_age.max(FETCH_AGAIN_AFTER), ..text })
}
