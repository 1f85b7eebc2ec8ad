-- == IP pools, and sources of mail with their paths ==

-- A pool of the id of zeros instead of a workspace is shared with all of them.
CREATE TABLE ip_pools (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, name)
);
CREATE INDEX ip_pools_by_id ON ip_pools (id);

-- The addresses that a workspace may name in its pools.
CREATE TABLE ip_grants (
    workspace uuid NOT NULL,
    ip text COLLATE "C" NOT NULL,
    granted_at bigint NOT NULL,
    PRIMARY KEY (workspace, ip)
);

-- What is kept of a source, whichever node has the address: an IP address or `default`.
CREATE TABLE sources (
    ip text COLLATE "C" PRIMARY KEY,
    revision bigint NOT NULL,
    doc text NOT NULL
) WITH (fillfactor = 50);

-- What is kept of a path: a source and the site that its mail goes to. `day` counts from 1970-01-01.
CREATE TABLE paths (
    ip text COLLATE "C" NOT NULL,
    site text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    sent_today bigint NOT NULL,
    day bigint NOT NULL,
    is_stopped boolean NOT NULL,
    updated_at bigint NOT NULL,
    state text NOT NULL,
    PRIMARY KEY (ip, site)
) WITH (fillfactor = 50);
CREATE INDEX paths_by_age ON paths (updated_at) WHERE NOT is_stopped;

-- The sources of a process with the names that they greet with, as JSON. NULL: it has not said so.
ALTER TABLE nodes ADD COLUMN sources text;
-- Transport security: MTA-STS policies (RFC 8461) of domains of recipients, which all workspaces share.
CREATE TABLE sts_policies (
    domain text COLLATE "C" PRIMARY KEY,
    expires_at bigint NOT NULL,
    doc text NOT NULL
);
CREATE INDEX sts_policies_by_expiry ON sts_policies (expires_at);
-- == Reports about sending domains ==

-- The address of reports names a domain, not a workspace.
CREATE INDEX sending_domains_by_id ON sending_domains (id);

-- Reports that arrived, verified as the reporter's or not, so that each counts once. `purpose` is 0 for DMARC, 1 for TLS;
-- `day` counts from 1970-01-01 and is the one on which the period of the report begins.
CREATE TABLE domain_reports (
    workspace uuid NOT NULL,
    domain uuid NOT NULL,
    key uuid NOT NULL,
    purpose bigint NOT NULL,
    day bigint NOT NULL,
    reporter text COLLATE "C" NOT NULL,
    verified boolean NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (workspace, domain, key)
);
CREATE INDEX domain_reports_by_domain ON domain_reports (workspace, domain, day);
CREATE INDEX domain_reports_by_day ON domain_reports (day);

-- Messages by day, reporter, source and result of DMARC, which is a set of bits.
CREATE TABLE dmarc_rows (
    workspace uuid NOT NULL,
    domain uuid NOT NULL,
    day bigint NOT NULL,
    reporter text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    result bigint NOT NULL,
    messages bigint NOT NULL,
    last_seen bigint NOT NULL,
    PRIMARY KEY (workspace, domain, day, reporter, source, result)
);
CREATE INDEX dmarc_rows_by_day ON dmarc_rows (day);

-- TLS sessions by day, reporter, exchanger and result. Ids begin with the time at which the report arrived.
CREATE TABLE tls_rows (
    workspace uuid NOT NULL,
    domain uuid NOT NULL,
    id uuid NOT NULL,
    day bigint NOT NULL,
    reporter text COLLATE "C" NOT NULL,
    mx text NOT NULL,
    result text NOT NULL,
    sessions bigint NOT NULL,
    failures bigint NOT NULL,
    PRIMARY KEY (workspace, domain, id)
);
CREATE INDEX tls_rows_by_day ON tls_rows (day);
