-- Transport security: MTA-STS policies (RFC 8461) of domains of recipients, which all workspaces share.
CREATE TABLE sts_policies (
    domain text COLLATE "C" PRIMARY KEY,
    expires_at bigint NOT NULL,
    doc text NOT NULL
);
CREATE INDEX sts_policies_by_expiry ON sts_policies (expires_at);
