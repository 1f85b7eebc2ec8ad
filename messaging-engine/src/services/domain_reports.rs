//! Reports of receivers on sending domains: resolving their addresses, checking that the mail of a report is from its
//! reporter, and storing it.
//!
//! Contract section 14.3. A report counts only if its mail passes SPF or DKIM for the organizational domain of its
//! reporter; others are only counted. Its keys and SPF record are looked up here, judged in core.

use std::net::IpAddr;

use futures_util::future::join_all;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::dmarc::report::{
    DomainReport, KeptReport, MAX_REPORTS_OF_DOMAIN, MAX_ROWS_OF_DOMAIN, MAX_ROWS_OF_REPORT, ReportKey, ReportRows,
    day_of,
};
use messaging_core::domain::mail::link_token::ReportPurpose;
use messaging_core::domain::mail::public_suffix::organizational;
use messaging_core::domain::mail::sending_domain::BOUNCE_LABEL;
use messaging_core::domain::mail::spf::{Evaluation, Permission, Step, evaluate};
use messaging_core::ids::DomainId;
use messaging_core::ports::inbound::{ReportAddress, ReportMail};
use messaging_core::ports::store::StoreError;

use crate::app::App;
use crate::error::Error;
use crate::services::spf_looks;

/// Number of a mail's signatures whose keys are looked up.
const MAX_SIGNATURES: usize = 3;

impl App {
    /// Resolves an address that receives reports on a sending domain: `dmarc+TOKEN@bounce.…` or
    /// `tlsrpt+TOKEN@bounce.…`, in any case; `None` for any other. The host may be an earlier name of the installation:
    /// the token proves that the address is ours.
    pub(crate) async fn report_address(&self, address: &str) -> Result<Option<ReportAddress>, StoreError> {
        let Some((purpose, id)) = self.read_report_address(address) else { return Ok(None) };
        let domain = self.store().domain_anywhere(id).await?;
        Ok(domain.map(|domain| ReportAddress {
            workspace_id: domain.workspace_id,
            domain_id: domain.id,
            domain: domain.domain,
            purpose,
        }))
    }

    fn read_report_address(&self, address: &str) -> Option<(ReportPurpose, DomainId)> {
        let (local_part, host) = address.rsplit_once('@')?;
        let (label, _) = host.split_once('.')?;
        if !label.eq_ignore_ascii_case(BOUNCE_LABEL) {
            return None;
        }
        self.link_key().read_report_local_part(local_part)
    }

    /// Returns true if a URI of a record is an address of ours that receives such reports on a domain.
    pub(crate) fn receives_reports(&self, uri: &str, purpose: ReportPurpose, domain: DomainId) -> bool {
        let address = uri.split_once(':').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("mailto"));
        address.and_then(|(_, address)| self.read_report_address(address)) == Some((purpose, domain))
    }

    /// Stores a report on a sending domain. When it returns, the report is durable. A report whose mail is not from its
    /// reporter has no rows; a repeated one changes nothing.
    pub(crate) async fn receive_domain_report(&self, to: &ReportAddress, mail: &ReportMail) -> Result<(), Error> {
        let now = self.now();
        let report = &mail.report;
        let reporter = report.reporter(mail.from_domain.as_deref());
        let (Some(reporter), true) = (reporter, report.is_timely(now)) else {
            tracing::debug!(domain = %to.domain, "a report names no reporter, or a time that is not kept");
            return Ok(());
        };
        let is_verified = self.is_of_reporter(mail, &reporter).await?;
        let key = ReportKey::of(to.purpose, &reporter, &report.report_id, is_verified);
        let rows = if is_verified { kept_rows(report) } else { no_rows(to.purpose) };
        let kept = KeptReport {
            workspace_id: to.workspace_id,
            domain_id: to.domain_id,
            key,
            reporter,
            day: day_of(report.begin),
            at: now,
            last_seen: report.end.min(now),
            is_verified,
            rows,
            forget_reports: 0,
            forget_rows: 0,
        };
        self.until_committed(|| self.keep_report(&kept)).await?;
        let kind = match to.purpose {
            ReportPurpose::Dmarc => "dmarc_report",
            ReportPurpose::TlsRpt => "tls_report",
        };
        self.note_inbound(to.workspace_id, Channel::Email, None, kind);
        Ok(())
    }

    async fn keep_report(&self, report: &KeptReport) -> Result<(Changes, ()), Error> {
        let (workspace, domain) = (report.workspace_id, report.domain_id);
        if self.store().is_domain_report_kept(workspace, domain, report.key).await? {
            return Ok((Changes::default(), ()));
        }
        let known = self.store().kept_of_domain(workspace, domain, MAX_ROWS_OF_DOMAIN).await?;
        if !report.has_room(known.reports) {
            return Ok((Changes::default(), ()));
        }
        let rows = if report.rows.purpose() == ReportPurpose::Dmarc { known.dmarc_rows } else { known.tls_rows };
        let surplus = |known: u64, more: usize, most: u64| (known + more as u64).saturating_sub(most);
        let report = KeptReport {
            forget_reports: surplus(known.reports, 1, MAX_REPORTS_OF_DOMAIN),
            forget_rows: surplus(rows, report.rows.len(), MAX_ROWS_OF_DOMAIN),
            ..report.clone()
        };
        Ok((Changes::from_iter([Write::PutDomainReport(Box::new(report))]), ()))
    }

    /// Returns true if a mail passes SPF or DKIM for the organizational domain of the reporter. While neither is
    /// certain because the DNS does not answer, the error has the mail sent again.
    async fn is_of_reporter(&self, mail: &ReportMail, reporter: &str) -> Result<bool, Error> {
        let now = self.now();
        let signatures = mail.signatures.iter().filter(|signature| organizational(&signature.domain) == reporter);
        let keys = join_all(signatures.take(MAX_SIGNATURES).map(async |signature| {
            let records = self.txt(&signature.key_host()).await?;
            Ok::<_, String>(signature.verifies(&records, now))
        }));
        let spf = async {
            let domain = mail.envelope_domain.as_deref().filter(|domain| organizational(domain) == reporter);
            let Some(domain) = domain else { return Ok(false) };
            let evaluation = self.spf_of(domain).await?;
            Ok::<_, String>(allows(&evaluation, mail.client))
        };
        let (keys, spf) = tokio::join!(keys, spf);
        let found: Vec<_> = keys.into_iter().chain([spf]).collect();
        if found.contains(&Ok(true)) {
            return Ok(true);
        }
        match found.into_iter().find_map(Result::err) {
            Some(reason) => {
                tracing::debug!(reason, "whose mail a report is could not be looked up");
                Err(Error::Unavailable { retry_after: 60 })
            }
            None => Ok(false),
        }
    }

    /// Evaluates the SPF record of a name, with all records it refers to; an error says why an answer is missing.
    pub(crate) async fn spf_of(&self, name: &str) -> Result<Evaluation, String> {
        let step = |answers: &_| match evaluate(name, answers) {
            Step::Ask(questions) => Err(questions),
            Step::Done(evaluation) => Ok(evaluation),
        };
        spf_looks::followed(self.resolver(), step).await
    }
}

/// Returns true if an SPF record that receivers accept lets an address send.
pub(crate) fn allows(evaluation: &Evaluation, address: IpAddr) -> bool {
    evaluation.problem.is_none() && evaluation.permits(address.to_canonical()) == Permission::Allowed
}

/// Returns the rows of a report with most messages or sessions.
fn kept_rows(report: &DomainReport) -> ReportRows {
    let mut rows = report.rows.clone();
    match &mut rows {
        ReportRows::Dmarc(rows) => {
            rows.sort_by_key(|row| std::cmp::Reverse(row.messages));
            rows.truncate(MAX_ROWS_OF_REPORT);
            // Commits that change the same rows change them in the same order.
            rows.sort_by_key(|row| (row.source, row.result));
        }
        ReportRows::Tls(rows) => {
            rows.sort_by_key(|row| std::cmp::Reverse(row.sessions));
            rows.truncate(MAX_ROWS_OF_REPORT);
        }
    }
    rows
}

const fn no_rows(purpose: ReportPurpose) -> ReportRows {
    match purpose {
        ReportPurpose::Dmarc => ReportRows::Dmarc(Vec::new()),
        ReportPurpose::TlsRpt => ReportRows::Tls(Vec::new()),
    }
}
