//! Reports that receivers send about a domain: aggregate reports of DMARC (RFC 7489 appendix C, RFC 9990) and TLS
//! reports (RFC 8460). The receiver of the mail parses them; this module has their content, and the part that is
//! stored.

use std::net::IpAddr;
use std::time::Duration;

use ring::digest::{Context, SHA256};

use super::record::DmarcAction;
use crate::domain::mail::link_token::ReportPurpose;
use crate::domain::mail::public_suffix::organizational;
use crate::ids::{DomainId, WorkspaceId};
use crate::time::Timestamp;

/// Time for which rows of reports are kept (400 days).
pub const KEPT: Duration = Duration::from_hours(400 * 24);

/// Maximum time by which the end of a report may lie ahead: clocks of reporters differ.
const MAX_AHEAD: Duration = Duration::from_hours(48);

/// Maximum number of rows that are kept of one report: those with most messages.
pub const MAX_ROWS_OF_REPORT: usize = 10_000;

/// Maximum number of messages that a row counts, however many reports add to it: the sum of all rows of a domain is a
/// number that stores can hold, whatever a reporter claims.
pub const MAX_MESSAGES_OF_ROW: u64 = 1_000_000_000_000;

/// Maximum number of rows that are kept of a domain; the oldest are removed first.
pub const MAX_ROWS_OF_DOMAIN: u64 = 500_000;

/// Maximum number of reports that are remembered of a domain; the oldest are removed first.
pub const MAX_REPORTS_OF_DOMAIN: u64 = 50_000;

/// Number of reports of a domain from which on an unverified one is not remembered.
const MAX_UNVERIFIED_AMONG: u64 = MAX_REPORTS_OF_DOMAIN / 2;

/// Days since 1970-01-01 (UTC).
pub type Day = i64;

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// Returns the day of a moment.
pub const fn day_of(at: Timestamp) -> Day {
    at.as_millis().div_euclid(DAY)
}

/// Returns the beginning of a day.
pub const fn start_of(day: Day) -> Timestamp {
    Timestamp::from_millis(day.saturating_mul(DAY))
}

/// Results of DMARC, SPF and DKIM for messages from one source, as a receiver saw them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::struct_excessive_bools, reason = "results of a report are independent of each other")]
pub struct AggregateResult {
    /// Handling that the receiver applied.
    pub disposition: DmarcAction,
    /// True if SPF passed for some domain.
    pub spf: bool,
    /// True if a signature of some domain verified.
    pub dkim: bool,
    /// True if SPF passed for a domain that is aligned with the sender's.
    pub spf_aligned: bool,
    /// True if a signature of an aligned domain verified.
    pub dkim_aligned: bool,
}

impl AggregateResult {
    /// Bits of a stored result; at least one is set if the messages passed DMARC.
    pub const ALIGNED: i64 = 16 | 32;

    /// Returns true if the messages passed DMARC.
    pub const fn is_aligned(self) -> bool {
        self.spf_aligned || self.dkim_aligned
    }

    /// Returns the result as one number, the form of stores.
    pub fn to_bits(self) -> i64 {
        let disposition = match self.disposition {
            DmarcAction::None => 0,
            DmarcAction::Quarantine => 1,
            DmarcAction::Reject => 2,
        };
        disposition
            | (i64::from(self.spf) << 2)
            | (i64::from(self.dkim) << 3)
            | (i64::from(self.spf_aligned) << 4)
            | (i64::from(self.dkim_aligned) << 5)
    }

    /// Returns the result of a stored number; `None` for a number that no result has.
    pub fn from_bits(bits: i64) -> Option<Self> {
        let disposition = match bits & 3 {
            0 => DmarcAction::None,
            1 => DmarcAction::Quarantine,
            2 => DmarcAction::Reject,
            _ => return None,
        };
        let is = |bit: u32| (bits >> bit) & 1 == 1;
        (0..64).contains(&bits).then(|| Self {
            disposition,
            spf: is(2),
            dkim: is(3),
            spf_aligned: is(4),
            dkim_aligned: is(5),
        })
    }
}

/// Messages of one source with one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AggregateRow {
    /// The address that the messages came from.
    pub source: IpAddr,
    /// The result.
    pub result: AggregateResult,
    /// Number of messages.
    pub messages: u64,
}

/// TLS sessions with one mail exchanger and one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsRow {
    /// Name of the mail exchanger, or the pattern of the policy where the report names none.
    pub mx: String,
    /// `successful`, or a result type of RFC 8460 section 4.3.
    pub result: String,
    /// Number of sessions.
    pub sessions: u64,
    /// Number of those that failed.
    pub failures: u64,
}

/// Rows of a report, by its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportRows {
    /// Rows of an aggregate report of DMARC, one for each source and result.
    Dmarc(Vec<AggregateRow>),
    /// Rows of a TLS report, one for each exchanger and result.
    Tls(Vec<TlsRow>),
}

impl ReportRows {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Dmarc(rows) => rows.len(),
            Self::Tls(rows) => rows.len(),
        }
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the kind of the report.
    pub const fn purpose(&self) -> ReportPurpose {
        match self {
            Self::Dmarc(_) => ReportPurpose::Dmarc,
            Self::Tls(_) => ReportPurpose::TlsRpt,
        }
    }
}

/// A report about a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainReport {
    /// The reporter's domain as the report states it: that of its contact address.
    pub contact: Option<String>,
    /// Id that the reporter gave the report.
    pub report_id: String,
    /// Beginning of the period that the report is about.
    pub begin: Timestamp,
    /// End of the period that the report is about.
    pub end: Timestamp,
    /// Rows about the domain.
    pub rows: ReportRows,
}

impl DomainReport {
    /// Returns true if the period of the report is recent enough to be kept, and does not end too far ahead.
    pub fn is_timely(&self, now: Timestamp) -> bool {
        self.begin <= self.end && self.end <= now + MAX_AHEAD && self.begin >= now - KEPT
    }

    /// Returns the organizational domain of the reporter: that of the contact address, or else of the domain that the
    /// mail is from.
    pub fn reporter(&self, from: Option<&str>) -> Option<String> {
        let domain = self.contact.as_deref().or(from)?.trim_end_matches('.').to_ascii_lowercase();
        let is_name = domain.contains('.') && domain.len() <= 253 && domain.bytes().all(|byte| byte.is_ascii_graphic());
        (is_name && !domain.contains(',')).then(|| organizational(&domain).to_owned())
    }
}

/// A report as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptReport {
    /// Workspace that owns the domain.
    pub workspace_id: WorkspaceId,
    /// Domain that the report is about.
    pub domain_id: DomainId,
    /// Key of the report, so that it counts once.
    pub key: ReportKey,
    /// The reporter's domain.
    pub reporter: String,
    /// The day on which the period of the report begins.
    pub day: Day,
    /// Time at which the report arrived.
    pub at: Timestamp,
    /// End of the period that the report is about.
    pub last_seen: Timestamp,
    /// True if the mail of the report was authenticated as the reporter's. Rows of other reports do not count.
    pub is_verified: bool,
    /// Rows of the report; empty if it is not verified.
    pub rows: ReportRows,
    /// Number of reports of the domain that are removed for this one.
    pub forget_reports: u64,
    /// Number of rows of the domain that are removed for those of this one.
    pub forget_rows: u64,
}

impl KeptReport {
    /// Returns true if the report is remembered beside `others` of its domain: an unverified one takes no place from
    /// verified ones.
    pub const fn has_room(&self, others: u64) -> bool {
        self.is_verified || others < MAX_UNVERIFIED_AMONG
    }
}

/// Key of a report about a domain: a digest of its kind, its reporter, its id, and of whether it is verified, so that a
/// forged one does not take the place of the genuine one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReportKey(pub [u8; 16]);

impl ReportKey {
    /// Returns the key of a report.
    pub fn of(purpose: ReportPurpose, reporter: &str, report_id: &str, is_verified: bool) -> Self {
        let mut context = Context::new(&SHA256);
        for part in [purpose.word(), reporter, report_id, if is_verified { "1" } else { "0" }] {
            context.update(part.as_bytes());
            context.update(b"\0");
        }
        Self(context.finish().as_ref().first_chunk().copied().unwrap_or_default())
    }

    /// Returns the id of a row of the report that arrived at a time; ids of later reports are larger.
    pub fn row_id(self, at: Timestamp, row: usize) -> [u8; 16] {
        let mut context = Context::new(&SHA256);
        context.update(&self.0);
        context.update(&row.to_be_bytes());
        let mut id: [u8; 16] = context.finish().as_ref().first_chunk().copied().unwrap_or_default();
        id[..6].copy_from_slice(&at.as_millis().to_be_bytes()[2..]);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id as _;

    #[test]
    fn results_round_trip_as_numbers() {
        for bits in -2..70 {
            let result = AggregateResult::from_bits(bits);
            assert_eq!(result.is_some(), (0..64).contains(&bits) && bits & 3 != 3, "{bits}");
            if let Some(result) = result {
                assert_eq!(result.to_bits(), bits);
                assert_eq!(result.is_aligned(), bits & AggregateResult::ALIGNED != 0);
            }
        }
    }

    fn report(contact: Option<&str>, begin: i64, end: i64) -> DomainReport {
        DomainReport {
            contact: contact.map(ToOwned::to_owned),
            report_id: "1".to_owned(),
            begin: Timestamp::from_millis(begin * DAY),
            end: Timestamp::from_millis(end * DAY),
            rows: ReportRows::Tls(Vec::new()),
        }
    }

    #[test]
    fn the_reporter_is_whom_the_report_names() {
        for (contact, from, expected) in [
            (Some("Reports.Google.com"), Some("mail.example.net"), Some("google.com")),
            (None, Some("mail.example.co.uk."), Some("example.co.uk")),
            (None, None, None),
            (Some("localhost"), None, None),
            (Some("a,b.example"), None, None),
        ] {
            assert_eq!(report(contact, 0, 1).reporter(from).as_deref(), expected, "{contact:?}");
        }
    }

    #[test]
    fn reports_of_other_times_are_none() {
        let now = Timestamp::from_millis(1000 * DAY);
        for (begin, end, is_timely) in [
            (999, 1000, true),
            (1000, 1002, true),
            (1000, 1003, false),
            (600, 601, true),
            (599, 601, false),
            (2, 1, false),
        ] {
            assert_eq!(report(None, begin, end).is_timely(now), is_timely, "{begin} {end}");
        }
    }

    #[test]
    fn forged_reports_take_no_places_from_genuine_ones() {
        let kept = |is_verified| KeptReport {
            workspace_id: WorkspaceId::from_bytes([1; 16]),
            domain_id: DomainId::from_bytes([2; 16]),
            key: ReportKey([3; 16]),
            reporter: "google.com".to_owned(),
            day: 999,
            at: Timestamp::from_millis(0),
            last_seen: Timestamp::from_millis(0),
            is_verified,
            rows: ReportRows::Dmarc(Vec::new()),
            forget_reports: 0,
            forget_rows: 0,
        };
        for (is_verified, others, has_room) in [
            (false, MAX_UNVERIFIED_AMONG - 1, true),
            (false, MAX_UNVERIFIED_AMONG, false),
            (true, MAX_UNVERIFIED_AMONG, true),
            (true, MAX_REPORTS_OF_DOMAIN, true),
        ] {
            assert_eq!(kept(is_verified).has_room(others), has_room, "{is_verified} {others}");
        }
        // Whatever reporters claim, the sum of all rows is a number of 64 bits.
        assert!(MAX_MESSAGES_OF_ROW.checked_mul(MAX_ROWS_OF_DOMAIN).is_some_and(|sum| i64::try_from(sum).is_ok()));
    }

    #[test]
    fn a_forged_report_has_another_key() {
        let key = |id: &str, is_verified| ReportKey::of(ReportPurpose::Dmarc, "google.com", id, is_verified);
        assert_eq!(key("1", true), key("1", true));
        assert_ne!(key("1", true), key("1", false));
        assert_ne!(key("1", true), key("2", true));
        let (early, late) = (Timestamp::from_millis(1), Timestamp::from_millis(2));
        assert!(key("1", true).row_id(early, 9) < key("1", true).row_id(late, 0));
        assert_ne!(key("1", true).row_id(early, 0), key("1", true).row_id(early, 1));
    }
}
