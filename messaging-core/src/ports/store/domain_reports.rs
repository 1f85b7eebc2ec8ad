//! Reports that receivers send about sending domains.

use std::net::IpAddr;

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError};
use crate::domain::mail::dmarc::report::{AggregateResult, Day, ReportKey, TlsRow};
use crate::ids::{DomainId, WorkspaceId};
use crate::time::Timestamp;

/// Sums over the DMARC reports of a domain in a span of days.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DmarcTotals {
    /// Messages of all verified reports.
    pub messages: u64,
    /// Number of those that passed DMARC.
    pub passed: u64,
    /// Verified reports.
    pub reports: u64,
    /// Reports whose mail was not authenticated as the reporter's.
    pub unverified_reports: u64,
}

/// Messages of one source with one result in a span of days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmarcSource {
    /// The address.
    pub ip: IpAddr,
    /// The result.
    pub result: AggregateResult,
    /// Number of messages.
    pub messages: u64,
    /// Domains of the reporters, in order.
    pub reporters: Vec<String>,
    /// End of the latest report that has them.
    pub last_seen: Timestamp,
}

/// A row of a TLS report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTlsRow {
    /// Id of the row, larger for those that came later.
    pub id: [u8; 16],
    /// Day of the report.
    pub day: Day,
    /// Domain of the reporter.
    pub reporter: String,
    /// Exchanger, result and counts.
    pub row: TlsRow,
}

/// Numbers of stored reports and rows of a domain; counting ends at the limits that a caller names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeptCounts {
    /// Reports, verified or not.
    pub reports: u64,
    /// Rows of DMARC reports.
    pub dmarc_rows: u64,
    /// Rows of TLS reports.
    pub tls_rows: u64,
}

/// Reads of reports about sending domains.
#[async_trait]
pub trait DomainReports {
    /// True if a report is stored already.
    async fn is_domain_report_kept(
        &self,
        workspace: WorkspaceId,
        domain: DomainId,
        key: ReportKey,
    ) -> Result<bool, StoreError>;
    /// Counts the stored reports and rows of a domain, at most `most` of each.
    async fn kept_of_domain(
        &self,
        workspace: WorkspaceId,
        domain: DomainId,
        most: u64,
    ) -> Result<KeptCounts, StoreError>;
    /// Sums up the DMARC reports of the days from `first` to `last`.
    async fn dmarc_totals(
        &self,
        workspace: WorkspaceId,
        domain: DomainId,
        first: Day,
        last: Day,
    ) -> Result<DmarcTotals, StoreError>;
    /// Returns the sources of the days from `first` to `last` by result, those with most messages first, at most
    /// `limit`.
    async fn dmarc_sources(
        &self,
        workspace: WorkspaceId,
        domain: DomainId,
        first: Day,
        last: Day,
        limit: usize,
    ) -> Result<Vec<DmarcSource>, StoreError>;
    /// Returns the rows of TLS reports of a domain, newest first.
    async fn tls_rows(
        &self,
        workspace: WorkspaceId,
        domain: DomainId,
        page: PageRequest,
    ) -> Result<Slice<StoredTlsRow>, StoreError>;
    /// Deletes up to `limit` reports, and rows of each kind, of days before one; returns how many.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_domain_reports(&self, before: Day, limit: usize) -> Result<u64, StoreError>;
}
