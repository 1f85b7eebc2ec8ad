-- Email by site and quarter of an hour: what became of each recipient, and how long deliveries took, by the upper bound in
-- seconds.
CREATE TABLE site_activity (
    workspace BLOB NOT NULL,
    quarter INTEGER NOT NULL,
    site TEXT NOT NULL,
    accepted INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    deferred INTEGER NOT NULL,
    bounced_hard INTEGER NOT NULL,
    bounced_soft INTEGER NOT NULL,
    complaints INTEGER NOT NULL,
    opened_human INTEGER NOT NULL,
    over_tls INTEGER NOT NULL,
    within_1 INTEGER NOT NULL,
    within_2 INTEGER NOT NULL,
    within_5 INTEGER NOT NULL,
    within_10 INTEGER NOT NULL,
    within_30 INTEGER NOT NULL,
    within_60 INTEGER NOT NULL,
    within_300 INTEGER NOT NULL,
    within_900 INTEGER NOT NULL,
    within_3600 INTEGER NOT NULL,
    within_14400 INTEGER NOT NULL,
    within_86400 INTEGER NOT NULL,
    later INTEGER NOT NULL,
    PRIMARY KEY (workspace, quarter, site)
) STRICT, WITHOUT ROWID;
CREATE INDEX site_activity_by_quarter ON site_activity (quarter);
