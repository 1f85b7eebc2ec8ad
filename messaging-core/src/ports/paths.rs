//! The port between direct delivery, which knows the mail exchangers, and the paths of a node, which know pools,
//! warm-up and brakes.
//!
//! A path is a source and a site (contract section 14.1). Paths only exist to mail exchangers at public addresses: mail
//! to a host that the operator names, to a relay, or to an exchanger at a loopback or private address leaves without
//! one.

use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::transport::Outcome;
use crate::domain::delivery::ip_pool::source::{NamedSource, SourceAddress};
use crate::domain::delivery::lane::JobClass;
use crate::domain::delivery::site::SiteName;
use crate::domain::message::hold::HoldReason;
use crate::time::Timestamp;

/// The paths of a node.
///
/// An implementer has to answer at once: the transport calls it before every attempt, so no method waits, reads a store
/// or holds a lock for longer than it takes to count.
pub trait Paths: Debug + Send + Sync {
    /// Chooses the source that a message leaves from, and counts a transaction of its path; or returns the time that
    /// the message has to wait.
    fn depart(&self, request: &PathRequest<'_>) -> Departure;

    /// Records the exchangers' outcomes for the recipients of an attempt that left by `leave`. Outcomes that the
    /// transport decided itself are not among them.
    fn ended(&self, leave: &Leave, outcomes: &[&Outcome]);

    /// Takes back the transaction of an attempt by `leave`: it was not made, or no exchanger answered it.
    fn given_up(&self, leave: &Leave);
}

/// An attempt that asks for a source.
#[derive(Debug, Clone, Copy)]
pub struct PathRequest<'a> {
    /// Domain of the recipients, in A-labels.
    pub domain: &'a str,
    /// Names of its mail exchangers, the most preferred first; at least one.
    pub exchangers: &'a [String],
    /// Addresses that the exchangers have.
    pub reach: Reach,
    /// Class of the message: transactional mail goes before bulk mail.
    pub class: JobClass,
    /// Conditions under which the message may leave.
    pub terms: &'a PathTerms,
}

/// Kinds of addresses that mail exchangers have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reach {
    /// True if one of them has an IPv4 address.
    pub ipv4: bool,
    /// True if one of them has an IPv6 address.
    pub ipv6: bool,
    /// True if one of the addresses is public: only then there is a path.
    pub is_public: bool,
}

impl Reach {
    /// Adds an address.
    pub fn add(&mut self, address: IpAddr, is_public: bool) {
        self.ipv4 |= address.is_ipv4();
        self.ipv6 |= address.is_ipv6();
        self.is_public |= is_public;
    }

    /// True if a source can connect to one of the addresses.
    pub fn is_reached_by(self, source: &NamedSource) -> bool {
        match source.ip.ip() {
            None => true,
            Some(IpAddr::V4(_)) => self.ipv4,
            Some(IpAddr::V6(_)) => self.ipv6,
        }
    }
}

/// Conditions under which a message may leave over a path.
#[derive(Debug, Clone, Default)]
pub struct PathTerms {
    /// Sources that the message may leave from; `None` for every source of the node.
    pub sources: Option<Arc<[SourceAddress]>>,
    /// End of the message's lifetime. A message that cannot wait longer leaves before it, whatever the warm-up says.
    pub expires_at: Option<Timestamp>,
}

/// Answer to an attempt that asks for a source.
#[derive(Debug, Clone)]
pub enum Departure {
    /// The attempt is made from a source.
    Leaves(Leave),
    /// The message is not attempted now.
    Waits(PathWait),
}

/// A source that an attempt is made from.
#[derive(Debug, Clone)]
pub struct Leave {
    /// The source.
    pub source: Arc<NamedSource>,
    /// The path; `None` if there is none.
    pub path: Option<OpenPath>,
}

/// A path that an attempt goes over, with what the site allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPath {
    /// Operator of the exchangers.
    pub site: SiteName,
    /// Exchangers that the site operates. A domain may name others beside them, which accept no connection from the
    /// site and say nothing about the path.
    pub exchangers: Vec<String>,
    /// Connections of the source to the site at the same time.
    pub connections: usize,
    /// Messages over one connection.
    pub messages_per_connection: usize,
}

/// Reason and time for which a message is not attempted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathWait {
    /// Reason of the hold; `None` for a short wait, such as for the rate of the site, which is not shown.
    pub reason: Option<HoldReason>,
    /// Time until the message may ask again.
    pub wait: Duration,
    /// One sentence for people.
    pub sentence: String,
}
