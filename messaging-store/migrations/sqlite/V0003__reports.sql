-- What comes back by mail names a domain, not a workspace.
CREATE INDEX sending_domains_by_name_alone ON sending_domains (name);

-- Final soft bounces in a row. Nearly empty: a delivery removes the row.
CREATE TABLE soft_bounces (
    workspace BLOB NOT NULL,
    channel INTEGER NOT NULL,
    address TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (workspace, channel, address)
) STRICT, WITHOUT ROWID;
