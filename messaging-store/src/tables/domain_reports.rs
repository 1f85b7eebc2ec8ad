//! Reports about sending domains, and their rows.

use async_trait::async_trait;
use messaging_core::domain::mail::dmarc::report::{
    AggregateResult, AggregateRow, Day, KeptReport, MAX_MESSAGES_OF_ROW, ReportKey, ReportRows, TlsRow,
};
use messaging_core::domain::mail::link_token::ReportPurpose;
use messaging_core::ids::{DomainId, WorkspaceId};
use messaging_core::ports::store::{
    DmarcSource, DmarcTotals, DomainReports, KeptCounts, PageRequest, Slice, StoreError, StoredTlsRow,
};

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, number, one_more, sql_limit};
use crate::row::{Row, count, get, time};
use crate::sql::{Sql, key, params, sql};

/// Keeps a report with its rows; a conflict when it is kept already. The rows are one statement, however many they are.
pub(crate) fn put(on: &mut dyn Statements, report: &KeptReport) -> Result<(), Fault> {
    const PUT: Sql = sql!(
        "INSERT INTO domain_reports (workspace, domain, key, purpose, day, reporter, verified, at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
    );
    let KeptReport { workspace_id, domain_id, reporter, day, at, is_verified, rows, .. } = report;
    make_room(on, report)?;
    let purpose = number(&ReportPurpose::ALL, &rows.purpose());
    let (workspace, domain) = (key(*workspace_id), key(*domain_id));
    on.run(PUT, params![workspace, domain, report.key.0, purpose, *day, reporter.as_str(), *is_verified, *at])?;
    match rows {
        ReportRows::Dmarc(rows) if !rows.is_empty() => put_dmarc(on, report, rows),
        ReportRows::Tls(rows) if !rows.is_empty() => put_tls(on, report, rows),
        ReportRows::Dmarc(_) | ReportRows::Tls(_) => Ok(()),
    }
}

fn put_dmarc(on: &mut dyn Statements, report: &KeptReport, rows: &[AggregateRow]) -> Result<(), Fault> {
    const PUT: Sql = sql!(
        sqlite: "INSERT INTO dmarc_rows (workspace, domain, day, reporter, source, result, messages, last_seen)
            SELECT ?1, ?2, ?3, ?4, value ->> 0, value ->> 1, value ->> 2, ?6 FROM json_each(?5) WHERE true
            ON CONFLICT (workspace, domain, day, reporter, source, result) DO UPDATE SET
                messages = min(messages + excluded.messages, ?7), last_seen = max(last_seen, excluded.last_seen)",
        postgres: "INSERT INTO dmarc_rows (workspace, domain, day, reporter, source, result, messages, last_seen)
            SELECT $1, $2, $3, $4, one ->> 0, (one ->> 1)::bigint, (one ->> 2)::bigint, $6
            FROM json_array_elements($5::text::json) AS one
            ON CONFLICT (workspace, domain, day, reporter, source, result) DO UPDATE SET
                messages = least(dmarc_rows.messages + excluded.messages, $7),
                last_seen = greatest(dmarc_rows.last_seen, excluded.last_seen)",
    );
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row.source.to_string(), row.result.to_bits(), row.messages.min(MAX_MESSAGES_OF_ROW)))
        .collect();
    let most = i64::try_from(MAX_MESSAGES_OF_ROW).unwrap_or(i64::MAX);
    let (workspace, domain) = (key(report.workspace_id), key(report.domain_id));
    let rows = serde_json::to_string(&rows)?;
    let (day, reporter) = (report.day, report.reporter.as_str());
    on.run(PUT, params![workspace, domain, day, reporter, rows.as_str(), report.last_seen, most])
}

fn put_tls(on: &mut dyn Statements, report: &KeptReport, rows: &[TlsRow]) -> Result<(), Fault> {
    const PUT: Sql = sql!(
        "INSERT INTO tls_rows (workspace, domain, id, day, reporter, mx, result, sessions, failures)
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
    );
    for (at, row) in rows.iter().enumerate() {
        let (workspace, domain) = (key(report.workspace_id), key(report.domain_id));
        let (id, count) = (report.key.row_id(report.at, at), |number: u64| i64::try_from(number).unwrap_or(i64::MAX));
        let (sessions, failures) = (count(row.sessions), count(row.failures));
        let reporter = report.reporter.as_str();
        let (mx, result) = (row.mx.as_str(), row.result.as_str());
        on.run(PUT, params![workspace, domain, id, report.day, reporter, mx, result, sessions, failures])?;
    }
    Ok(())
}

/// Lets go of as many of the oldest reports and rows as the report says.
fn make_room(on: &mut dyn Statements, report: &KeptReport) -> Result<(), Fault> {
    const REPORTS: Sql = sql!(
        sqlite: "DELETE FROM domain_reports WHERE (workspace, domain, key) IN
            (SELECT workspace, domain, key FROM domain_reports WHERE workspace = ?1 AND domain = ?2 ORDER BY day LIMIT ?3)",
        postgres: "DELETE FROM domain_reports WHERE ctid = ANY (ARRAY (SELECT ctid FROM domain_reports
            WHERE workspace = $1 AND domain = $2 ORDER BY day LIMIT $3))",
    );
    const DMARC: Sql = sql!(
        sqlite: "DELETE FROM dmarc_rows WHERE (workspace, domain, day, reporter, source, result) IN
            (SELECT workspace, domain, day, reporter, source, result FROM dmarc_rows
             WHERE workspace = ?1 AND domain = ?2 ORDER BY day LIMIT ?3)",
        postgres: "DELETE FROM dmarc_rows WHERE ctid = ANY (ARRAY (SELECT ctid FROM dmarc_rows
            WHERE workspace = $1 AND domain = $2 ORDER BY day LIMIT $3))",
    );
    const TLS: Sql = sql!(
        sqlite: "DELETE FROM tls_rows WHERE (workspace, domain, id) IN
            (SELECT workspace, domain, id FROM tls_rows WHERE workspace = ?1 AND domain = ?2 ORDER BY id LIMIT ?3)",
        postgres: "DELETE FROM tls_rows WHERE ctid = ANY (ARRAY (SELECT ctid FROM tls_rows
            WHERE workspace = $1 AND domain = $2 ORDER BY id LIMIT $3))",
    );
    let rows = if report.rows.purpose() == ReportPurpose::Dmarc { DMARC } else { TLS };
    for (sql, surplus) in [(REPORTS, report.forget_reports), (rows, report.forget_rows)] {
        if surplus > 0 {
            let surplus = i64::try_from(surplus).unwrap_or(i64::MAX);
            on.run(sql, params![key(report.workspace_id), key(report.domain_id), surplus])?;
        }
    }
    Ok(())
}

/// Removes all reports about a domain.
pub(crate) fn delete(on: &mut dyn Statements, workspace: WorkspaceId, domain: DomainId) -> Result<(), Fault> {
    const ALL: [Sql; 3] = [
        sql!("DELETE FROM domain_reports WHERE workspace = $1 AND domain = $2"),
        sql!("DELETE FROM dmarc_rows WHERE workspace = $1 AND domain = $2"),
        sql!("DELETE FROM tls_rows WHERE workspace = $1 AND domain = $2"),
    ];
    ALL.into_iter().try_for_each(|sql| on.run(sql, params![key(workspace), key(domain)]))
}

fn source(row: &dyn Row) -> Result<DmarcSource, Fault> {
    let mut reporters: Vec<_> = get::<&str>(row, 3)?.split(',').map(ToOwned::to_owned).collect();
    reporters.sort_unstable();
    Ok(DmarcSource {
        ip: get::<&str>(row, 0)?.parse().map_err(|_| Fault::Malformed("a source is no address"))?,
        result: AggregateResult::from_bits(get(row, 1)?).ok_or(Fault::Malformed("a result stands for nothing"))?,
        messages: count(row, 2)?,
        reporters,
        last_seen: time(row, 4)?,
    })
}

#[async_trait]
impl<D: Database> DomainReports for SqlStore<D> {
    async fn is_domain_report_kept(
        &self,
        workspace: WorkspaceId,
        domain: DomainId,
        report: ReportKey,
    ) -> Result<bool, StoreError> {
        const SQL: Sql = sql!("SELECT 1 FROM domain_reports WHERE workspace = $1 AND domain = $2 AND key = $3");
        let wanted = params![key(workspace), key(domain), report.0];
        Ok(self.one(Query::new(SQL, wanted, |_| Ok(())).point()).await?.is_some())
    }

    async fn kept_of_domain(
        &self,
        workspace: WorkspaceId,
        domain: DomainId,
        most: u64,
    ) -> Result<KeptCounts, StoreError> {
        const SQL: Sql = sql!(
            "SELECT (SELECT count(*) FROM (SELECT 1 FROM domain_reports WHERE workspace = $1 AND domain = $2 LIMIT $3) AS a),
                (SELECT count(*) FROM (SELECT 1 FROM dmarc_rows WHERE workspace = $1 AND domain = $2 LIMIT $3) AS b),
                (SELECT count(*) FROM (SELECT 1 FROM tls_rows WHERE workspace = $1 AND domain = $2 LIMIT $3) AS c)"
        );
        let bounds = params![key(workspace), key(domain), i64::try_from(most).unwrap_or(i64::MAX)];
        let query = Query::new(SQL, bounds, |row| {
            Ok(KeptCounts { reports: count(row, 0)?, dmarc_rows: count(row, 1)?, tls_rows: count(row, 2)? })
        });
        Ok(self.one(query.scan()).await?.unwrap_or_default())
    }

    async fn dmarc_totals(
        &self,
        workspace: WorkspaceId,
        domain: DomainId,
        first: Day,
        last: Day,
    ) -> Result<DmarcTotals, StoreError> {
        const SQL: Sql = sql!(
            "SELECT CAST(coalesce(sum(messages), 0) AS bigint),
                CAST(coalesce(sum(CASE WHEN (result & $5) <> 0 THEN messages ELSE 0 END), 0) AS bigint),
                (SELECT count(*) FILTER (WHERE verified) FROM domain_reports
                 WHERE workspace = $1 AND domain = $2 AND day >= $3 AND day <= $4 AND purpose = 0),
                (SELECT count(*) FILTER (WHERE NOT verified) FROM domain_reports
                 WHERE workspace = $1 AND domain = $2 AND day >= $3 AND day <= $4 AND purpose = 0)
             FROM dmarc_rows WHERE workspace = $1 AND domain = $2 AND day >= $3 AND day <= $4"
        );
        let bounds = params![key(workspace), key(domain), first, last, AggregateResult::ALIGNED];
        let query = Query::new(SQL, bounds, |row| {
            Ok(DmarcTotals {
                messages: count(row, 0)?,
                passed: count(row, 1)?,
                reports: count(row, 2)?,
                unverified_reports: count(row, 3)?,
            })
        });
        Ok(self.one(query.scan()).await?.unwrap_or_default())
    }

    async fn dmarc_sources(
        &self,
        workspace: WorkspaceId,
        domain: DomainId,
        first: Day,
        last: Day,
        limit: usize,
    ) -> Result<Vec<DmarcSource>, StoreError> {
        const SQL: Sql = sql!(
            sqlite: "SELECT source, result, CAST(sum(messages) AS bigint) AS n, group_concat(DISTINCT reporter), max(last_seen)
                FROM dmarc_rows WHERE workspace = ?1 AND domain = ?2 AND day >= ?3 AND day <= ?4
                GROUP BY source, result ORDER BY n DESC, source, result LIMIT ?5",
            postgres: "SELECT source, result, CAST(sum(messages) AS bigint) AS n, string_agg(DISTINCT reporter, ','),
                    max(last_seen)
                FROM dmarc_rows WHERE workspace = $1 AND domain = $2 AND day >= $3 AND day <= $4
                GROUP BY source, result ORDER BY n DESC, source, result LIMIT $5",
        );
        let bounds = params![key(workspace), key(domain), first, last, sql_limit(limit)];
        self.many(Query::new(SQL, bounds, source).scan()).await
    }

    async fn tls_rows(
        &self,
        workspace: WorkspaceId,
        domain: DomainId,
        page: PageRequest,
    ) -> Result<Slice<StoredTlsRow>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT id, day, reporter, mx, result, sessions, failures FROM tls_rows
             WHERE workspace = $1 AND domain = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
        );
        let bounds = params![key(workspace), key(domain), below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, |row| {
            let counts =
                TlsRow { mx: get(row, 3)?, result: get(row, 4)?, sessions: count(row, 5)?, failures: count(row, 6)? };
            Ok(StoredTlsRow { id: get(row, 0)?, day: get(row, 1)?, reporter: get(row, 2)?, row: counts })
        });
        self.page(query, page, |row| row.id).await
    }

    async fn forget_domain_reports(&self, before: Day, limit: usize) -> Result<u64, StoreError> {
        const ALL: [Sql; 3] = [
            sql!(
                sqlite: "DELETE FROM domain_reports WHERE (workspace, domain, key) IN
                    (SELECT workspace, domain, key FROM domain_reports WHERE day < ?1 ORDER BY day LIMIT ?2)",
                postgres: "DELETE FROM domain_reports WHERE ctid = ANY (ARRAY (SELECT ctid FROM domain_reports
                    WHERE day < $1 ORDER BY day LIMIT $2 FOR UPDATE SKIP LOCKED))",
            ),
            sql!(
                sqlite: "DELETE FROM dmarc_rows WHERE (workspace, domain, day, reporter, source, result) IN
                    (SELECT workspace, domain, day, reporter, source, result FROM dmarc_rows
                     WHERE day < ?1 ORDER BY day LIMIT ?2)",
                postgres: "DELETE FROM dmarc_rows WHERE ctid = ANY (ARRAY (SELECT ctid FROM dmarc_rows
                    WHERE day < $1 ORDER BY day LIMIT $2 FOR UPDATE SKIP LOCKED))",
            ),
            sql!(
                sqlite: "DELETE FROM tls_rows WHERE (workspace, domain, id) IN
                    (SELECT workspace, domain, id FROM tls_rows WHERE day < ?1 ORDER BY day LIMIT ?2)",
                postgres: "DELETE FROM tls_rows WHERE ctid = ANY (ARRAY (SELECT ctid FROM tls_rows
                    WHERE day < $1 ORDER BY day LIMIT $2 FOR UPDATE SKIP LOCKED))",
            ),
        ];
        let mut gone = 0;
        for sql in ALL {
            gone += self.sweep(sql, params![before, sql_limit(limit)]).await?;
        }
        Ok(gone)
    }
}
