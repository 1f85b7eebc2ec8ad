//! Cases for reports about sending domains.

use messaging_core::changes::{DocumentKey, Expect, Write};
use messaging_core::domain::mail::dmarc::DmarcAction;
use messaging_core::domain::mail::dmarc::report::{
    AggregateResult, AggregateRow, Day, KeptReport, MAX_MESSAGES_OF_ROW, ReportKey, ReportRows, TlsRow,
};
use messaging_core::domain::mail::link_token::ReportPurpose;
use messaging_core::ids::{DomainId, WorkspaceId};
use messaging_core::ports::store::{DmarcSource, DmarcTotals, KeptCounts, Store};

use super::sample::{at, domain, id};
use super::{all_pages, first, put, refuse};

/// A day of the reports.
const DAY: Day = 20_000;

const PASSED: AggregateResult =
    AggregateResult { disposition: DmarcAction::None, spf: true, dkim: true, spf_aligned: false, dkim_aligned: true };

const FAILED: AggregateResult = AggregateResult {
    disposition: DmarcAction::Quarantine,
    spf: true,
    dkim: false,
    spf_aligned: false,
    dkim_aligned: false,
};

fn row(source: &str, result: AggregateResult, messages: u64) -> AggregateRow {
    AggregateRow { source: source.parse().unwrap(), result, messages }
}

fn tls(mx: &str, result: &str, sessions: u64, failures: u64) -> TlsRow {
    TlsRow { mx: mx.to_owned(), result: result.to_owned(), sessions, failures }
}

/// A verified report.
fn report(of: (WorkspaceId, DomainId), name: &str, reporter: &str, day: Day, rows: ReportRows) -> KeptReport {
    KeptReport {
        workspace_id: of.0,
        domain_id: of.1,
        key: ReportKey::of(rows.purpose(), reporter, name, true),
        reporter: reporter.to_owned(),
        day,
        at: at(50),
        last_seen: at(day * 86_400_000),
        is_verified: true,
        rows,
        forget_reports: 0,
        forget_rows: 0,
    }
}

/// The write that keeps a report.
pub fn keep(report: &KeptReport) -> Write {
    Write::PutDomainReport(Box::new(report.clone()))
}

/// A report on TLS that arrived at a time, with two rows.
pub fn tls_report(workspace: WorkspaceId, domain: DomainId, millis: i64) -> KeptReport {
    let rows =
        vec![tls("mx1.acme.example", "successful", 7, 0), tls("mx1.acme.example", "starttls-not-supported", 2, 2)];
    let report = report((workspace, domain), &millis.to_string(), "example.net", DAY, ReportRows::Tls(rows));
    KeptReport { at: at(millis), ..report }
}

async fn totals(store: &dyn Store, of: (WorkspaceId, DomainId), first: Day, last: Day) -> DmarcTotals {
    store.dmarc_totals(of.0, of.1, first, last).await.unwrap()
}

async fn sources(store: &dyn Store, of: (WorkspaceId, DomainId), first: Day, last: Day) -> Vec<DmarcSource> {
    store.dmarc_sources(of.0, of.1, first, last, 10).await.unwrap()
}

/// A report counts once, for its domain alone.
pub async fn a_report_counts_once(store: &dyn Store) {
    let of: (WorkspaceId, DomainId) = (id(), id());
    let rows = ReportRows::Dmarc(vec![row("192.0.2.1", PASSED, 3), row("2001:db8::1", FAILED, 1)]);
    let first = report(of, "r1", "example.net", DAY, rows.clone());
    let is_kept = async |of: (WorkspaceId, DomainId)| store.is_domain_report_kept(of.0, of.1, first.key).await.unwrap();
    assert!(!is_kept(of).await);
    put(store, [keep(&first)]).await;
    refuse(store, [keep(&first)]).await;
    assert!(is_kept(of).await);
    assert!(!is_kept((id(), of.1)).await && !is_kept((of.0, id())).await);
    let expected = DmarcTotals { messages: 4, passed: 3, reports: 1, unverified_reports: 0 };
    assert_eq!(totals(store, of, DAY, DAY).await, expected);
    for other in [(id(), of.1), (of.0, id())] {
        assert_eq!(totals(store, other, DAY, DAY).await, DmarcTotals::default());
        assert_eq!(sources(store, other, DAY, DAY).await, []);
    }
    // The same name of another kind is another report.
    put(store, [keep(&report(of, "r1", "example.net", DAY, ReportRows::Tls(Vec::new())))]).await;
    assert_eq!(totals(store, of, DAY, DAY).await, expected);
}

/// Messages are summed by source and result, whoever reported them and on whichever day of the span.
pub async fn messages_are_summed_by_source_and_result(store: &dyn Store) {
    let of: (WorkspaceId, DomainId) = (id(), id());
    let dmarc = |rows| ReportRows::Dmarc(rows);
    let all = [
        report(of, "1", "example.net", DAY, dmarc(vec![row("192.0.2.1", PASSED, 3), row("192.0.2.1", FAILED, 2)])),
        report(of, "2", "example.net", DAY, dmarc(vec![row("192.0.2.1", PASSED, 4)])),
        report(
            of,
            "1",
            "example.com",
            DAY + 1,
            dmarc(vec![row("192.0.2.1", PASSED, 5), row("198.51.100.7", PASSED, 9)]),
        ),
        report(of, "3", "example.net", DAY + 2, dmarc(vec![row("192.0.2.1", PASSED, 100)])),
    ];
    put(store, all.iter().map(keep).collect::<Vec<_>>()).await;
    let source = |ip: &str, result, messages, reporters: &[&str], day: Day| DmarcSource {
        ip: ip.parse().unwrap(),
        result,
        messages,
        reporters: reporters.iter().map(|&reporter| reporter.to_owned()).collect(),
        last_seen: at(day * 86_400_000),
    };
    let expected = [
        source("192.0.2.1", PASSED, 12, &["example.com", "example.net"], DAY + 1),
        source("198.51.100.7", PASSED, 9, &["example.com"], DAY + 1),
        source("192.0.2.1", FAILED, 2, &["example.net"], DAY),
    ];
    assert_eq!(sources(store, of, DAY, DAY + 1).await, expected);
    assert_eq!(store.dmarc_sources(of.0, of.1, DAY, DAY + 1, 1).await.unwrap(), expected[..1]);
    let sums = |messages, passed, reports| DmarcTotals { messages, passed, reports, unverified_reports: 0 };
    assert_eq!(totals(store, of, DAY, DAY + 1).await, sums(23, 21, 3));
    assert_eq!(totals(store, of, DAY + 2, DAY + 9).await, sums(100, 100, 1));
    assert_eq!(totals(store, of, DAY + 3, DAY + 9).await, DmarcTotals::default());
    // Whatever a reporter claims, the sums are numbers.
    let claims = ["1", "2"].map(|name| {
        report(of, name, "example.org", DAY + 20, dmarc(vec![row("192.0.2.1", PASSED, MAX_MESSAGES_OF_ROW - 1)]))
    });
    put(store, [keep(&claims[0])]).await;
    put(store, [keep(&claims[1])]).await;
    assert_eq!(totals(store, of, DAY + 20, DAY + 20).await, sums(MAX_MESSAGES_OF_ROW, MAX_MESSAGES_OF_ROW, 2));
}

/// Reports that are not verified are counted apart.
pub async fn unverified_reports_are_counted_apart(store: &dyn Store) {
    let of: (WorkspaceId, DomainId) = (id(), id());
    let genuine = report(of, "1", "example.net", DAY, ReportRows::Dmarc(vec![row("192.0.2.1", PASSED, 3)]));
    let forged = KeptReport {
        key: ReportKey::of(ReportPurpose::Dmarc, "example.net", "1", false),
        is_verified: false,
        rows: ReportRows::Dmarc(Vec::new()),
        ..genuine.clone()
    };
    put(store, [keep(&forged)]).await;
    put(store, [keep(&genuine)]).await;
    let expected = DmarcTotals { messages: 3, passed: 3, reports: 1, unverified_reports: 1 };
    assert_eq!(totals(store, of, DAY, DAY).await, expected);
}

/// Rows of TLS reports are listed newest first, each once, also while others arrive.
pub async fn rows_of_tls_reports_are_listed(store: &dyn Store) {
    let (workspace, domain): (WorkspaceId, DomainId) = (id(), id());
    let reports = [1, 2, 3].map(|millis| tls_report(workspace, domain, millis));
    put(store, reports.iter().map(keep).collect::<Vec<_>>()).await;
    let listed = all_pages(
        1,
        async |page| store.tls_rows(workspace, domain, page).await,
        async || {
            let later = i64::try_from(store.kept_of_domain(workspace, domain, 100).await.unwrap().reports).unwrap();
            put(store, [keep(&tls_report(workspace, domain, 10 + later))]).await;
        },
    )
    .await;
    assert_eq!(listed.len(), 6);
    assert!(listed.is_sorted_by(|one, next| one.id > next.id));
    assert!(listed.iter().all(|one| one.day == DAY && one.reporter == "example.net"));
    let counts: Vec<_> = listed.iter().map(|one| (one.row.sessions, one.row.failures)).collect();
    assert_eq!(counts.iter().filter(|counts| **counts == (7, 0)).count(), 3);
    assert_eq!(counts.iter().filter(|counts| **counts == (2, 2)).count(), 3);
    assert_eq!(store.tls_rows(id(), domain, first(10)).await.unwrap().items, []);
    assert_eq!(store.tls_rows(workspace, id(), first(10)).await.unwrap().items, []);
}

/// A report may take the place of the oldest ones of its domain.
pub async fn the_oldest_go_where_a_report_says_so(store: &dyn Store) {
    let of: (WorkspaceId, DomainId) = (id(), id());
    let dmarc = |name: &str, day| {
        let rows = vec![row("192.0.2.1", PASSED, 1), row("192.0.2.2", PASSED, 1)];
        report(of, name, "example.net", day, ReportRows::Dmarc(rows))
    };
    put(store, [keep(&dmarc("2", DAY + 1)), keep(&dmarc("1", DAY))]).await;
    put(store, [keep(&tls_report(of.0, of.1, 1))]).await;
    let kept = async |most| store.kept_of_domain(of.0, of.1, most).await.unwrap();
    assert_eq!(kept(100).await, KeptCounts { reports: 3, dmarc_rows: 4, tls_rows: 2 });
    assert_eq!(kept(2).await, KeptCounts { reports: 2, dmarc_rows: 2, tls_rows: 2 });
    put(store, [keep(&KeptReport { forget_reports: 2, forget_rows: 3, ..dmarc("3", DAY + 2) })]).await;
    assert_eq!(kept(100).await, KeptCounts { reports: 2, dmarc_rows: 3, tls_rows: 2 });
    assert_eq!(totals(store, of, DAY, DAY).await.messages, 0);
    assert_eq!(totals(store, of, DAY, DAY + 2).await.messages, 3);
    put(store, [keep(&KeptReport { forget_rows: 1, ..tls_report(of.0, of.1, 2) })]).await;
    assert_eq!(kept(100).await, KeptCounts { reports: 3, dmarc_rows: 3, tls_rows: 3 });
}

/// Reports and rows of days that are long past are forgotten a few at a time.
pub async fn old_reports_are_forgotten(store: &dyn Store) {
    let of: (WorkspaceId, DomainId) = (id(), id());
    for day in [DAY, DAY + 1] {
        let rows = vec![row("192.0.2.1", PASSED, 1), row("192.0.2.2", PASSED, 1)];
        put(store, [keep(&report(of, &day.to_string(), "example.net", day, ReportRows::Dmarc(rows)))]).await;
    }
    put(store, [keep(&tls_report(of.0, of.1, 1))]).await;
    assert_eq!(store.forget_domain_reports(DAY, 100).await.unwrap(), 0);
    let mut gone = 0;
    loop {
        match store.forget_domain_reports(DAY + 1, 1).await.unwrap() {
            0 => break,
            some => {
                assert!(some <= 3);
                gone += some;
            }
        }
    }
    assert_eq!(gone, 6, "two reports, two rows of each");
    let kept = store.kept_of_domain(of.0, of.1, 100).await.unwrap();
    assert_eq!(kept, KeptCounts { reports: 1, dmarc_rows: 2, tls_rows: 0 });
}

/// A domain is found by its id alone, and takes its reports along when it is deleted.
pub async fn a_deleted_domain_takes_its_reports_along(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let (mine, other) = (domain(workspace, "acme.example"), domain(workspace, "other.example"));
    put(store, [&mine, &other].map(|domain| Write::put(domain.clone(), Expect::Absent))).await;
    assert_eq!(store.domain_anywhere(mine.id).await.unwrap(), Some(mine.clone()));
    assert_eq!(store.domain_anywhere(id()).await.unwrap(), None);
    for of in [&mine, &other] {
        let rows = ReportRows::Dmarc(vec![row("192.0.2.1", PASSED, 1)]);
        put(store, [keep(&report((workspace, of.id), "1", "example.net", DAY, rows))]).await;
        put(store, [keep(&tls_report(workspace, of.id, 1))]).await;
    }
    put(store, [Write::Delete(DocumentKey::Domain(workspace, mine.id))]).await;
    assert_eq!(store.domain_anywhere(mine.id).await.unwrap(), None);
    assert_eq!(store.kept_of_domain(workspace, mine.id, 9).await.unwrap(), KeptCounts::default());
    let left = store.kept_of_domain(workspace, other.id, 9).await.unwrap();
    assert_eq!(left, KeptCounts { reports: 2, dmarc_rows: 1, tls_rows: 2 });
}
