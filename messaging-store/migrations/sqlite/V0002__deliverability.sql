-- == Reports about sending domains ==

-- The address of reports names a domain, not a workspace.
CREATE INDEX sending_domains_by_id ON sending_domains (id);

-- Reports that arrived, verified as the reporter's or not, so that each counts once. `purpose` is 0 for DMARC, 1 for TLS;
-- `day` counts from 1970-01-01 and is the one on which the period of the report begins.
CREATE TABLE domain_reports (
    workspace BLOB NOT NULL,
    domain BLOB NOT NULL,
    key BLOB NOT NULL,
    purpose INTEGER NOT NULL,
    day INTEGER NOT NULL,
    reporter TEXT NOT NULL,
    verified INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (workspace, domain, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX domain_reports_by_domain ON domain_reports (workspace, domain, day);
CREATE INDEX domain_reports_by_day ON domain_reports (day);

-- Messages by day, reporter, source and result of DMARC, which is a set of bits.
CREATE TABLE dmarc_rows (
    workspace BLOB NOT NULL,
    domain BLOB NOT NULL,
    day INTEGER NOT NULL,
    reporter TEXT NOT NULL,
    source TEXT NOT NULL,
    result INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    PRIMARY KEY (workspace, domain, day, reporter, source, result)
) STRICT, WITHOUT ROWID;
CREATE INDEX dmarc_rows_by_day ON dmarc_rows (day);

-- TLS sessions by day, reporter, exchanger and result. Ids begin with the time at which the report arrived.
CREATE TABLE tls_rows (
    workspace BLOB NOT NULL,
    domain BLOB NOT NULL,
    id BLOB NOT NULL,
    day INTEGER NOT NULL,
    reporter TEXT NOT NULL,
    mx TEXT NOT NULL,
    result TEXT NOT NULL,
    sessions INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    PRIMARY KEY (workspace, domain, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tls_rows_by_day ON tls_rows (day);
