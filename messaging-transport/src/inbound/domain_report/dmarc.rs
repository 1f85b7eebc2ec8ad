//! Aggregate reports of DMARC. RFC 9990 has the form of RFC 7489 with a namespace and a few more elements, so one
//! parser serves both, and accepts the omissions of old reporters.

use std::collections::BTreeMap;
use std::net::IpAddr;

use messaging_core::domain::mail::dmarc::DmarcAction;
use messaging_core::domain::mail::dmarc::report::{
    AggregateResult, AggregateRow, DomainReport, MAX_MESSAGES_OF_ROW, ReportRows,
};
use messaging_core::time::Timestamp;

use super::contents::Content;
use super::shared::{MAX_ROWS, Unreadable, domain_of, is_within, text};
use super::xml::{Document, Piece};

/// Parts of a report that were read so far.
#[derive(Default)]
struct Reading {
    email: Option<String>,
    report_id: String,
    begin: Option<i64>,
    end: Option<i64>,
    domain: String,
    rows: BTreeMap<(IpAddr, AggregateResult), u64>,
    records: usize,
    record: Record,
}

/// A `record` that is being read.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "results of a record are independent of each other")]
struct Record {
    source: Option<IpAddr>,
    messages: u64,
    disposition: Option<DmarcAction>,
    header_from: Option<String>,
    is_dkim_aligned: bool,
    is_spf_aligned: bool,
    has_dkim: bool,
    has_spf: bool,
}

/// Parses a report; rows about names outside of the domain are left out.
pub(super) fn read(content: Content<'_>, domain: &str) -> Result<DomainReport, Unreadable> {
    let mut document = Document::new(content);
    let mut reading = Reading::default();
    let mut has_root = false;
    while let Some(piece) = document.next()? {
        match piece {
            Piece::Start("feedback") if !has_root => has_root = true,
            Piece::Start("feedback/record") => {
                reading.records += 1;
                if reading.records > MAX_ROWS {
                    return Err(Unreadable::TooManyRows);
                }
                reading.record = Record::default();
            }
            Piece::Start(_) if has_root => {}
            Piece::Start(_) => return Err(Unreadable::Form),
            Piece::End("feedback/record", _) => reading.end_record(domain),
            Piece::End(path, value) => reading.take(path, value),
        }
    }
    reading.report(domain)
}

impl Reading {
    /// Takes the value of an element.
    fn take(&mut self, path: &str, value: &str) {
        let Some(path) = path.strip_prefix("feedback/") else { return };
        let is_pass = value.eq_ignore_ascii_case("pass");
        let record = &mut self.record;
        match path {
            "report_metadata/email" => self.email = domain_of(value),
            "report_metadata/report_id" => self.report_id = text(value),
            "report_metadata/date_range/begin" => self.begin = value.parse().ok(),
            "report_metadata/date_range/end" => self.end = value.parse().ok(),
            "policy_published/domain" => self.domain = text(value),
            "record/row/source_ip" => record.source = value.parse::<IpAddr>().ok().map(|ip| ip.to_canonical()),
            "record/row/count" => record.messages = value.parse().unwrap_or(0),
            "record/row/policy_evaluated/disposition" => record.disposition = DmarcAction::parse(value),
            "record/row/policy_evaluated/dkim" => record.is_dkim_aligned = is_pass,
            "record/row/policy_evaluated/spf" => record.is_spf_aligned = is_pass,
            "record/identifiers/header_from" => record.header_from = Some(text(value)),
            // There may be several of each.
            "record/auth_results/dkim/result" => record.has_dkim |= is_pass,
            "record/auth_results/spf/result" => record.has_spf |= is_pass,
            _ => {}
        }
    }

    fn end_record(&mut self, domain: &str) {
        let record = std::mem::take(&mut self.record);
        let is_ours = record.header_from.as_deref().is_none_or(|name| is_within(name, domain));
        let Some(source) = record.source.filter(|_| is_ours && record.messages > 0) else { return };
        let result = AggregateResult {
            disposition: record.disposition.unwrap_or(DmarcAction::None),
            // An aligned result has passed, even if the report lacks the details.
            spf: record.has_spf || record.is_spf_aligned,
            dkim: record.has_dkim || record.is_dkim_aligned,
            spf_aligned: record.is_spf_aligned,
            dkim_aligned: record.is_dkim_aligned,
        };
        let messages = self.rows.entry((source, result)).or_default();
        *messages = messages.saturating_add(record.messages).min(MAX_MESSAGES_OF_ROW);
    }

    fn report(self, domain: &str) -> Result<DomainReport, Unreadable> {
        let (Some(begin), Some(end)) = (self.begin.and_then(seconds), self.end.and_then(seconds)) else {
            return Err(Unreadable::Form);
        };
        if self.report_id.is_empty() || self.domain.is_empty() {
            return Err(Unreadable::Form);
        }
        // The policy may be that of a domain above or below.
        let published = self.domain.to_ascii_lowercase();
        if !is_within(&published, domain) && !is_within(domain, &published) {
            return Err(Unreadable::OtherDomain);
        }
        let row = |((source, result), messages)| AggregateRow { source, result, messages };
        Ok(DomainReport {
            contact: self.email,
            report_id: self.report_id,
            begin,
            end,
            rows: ReportRows::Dmarc(self.rows.into_iter().map(row).collect()),
        })
    }
}

/// Returns the time of a count of seconds since 1970.
fn seconds(count: i64) -> Option<Timestamp> {
    (0..=253_402_300_799).contains(&count).then(|| Timestamp::from_millis(count * 1000))
}
