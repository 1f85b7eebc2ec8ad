//! DKIM keys of sending domains: made, sealed, and opened for signing.

use std::fmt::Write as _;
use std::sync::{Arc, PoisonError};

use messaging_core::domain::mail::dkim::{Algorithm, NewKey, Signer, generate};
use messaging_core::domain::mail::sending_domain::{Check, DkimKey, SendingDomain};
use messaging_core::ids::DomainId;
use messaging_core::time::Timestamp;

use crate::app::App;
use crate::app::signers::{CAPACITY, Opened};
use crate::error::Error;

/// Algorithms of a domain's keys: old receivers know RSA alone.
pub(crate) const ALGORITHMS: &[Algorithm] = &[Algorithm::RsaSha256, Algorithm::Ed25519Sha256];

/// New keys that belong to no domain yet.
#[derive(Debug)]
pub(crate) struct NewKeys(Vec<(Algorithm, NewKey)>);

/// The mail of a domain cannot be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the mail cannot be signed: a DKIM key of the sending domain does not open with this server's secret key, or none is published"
)]
pub struct UnusableKey;

impl App {
    /// Makes a key of each algorithm.
    pub(crate) async fn make_dkim_keys(&self, algorithms: &[Algorithm]) -> Result<NewKeys, Error> {
        let (algorithms, entropy) = (algorithms.to_vec(), Arc::clone(&self.0.entropy));
        let one = move |algorithm| (algorithm, generate(algorithm, entropy.as_ref()));
        Ok(NewKeys(self.dkim_keys().run(move || algorithms.into_iter().map(one).collect()).await?))
    }

    /// Seals the keys for a domain, each with a selector of its own.
    pub(crate) fn seal_dkim_keys(&self, keys: &NewKeys, domain: DomainId, now: Timestamp) -> Vec<DkimKey> {
        let seal = |(algorithm, key): &(Algorithm, NewKey)| {
            let selector = self.new_selector();
            let place = DkimKey::place(domain, &selector);
            DkimKey {
                sealed: self.vault().seal(&place, &key.private, self.entropy()),
                selector,
                algorithm: *algorithm,
                public: key.public.clone(),
                check: Check::default(),
                created_at: now,
                verified_at: None,
            }
        };
        keys.0.iter().map(seal).collect()
    }

    /// Returns a selector: `mk` and eight random hexadecimal digits, so that it repeats neither an earlier selector nor
    /// that of another signer.
    fn new_selector(&self) -> String {
        let mut random = [0; 4];
        self.entropy().fill(&mut random);
        random.iter().fold("mk".to_owned(), |mut selector, byte| {
            let _ = write!(selector, "{byte:02x}");
            selector
        })
    }

    /// Returns the keys that sign mail of the domain now; see [`SendingDomain::signing_keys`]. Keys are opened once and
    /// cached, so that this is cheap on every delivery. An error if a key does not open, or if the domain has keys of
    /// which none can sign: its mail must not leave unsigned.
    pub fn signers(&self, domain: &SendingDomain) -> Result<Vec<Arc<Signer>>, UnusableKey> {
        let wanted = domain.signing_keys();
        if wanted.is_empty() && !domain.dkim.is_empty() {
            return Err(UnusableKey);
        }
        let known = |opened: &Opened| -> Option<Vec<Option<Arc<Signer>>>> {
            let find =
                |selector: &str| opened.iter().find(|(known, _)| known == selector).map(|(_, signer)| signer.clone());
            wanted.iter().map(|key| find(&key.selector)).collect()
        };
        let cache = &self.signer_cache().0;
        let cached = cache.read().unwrap_or_else(PoisonError::into_inner).get(&domain.id).and_then(known);
        if let Some(signers) = cached {
            return signers.into_iter().collect::<Option<_>>().ok_or(UnusableKey);
        }
        let opened: Opened = wanted.iter().map(|key| (key.selector.clone(), self.open_key(domain, key))).collect();
        let signers = opened.iter().map(|(_, signer)| signer.clone()).collect::<Option<_>>().ok_or(UnusableKey);
        let mut cache = cache.write().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= CAPACITY {
            cache.clear();
        }
        // Keys from before a rotation are not needed again.
        cache.insert(domain.id, opened);
        signers
    }

    fn open_key(&self, domain: &SendingDomain, key: &DkimKey) -> Option<Arc<Signer>> {
        let opened = self.vault().open(&DkimKey::place(domain.id, &key.selector), &key.sealed);
        let signer = opened.map_err(|error| error.to_string()).and_then(|private| {
            Signer::new(&domain.domain, &key.selector, key.algorithm, &private).map_err(|error| error.to_string())
        });
        match signer {
            Ok(signer) => Some(Arc::new(signer)),
            Err(error) => {
                tracing::error!(domain = %domain.id, selector = key.selector, error, "a DKIM key is unusable");
                None
            }
        }
    }
}
