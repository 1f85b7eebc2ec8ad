-- Transport security: MTA-STS policies (RFC 8461) of domains of recipients, which all workspaces share.
CREATE TABLE sts_policies (
    domain TEXT NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sts_policies_by_expiry ON sts_policies (expires_at);
