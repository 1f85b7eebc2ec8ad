//! Settings of an installation.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use messaging_core::domain::delivery::ip_pool::source::NamedSource;
use messaging_core::domain::security::audit::DEFAULT_DAYS;
use messaging_core::domain::security::oidc::OidcSettings;
use messaging_core::ids::WorkspaceId;
use messaging_core::validate::Setters;

/// Settings of the installation (contract section 22).
///
/// ```
/// use std::time::Duration;
/// use messaging_engine::Settings;
///
/// let settings = Settings::default()
///     .hostname("mx.example.com")
///     .public_url("https://mail.example.com")
///     .message_retry([Duration::from_secs(60), Duration::from_secs(600)]);
/// assert_eq!(settings.data_region, "local");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Setters)]
#[setters(default)]
#[non_exhaustive]
pub struct Settings {
    /// Base URL of tracking, unsubscribe, upload and callback links, without a slash at the end.
    pub public_url: String,
    /// EHLO name of this process. The first process to work gives its name to the installation: it is the one in
    /// Message-IDs and DNS records.
    pub hostname: String,
    /// Address to which mail to `postmaster` and `abuse` of the installation's names is forwarded; without one it is
    /// not forwarded.
    pub postmaster: Option<String>,
    /// True if sending domains can be added while the installation has no fully qualified name, to try things out:
    /// their records cannot be published then.
    pub allow_unqualified_name: bool,
    /// True if workspaces may use every address in their IP pools, to try things out; otherwise only those that the
    /// operator released to them.
    pub grants_every_source: bool,
    /// Single sign-on provider; `None` for passwords alone.
    pub oidc: Option<OidcSettings>,
    /// Region shown on workspaces.
    pub data_region: String,
    /// Addresses of this process that email leaves from; empty for the one that the system chooses, under the name
    /// `hostname`.
    pub sources: Vec<NamedSource>,
    /// Sources that receivers know already: they are not warmed up.
    pub warm_sources: Vec<IpAddr>,
    /// Waits between email attempts; the last one repeats.
    pub message_retry: Vec<Duration>,
    /// Largest random increase of a wait in `message_retry`, in thousandths: messages that were put off together do not
    /// come back together.
    pub message_retry_jitter: u32,
    /// Time after acceptance at which an email is given up.
    pub message_expiry: Duration,
    /// Waits between attempts to deliver a webhook; after the last one it is given up.
    pub webhook_retry: Vec<Duration>,
    /// Interval at which segments that depend on the current time are recalculated.
    pub segment_refresh: Duration,
    /// Retention of audit log entries.
    pub audit_kept: Duration,
    /// Bits of proof of work that a submission of a form needs; 0 for none, at most
    /// [`MAX_BITS`](messaging_core::domain::security::proof_of_work::MAX_BITS).
    pub pow_bits: u32,
    /// Shortest interval between sweeps for expired records; the kinds that are swept less often scale with it.
    pub sweep_every: Duration,
    /// Turns of a workspace's background work for each turn of another; 1 if absent.
    pub workspace_weights: HashMap<WorkspaceId, u32>,
}

impl Default for Settings {
    fn default() -> Self {
        const MINUTE: u64 = 60;
        const HOUR: u64 = 60 * MINUTE;
        // Contract section 4.2: 1, 5, 15, 30 min, 1, 2, 4, 8, 12 h, then every 12 h; 72 h.
        let waits = [MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR];
        // Contract section 15.3: 5 s, 5 and 30 min, 2, 5, 10, 14, 20, 24 h.
        let webhook_waits =
            [5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];
        Self {
            public_url: "http://127.0.0.1:8080".to_owned(),
            hostname: "localhost".to_owned(),
            postmaster: None,
            allow_unqualified_name: false,
            grants_every_source: false,
            oidc: None,
            data_region: "local".to_owned(),
            sources: Vec::new(),
            warm_sources: Vec::new(),
            message_retry: waits.map(Duration::from_secs).to_vec(),
            message_retry_jitter: 100,
            message_expiry: Duration::from_secs(72 * HOUR),
            webhook_retry: webhook_waits.map(Duration::from_secs).to_vec(),
            segment_refresh: Duration::from_secs(15 * MINUTE),
            audit_kept: Duration::from_hours(24 * u64::from(DEFAULT_DAYS)),
            pow_bits: 0,
            sweep_every: Duration::from_secs(MINUTE),
            workspace_weights: HashMap::new(),
        }
    }
}
