//! TLS reports of receivers on sessions with the mail exchangers of a sending domain.
//!
//! Contract section 14.3.

use http::{Method, StatusCode};
use messaging_core::domain::mail::dmarc::report::start_of;
use messaging_core::input::{Empty, PageQuery};
use messaging_core::ports::store::StoredTlsRow;
use messaging_core::scope::{Access, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DomainPath, find};
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::ops::page::Page;

/// TLS sessions with one mail exchanger on one day, as one reporter saw them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TlsReportRow")]
#[non_exhaustive]
pub struct TlsReportRow {
    /// The day, UTC: `2026-01-31`.
    pub day: String,
    /// Domain of the reporter.
    pub reporter: String,
    /// Name of the mail exchanger, or the pattern of the policy if the report names none.
    pub mx: String,
    /// `successful`, or a result type of RFC 8460 section 4.3 such as `starttls-not-supported` or
    /// `certificate-expired`.
    pub result: String,
    /// Number of sessions.
    pub sessions: u64,
    /// Number of sessions that failed.
    pub failures: u64,
}

impl TlsReportRow {
    fn of(stored: StoredTlsRow) -> Self {
        let StoredTlsRow { day, reporter, row, .. } = stored;
        let day = start_of(day).to_string().chars().take(10).collect();
        Self { day, reporter, mx: row.mx, result: row.result, sessions: row.sessions, failures: row.failures }
    }
}

/// `GET /workspaces/{workspace_id}/sending-domains/{id}/tls-reports`
pub struct ListTlsReports;

impl Operation for ListTlsReports {
    const ID: &'static str = "listTlsReports";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/sending-domains/{id}/tls-reports";
    const ACCESS: Access = Access::Scope(Scope::DomainsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "domain tls-reports";
    const SUMMARY: &'static str =
        "List what mail servers report of TLS when they deliver to a domain: which exchanger failed, why and how often";
    type Path = DomainPath;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<TlsReportRow>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<TlsReportRow>, Error> {
        let domain = find(cx, call.path).await?.record;
        let page = cx.page(&call.query)?;
        let slice = cx.store().tls_rows(domain.workspace_id, domain.id, page).await?;
        Ok(cx.answer_page(slice, TlsReportRow::of))
    }
}
