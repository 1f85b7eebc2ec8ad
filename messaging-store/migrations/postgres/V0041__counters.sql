-- Counters. Each is the sum over its shards: a connection adds to its own, so that no two wait for each other.

-- What the messages of a campaign count for, by variant. Each number is the sum over the variant's messages, but for
-- opens, clicks and machine_opens, which count events.
CREATE TABLE campaign_counts (
    campaign bigint NOT NULL,
    -- The place of the variant; 0 in a campaign that compares none.
    variant smallint NOT NULL,
    shard smallint NOT NULL,
    waiting bigint NOT NULL,
    sending bigint NOT NULL,
    deferred bigint NOT NULL,
    sent bigint NOT NULL,
    delivered bigint NOT NULL,
    bounces bigint NOT NULL,
    complaints bigint NOT NULL,
    failed bigint NOT NULL,
    cancelled bigint NOT NULL,
    skipped_suppressed bigint NOT NULL,
    skipped_no_consent bigint NOT NULL,
    skipped_frequency_cap bigint NOT NULL,
    unique_opens bigint NOT NULL,
    unique_clicks bigint NOT NULL,
    unsubscribes bigint NOT NULL,
    unique_machine_opens bigint NOT NULL,
    opens bigint NOT NULL,
    clicks bigint NOT NULL,
    machine_opens bigint NOT NULL,
    PRIMARY KEY (campaign, variant, shard)
) WITH (fillfactor = 50);

-- What was counted in each quarter of an hour, counted from 1970, of all messages of a workspace by channel and source:
-- 0 requests, 1 campaigns, 2 automations.
CREATE TABLE activity (
    workspace uuid NOT NULL,
    quarter integer NOT NULL,
    channel smallint NOT NULL,
    source smallint NOT NULL,
    shard smallint NOT NULL,
    sent bigint NOT NULL,
    delivered bigint NOT NULL,
    bounces bigint NOT NULL,
    complaints bigint NOT NULL,
    unique_opens bigint NOT NULL,
    unique_clicks bigint NOT NULL,
    unsubscribes bigint NOT NULL,
    opens bigint NOT NULL,
    clicks bigint NOT NULL,
    PRIMARY KEY (workspace, quarter, channel, source, shard)
) WITH (fillfactor = 80);

-- The same of each campaign.
CREATE TABLE campaign_activity (
    campaign bigint NOT NULL,
    quarter integer NOT NULL,
    shard smallint NOT NULL,
    sent bigint NOT NULL,
    delivered bigint NOT NULL,
    bounces bigint NOT NULL,
    complaints bigint NOT NULL,
    unique_opens bigint NOT NULL,
    unique_clicks bigint NOT NULL,
    unsubscribes bigint NOT NULL,
    opens bigint NOT NULL,
    clicks bigint NOT NULL,
    PRIMARY KEY (campaign, quarter, shard)
) WITH (fillfactor = 80);

-- The links of a campaign that were followed, by the link's number in the template of its variant.
CREATE TABLE campaign_links (
    campaign bigint NOT NULL,
    variant smallint NOT NULL,
    link smallint NOT NULL,
    url text NOT NULL,
    PRIMARY KEY (campaign, variant, link)
);
-- How often.
CREATE TABLE campaign_link_counts (
    campaign bigint NOT NULL,
    variant smallint NOT NULL,
    link smallint NOT NULL,
    shard smallint NOT NULL,
    clicks bigint NOT NULL,
    unique_clicks bigint NOT NULL,
    PRIMARY KEY (campaign, variant, link, shard)
) WITH (fillfactor = 50);

-- How many product events of a name happened in each quarter of an hour.
CREATE TABLE product_event_activity (
    name bigint NOT NULL,
    quarter integer NOT NULL,
    shard smallint NOT NULL,
    events bigint NOT NULL,
    PRIMARY KEY (name, quarter, shard)
) WITH (fillfactor = 80);

-- How many runs of an automation are in each state, without refused entries.
CREATE TABLE automation_run_counts (
    automation bigint NOT NULL,
    status bigint NOT NULL,
    shard smallint NOT NULL,
    runs bigint NOT NULL,
    PRIMARY KEY (automation, status, shard)
) WITH (fillfactor = 50);

-- How many rows of runs name a version.
CREATE TABLE automation_version_counts (
    automation bigint NOT NULL,
    version bigint NOT NULL,
    shard smallint NOT NULL,
    runs bigint NOT NULL,
    PRIMARY KEY (automation, version, shard)
) WITH (fillfactor = 50);

-- How often a node was reached, and how many open runs stand at it.
CREATE TABLE automation_node_counts (
    node bigint NOT NULL,
    shard smallint NOT NULL,
    entered bigint NOT NULL,
    waiting bigint NOT NULL,
    PRIMARY KEY (node, shard)
) WITH (fillfactor = 50);

-- How often a branch of a node was taken.
CREATE TABLE automation_branches (
    node bigint NOT NULL,
    branch text COLLATE "C" NOT NULL,
    shard smallint NOT NULL,
    taken bigint NOT NULL,
    PRIMARY KEY (node, branch, shard)
) WITH (fillfactor = 50);
