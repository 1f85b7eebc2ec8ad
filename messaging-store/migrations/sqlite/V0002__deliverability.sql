-- == IP pools, and sources of mail with their paths ==

-- A pool of sixteen zero bytes instead of a workspace is shared with all of them.
CREATE TABLE ip_pools (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX ip_pools_by_name ON ip_pools (workspace, name);
CREATE INDEX ip_pools_by_id ON ip_pools (id);

-- The addresses that a workspace may name in its pools.
CREATE TABLE ip_grants (
    workspace BLOB NOT NULL,
    ip TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    PRIMARY KEY (workspace, ip)
) STRICT, WITHOUT ROWID;

-- What is kept of a source, whichever node has the address: an IP address or `default`.
CREATE TABLE sources (
    ip TEXT NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What is kept of a path: a source and the site that its mail goes to. `day` counts from 1970-01-01.
CREATE TABLE paths (
    ip TEXT NOT NULL,
    site TEXT NOT NULL,
    revision INTEGER NOT NULL,
    sent_today INTEGER NOT NULL,
    day INTEGER NOT NULL,
    is_stopped INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (ip, site)
) STRICT, WITHOUT ROWID;
CREATE INDEX paths_by_age ON paths (updated_at) WHERE is_stopped = 0;
-- Transport security: MTA-STS policies (RFC 8461) of domains of recipients, which all workspaces share.
CREATE TABLE sts_policies (
    domain TEXT NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sts_policies_by_expiry ON sts_policies (expires_at);
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
