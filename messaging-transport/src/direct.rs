//! The provider `builtin`: email straight to the mail exchangers of its recipients.
//!
//! The recipients of a message are grouped by domain, several domains are served at the same time. The
//! recipients of a domain that have an envelope sender of their own get a transaction each, one after the other
//! over the same connection; those who share one share a transaction. Within a domain the exchangers are tried in
//! the order of RFC 5321 section 5.1, until one of them answers for the message:
//!
//! | what happened | next exchanger | outcome, if there is none |
//! |---|---|---|
//! | no connection, no greeting, a connection that breaks before the content | yes | deferred |
//! | only private addresses, where those are not allowed | yes | deferred |
//! | 421 or 4yz before MAIL was accepted by it | yes | deferred |
//! | 5yz in place of a greeting or to EHLO and HELO | yes | refused, if all say so |
//! | 4yz or 5yz to MAIL, 421 | no | as it says, for all who are open |
//! | 4yz or 5yz to RCPT, DATA, the content | no | as it says, for those of the transaction |
//! | a connection that breaks within the content | no | deferred |
//! | the reply to the content was lost | no | ambiguous; deferred for those whose transaction had not begun |
//!
//! Without an exchanger to talk to, the DNS decides: a domain that does not exist, a null MX (RFC 7505)
//! and a domain without any address are refused, a look-up that failed is deferred.
//!
//! TLS is used if it is offered, with any peer: most exchangers are named by DNS records without signature, so there is
//! no name to verify a certificate against. If the handshake fails, the message goes in plain text, as it would without
//! the offer (RFC 7435). If the domain publishes more, by DANE or MTA-STS, or the sender requires TLS, it goes over the
//! required TLS or not at all (`tls_policy`).
//!
//! The lane of a domain limits how much goes to it at a time; connections are kept by exchanger.

mod attempt;
mod lane;
mod lanes;
mod plain;
mod route;
mod sources;
mod tls_policy;
mod waiting;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, StreamExt as _};
use messaging_core::domain::delivery::attempt::Dialog;
use messaging_core::domain::delivery::ip_pool::source::NamedSource;
use messaging_core::domain::delivery::lane::{Flow, JobClass};
use messaging_core::ports::clock::{Clock, SystemClock, SystemEntropy};
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::paths::{PathTerms, PathWait, Paths};
use messaging_core::ports::sts_policy_cache::StsPolicyCache;
use messaging_core::ports::transport::{
    Content, Email, Outcome, Outgoing, Reservation, Route, RouteState, Sent, Transport, TransportError,
};
use rustls_pki_types::CertificateDer;
use tokio::time::Instant;

use self::attempt::{Attempt, Client};
use self::lane::{LaneAdmission, Pace};
use self::lanes::Lanes;
use self::plain::PlainHosts;
use self::route::{ByDns, Routing, response};
pub use self::route::{MalformedMxOverride, MxOverride};
use self::sources::{Departing, Sources};
use self::tls_policy::Pkix;
use crate::dns::Dns;
use crate::guard::Guard;
use crate::mime;
use crate::mta_sts::MtaSts;
use crate::smtp::{Envelope, Limits, Pool, Recipient, Timeouts, Tls, Trust, WireContent, clean_name};

/// Maximum number of domains of one message that are delivered to at the same time.
const DOMAINS: usize = 8;

/// Port of mail exchangers.
const SMTP: u16 = 25;

/// Transport that delivers directly to the mail exchangers of the recipients.
pub struct DirectDelivery {
    client: Client,
    lanes: Lanes,
    sources: Sources,
}

impl DirectDelivery {
    /// Default time for which a domain that could not be reached is not tried again.
    pub const REST: Duration = Duration::from_secs(15);

    /// Creates a client that introduces itself as `hostname`, the name of this machine.
    pub fn new(hostname: &str, dns: Dns) -> Self {
        Self::builder(hostname, dns).build()
    }

    /// Returns a builder for a client with other limits. Characters that are not allowed in a host name are removed
    /// from `hostname`.
    pub fn builder(hostname: &str, dns: Dns) -> DirectDeliveryBuilder {
        DirectDeliveryBuilder {
            hostname: clean_name(hostname),
            dns,
            port: SMTP,
            mx_override: None,
            allow_private: false,
            extra_roots: Vec::new(),
            mta_sts: None,
            clock: Arc::new(SystemClock),
            sources: Vec::new(),
            timeouts: Timeouts::DIRECT,
            pace: Pace { start: 5, most: 20, rest: Self::REST },
            limits: Limits {
                idle: 20,
                idle_in_all: 512,
                idle_time: Duration::from_secs(30),
                messages: 100,
                concurrent: 20,
            },
        }
    }

    /// Closes all idle connections; called at shutdown.
    pub async fn close(&self) {
        self.client.pool.close().await;
    }

    async fn admit(&self, domain: &str, flow: Flow) -> LaneAdmission {
        self.lanes.lane(domain).admit(Instant::now() + self.client.timeouts.queue, flow).await
    }

    /// Chooses the source address of an attempt; `Err` if the message has to wait.
    async fn depart(&self, domain: &str, class: JobClass, terms: &PathTerms) -> Result<Departing, PathWait> {
        let Client { routing, timeouts, .. } = &self.client;
        self.sources.depart(routing, domain, (class, terms), timeouts.connect).await
    }

    /// Delivers to the recipients of one domain.
    async fn to_domain(&self, group: &Group, delivery: &MessageDelivery<'_>) -> Result<Arrived, TransportError> {
        let everyone = |outcome| Arrived { outcomes: vec![outcome; group.recipients.len()], dialogs: Vec::new() };
        let class = JobClass::Transactional;
        let (admission, departing) = if let Some(reserved) = delivery.reserved(&group.domain) {
            (reserved.admission, reserved.departing)
        } else {
            let workspace = Some(delivery.outgoing.workspace_id);
            (self.admit(&group.domain, Flow { class, workspace }).await, None)
        };
        let permit = match admission {
            LaneAdmission::Go(permit) => permit,
            LaneAdmission::Unreachable(mut last, ago) => {
                let text = format!("{} (not tried again: the same failed {} s ago)", last.text, ago.as_secs());
                last.text = text.chars().take(512).collect();
                return Ok(everyone(Outcome::deferred(last)));
            }
            LaneAdmission::TooMany => {
                let text = format!("too many messages are on their way to {}", group.domain);
                return Ok(everyone(Outcome::deferred(response(None, "4.4.5", &text))));
            }
        };
        let departing = match departing {
            Some(departing) => Ok(departing),
            None => self.depart(&group.domain, class, &PathTerms::default()).await,
        };
        let mut departing = match departing {
            Ok(departing) => departing,
            Err(wait) => return Ok(everyone(Outcome::deferred(response(None, "4.4.5", &wait.sentence)))),
        };
        let envelope = Envelope {
            recipients: &group.recipients,
            needs_utf8: delivery.needs_utf8,
            content: delivery.content()?,
            last_look: &delivery.outgoing.last_look,
            since: delivery.since,
            judge: |outcome, _| outcome,
        };
        let require_tls = delivery.outgoing.options.require_tls;
        let mut attempt = Attempt::new(&self.client, &envelope, &group.domain, &mut departing, require_tls);
        permit.report(attempt.run().await);
        let (mut dialogs, outcomes) = (attempt.dialogs, attempt.answers.into_outcomes());
        let source = departing.leave.path.as_ref().map(|_| departing.leave.source.ip);
        for dialog in &mut dialogs {
            dialog.source = source;
        }
        departing.ended(&outcomes);
        Ok(Arrived { outcomes, dialogs })
    }
}

/// Outcomes and dialogs of the recipients of one domain.
struct Arrived {
    outcomes: Vec<Outcome>,
    dialogs: Vec<Dialog>,
}

/// Parts of a delivery that all domains of a message share.
struct MessageDelivery<'a> {
    outgoing: &'a Outgoing,
    email: &'a Email,
    needs_utf8: bool,
    /// Built when the first domain is ready for it: signing is expensive, and not needed for a domain that cannot be
    /// reached.
    content: OnceLock<Result<WireContent, String>>,
    /// The turn in the lane of one of the domains, reserved before the content was read.
    reserved: Mutex<Option<Reserved>>,
    since: Instant,
}

/// Result of waiting for a turn in the lane of a domain.
struct Reserved {
    domain: String,
    admission: LaneAdmission,
    /// The source that the message leaves from, if it was admitted.
    departing: Option<Departing>,
}

impl MessageDelivery<'_> {
    fn reserved(&self, domain: &str) -> Option<Reserved> {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.take_if(|reserved| reserved.domain == domain)
    }

    fn content(&self) -> Result<&WireContent, TransportError> {
        let build = || mime::build(self.email).map(WireContent::new).map_err(|error| error.to_string());
        self.content.get_or_init(build).as_ref().map_err(|error| TransportError::Content(error.clone()))
    }
}

/// The recipients of one domain.
struct Group {
    /// The domain in A-labels.
    domain: String,
    recipients: Vec<Recipient>,
    /// Indices of the recipients among all recipients of the message.
    places: Vec<usize>,
}

impl Group {
    fn all(recipients: Vec<Recipient>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for (place, recipient) in recipients.into_iter().enumerate() {
            match groups.iter_mut().find(|group| group.domain == recipient.domain()) {
                Some(group) => {
                    group.recipients.push(recipient);
                    group.places.push(place);
                }
                None => groups.push(Self {
                    domain: recipient.domain().to_owned(),
                    recipients: vec![recipient],
                    places: vec![place],
                }),
            }
        }
        groups
    }
}

#[async_trait]
impl Transport for DirectDelivery {
    async fn reserve(&self, route: &Route) -> Reservation {
        let Some(domain) = &route.domain else { return Reservation::default() };
        let flow = Flow { class: route.class, workspace: Some(route.workspace_id) };
        let admission = self.admit(domain, flow).await;
        let departing = match &admission {
            LaneAdmission::Go(_) => match self.depart(domain, route.class, &route.terms).await {
                Ok(departing) => Some(departing),
                Err(wait) => return Reservation::held(wait),
            },
            _ => None,
        };
        Reservation::holding(Reserved { domain: domain.clone(), admission, departing })
    }

    fn attach_paths(&self, paths: Weak<dyn Paths>) {
        self.sources.attach(paths);
    }

    fn state_of(&self, route: &Route) -> RouteState {
        route.domain.as_deref().map(|domain| self.lanes.state(domain)).unwrap_or_default()
    }

    fn forget_unreachable(&self, domain: &str) {
        self.lanes.forget_unreachable(domain);
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let since = Instant::now();
        let Content::Email(email) = &outgoing.content else {
            return Err(TransportError::Content("this provider carries email only".to_owned()));
        };
        let recipients = Recipient::all(outgoing, email)?;
        let needs_utf8 = mime::needs_utf8(email) || recipients.iter().any(|one| !one.from.is_ascii());
        let groups = Group::all(recipients);
        let delivery = MessageDelivery {
            outgoing,
            email,
            needs_utf8,
            content: OnceLock::new(),
            reserved: Mutex::new(outgoing.reservation.take()),
            since,
        };
        let mut outcomes = vec![None; outgoing.recipients.len()];
        let mut dialogs = Vec::new();
        let attempts: Vec<_> = groups.iter().map(|group| self.to_domain(group, &delivery)).collect();
        let arrived: Vec<_> = stream::iter(attempts).buffered(DOMAINS).collect().await;
        for (group, arrived) in groups.iter().zip(arrived) {
            let arrived = arrived?;
            for (&place, outcome) in group.places.iter().zip(arrived.outcomes) {
                outcomes[place] = Some(outcome);
            }
            dialogs.extend(arrived.dialogs);
        }
        let outcomes = outcomes.into_iter().map(|outcome| outcome.expect("everyone is in a group")).collect();
        Ok(Sent { outcomes, captured: None, dialogs })
    }
}

impl fmt::Debug for DirectDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectDelivery").field("sources", &self.sources).finish_non_exhaustive()
    }
}

/// Builds a [`DirectDelivery`].
#[derive(Debug)]
pub struct DirectDeliveryBuilder {
    hostname: String,
    dns: Dns,
    port: u16,
    mx_override: Option<MxOverride>,
    allow_private: bool,
    extra_roots: Vec<CertificateDer<'static>>,
    mta_sts: Option<(Arc<dyn Fetch>, Arc<dyn StsPolicyCache>)>,
    clock: Arc<dyn Clock>,
    sources: Vec<NamedSource>,
    timeouts: Timeouts,
    pace: Pace,
    limits: Limits,
}

impl DirectDeliveryBuilder {
    /// Sets one exchanger for all recipients, in place of those that DNS names.
    pub fn mx_override(mut self, mx_override: Option<MxOverride>) -> Self {
        self.mx_override = mx_override;
        self
    }

    /// Allows exchangers at private addresses; refused unless set. [`Self::mx_override`] may always have one.
    pub fn allow_private(mut self, allow: bool) -> Self {
        self.allow_private = allow;
        self
    }

    /// Adds a root certificate to those of the system, where certificates are verified.
    pub fn extra_root(mut self, root: CertificateDer<'static>) -> Self {
        self.extra_roots.push(root);
        self
    }

    /// Follows the MTA-STS policies of domains, which `fetch` fetches and `kept` caches. Without this no policies are
    /// looked up.
    pub fn mta_sts(mut self, fetch: Arc<dyn Fetch>, kept: Arc<dyn StsPolicyCache>) -> Self {
        self.mta_sts = Some((fetch, kept));
        self
    }

    /// Sets the clock by which certificates and policies are judged; the system's clock unless set.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the addresses that messages leave from, each with its name in EHLO; unless set, the system chooses the
    /// address, and the name is the machine's. Characters that are not allowed in a host name are removed.
    pub fn sources(mut self, sources: Vec<NamedSource>) -> Self {
        self.sources = sources.into_iter().map(|one| NamedSource { name: clean_name(&one.name), ..one }).collect();
        self
    }

    /// Sets the port of mail exchangers; 25 unless set.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Sets the time limits of the steps.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the time for which a domain that could not be reached is not tried again; 15 s unless set. It should be at
    /// most half of the first wait before a retry, so that the retry really tries.
    pub fn rest(mut self, time: Duration) -> Self {
        self.pace.rest = time;
        self
    }

    /// Sets how many transactions a domain gets at a time, at first and at most; 5 and 20 unless set.
    pub fn concurrency(mut self, start: usize, most: usize) -> Self {
        self.pace.start = start.max(1);
        self.pace.most = most.max(self.pace.start);
        self
    }

    /// Sets how many transactions an exchanger gets at a time, of all domains together; 20 unless set.
    pub fn max_concurrent(mut self, transactions: usize) -> Self {
        self.limits.concurrent = transactions.max(1);
        self
    }

    /// Sets how many messages go over one connection; 100 unless set.
    pub fn max_messages(mut self, messages: usize) -> Self {
        self.limits.messages = messages;
        self
    }

    /// Builds the client.
    pub fn build(self) -> DirectDelivery {
        let dns = &self.dns;
        let mta_sts = self.mta_sts.filter(|_| self.mx_override.is_none());
        let mta_sts = mta_sts.map(|(fetch, kept)| MtaSts::new(dns.clone(), fetch, kept));
        let sources = Sources::new(&self.hostname, self.sources);
        let routing = match self.mx_override {
            Some(fixed) => Routing::Override(fixed),
            None => Routing::Dns(Box::new(ByDns {
                dns: self.dns,
                port: self.port,
                own_name: self.hostname,
                guard: Guard { allow_private: self.allow_private },
                entropy: SystemEntropy::default(),
            })),
        };
        DirectDelivery {
            client: Client {
                routing,
                timeouts: self.timeouts,
                tls: Tls::new(Trust::Anyone),
                plain_hosts: PlainHosts::default(),
                pkix: Pkix::new(self.extra_roots),
                mta_sts,
                clock: self.clock,
                pool: Pool::new(self.limits),
            },
            lanes: Lanes::new(self.pace),
            sources,
        }
    }
}
