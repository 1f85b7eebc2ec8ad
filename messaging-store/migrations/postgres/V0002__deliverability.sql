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
