-- What the messages of a campaign count for, a row for each variant that has any. Each number is the sum over the
-- variant's messages, but for opens, clicks and machine_opens, which count events.
CREATE TABLE campaign_counts (
    campaign INTEGER NOT NULL,
    -- The place of the variant; 0 in a campaign that compares none.
    variant INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    sending INTEGER NOT NULL,
    deferred INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    bounces INTEGER NOT NULL,
    complaints INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    skipped_suppressed INTEGER NOT NULL,
    skipped_no_consent INTEGER NOT NULL,
    skipped_frequency_cap INTEGER NOT NULL,
    unique_opens INTEGER NOT NULL,
    unique_clicks INTEGER NOT NULL,
    unsubscribes INTEGER NOT NULL,
    unique_machine_opens INTEGER NOT NULL,
    opens INTEGER NOT NULL,
    clicks INTEGER NOT NULL,
    machine_opens INTEGER NOT NULL,
    PRIMARY KEY (campaign, variant)
) STRICT, WITHOUT ROWID;

-- What was counted in each quarter of an hour, counted from 1970, of all messages of a workspace by channel and source:
-- 0 requests, 1 campaigns, 2 automations.
CREATE TABLE activity (
    workspace BLOB NOT NULL,
    quarter INTEGER NOT NULL,
    channel INTEGER NOT NULL,
    source INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    bounces INTEGER NOT NULL,
    complaints INTEGER NOT NULL,
    unique_opens INTEGER NOT NULL,
    unique_clicks INTEGER NOT NULL,
    unsubscribes INTEGER NOT NULL,
    opens INTEGER NOT NULL,
    clicks INTEGER NOT NULL,
    PRIMARY KEY (workspace, quarter, channel, source)
) STRICT, WITHOUT ROWID;

-- The same of each campaign.
CREATE TABLE campaign_activity (
    campaign INTEGER NOT NULL,
    quarter INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    bounces INTEGER NOT NULL,
    complaints INTEGER NOT NULL,
    unique_opens INTEGER NOT NULL,
    unique_clicks INTEGER NOT NULL,
    unsubscribes INTEGER NOT NULL,
    opens INTEGER NOT NULL,
    clicks INTEGER NOT NULL,
    PRIMARY KEY (campaign, quarter)
) STRICT, WITHOUT ROWID;

-- How often each link of a campaign was followed, by the link's number in the template of its variant.
CREATE TABLE campaign_links (
    campaign INTEGER NOT NULL,
    variant INTEGER NOT NULL,
    link INTEGER NOT NULL,
    url TEXT NOT NULL,
    clicks INTEGER NOT NULL,
    unique_clicks INTEGER NOT NULL,
    PRIMARY KEY (campaign, variant, link)
) STRICT, WITHOUT ROWID;
