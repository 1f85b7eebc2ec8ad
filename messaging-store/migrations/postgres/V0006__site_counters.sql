-- Email by site and quarter of an hour: what became of each recipient, and how long deliveries took, by the upper bound in
-- seconds.
CREATE TABLE site_activity (
    workspace uuid NOT NULL,
    quarter integer NOT NULL,
    site text COLLATE "C" NOT NULL,
    shard smallint NOT NULL,
    accepted bigint NOT NULL,
    delivered bigint NOT NULL,
    deferred bigint NOT NULL,
    bounced_hard bigint NOT NULL,
    bounced_soft bigint NOT NULL,
    complaints bigint NOT NULL,
    opened_human bigint NOT NULL,
    over_tls bigint NOT NULL,
    within_1 bigint NOT NULL,
    within_2 bigint NOT NULL,
    within_5 bigint NOT NULL,
    within_10 bigint NOT NULL,
    within_30 bigint NOT NULL,
    within_60 bigint NOT NULL,
    within_300 bigint NOT NULL,
    within_900 bigint NOT NULL,
    within_3600 bigint NOT NULL,
    within_14400 bigint NOT NULL,
    within_86400 bigint NOT NULL,
    later bigint NOT NULL,
    PRIMARY KEY (workspace, quarter, site, shard)
) WITH (fillfactor = 80);
CREATE INDEX site_activity_by_quarter ON site_activity (quarter);
