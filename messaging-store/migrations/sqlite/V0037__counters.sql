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

-- How many product events of a name happened in each quarter of an hour.
CREATE TABLE product_event_activity (
    name INTEGER NOT NULL,
    quarter INTEGER NOT NULL,
    events INTEGER NOT NULL,
    PRIMARY KEY (name, quarter)
) STRICT, WITHOUT ROWID;
-- Divisions are to go downwards, also before 1970.
INSERT INTO product_event_activity (name, quarter, events)
    SELECT name, (at - (at < 0) * 899999) / 900000 AS quarter, count(*) FROM product_events GROUP BY name, quarter;

-- What of messages from before counts, from their events: sent, delivered or bounced (1, 2, 4); opened (6), followed (7),
-- complained of (5), unsubscribed by (8), by people or machines.
UPDATE messages SET (sent_at, delivered_at, seen) = (
    SELECT
        min(CASE WHEN kind IN (1, 2, 4) THEN at END),
        min(CASE WHEN kind = 2 THEN at END),
        ifnull(
            max(kind = 6 AND meta ->> '$.machine' IS NOT 1)
            + 2 * max(kind = 7 AND meta ->> '$.machine' IS NOT 1)
            + 4 * max(kind = 5)
            + 8 * max(kind = 8)
            + 16 * max(kind = 6 AND meta ->> '$.machine' IS 1),
            0)
    FROM message_events WHERE workspace = messages.workspace AND message = messages.id
) WHERE status IN (2, 3, 5, 6, 7);
UPDATE messages SET
    sent_at = ifnull(sent_at, updated_at),
    delivered_at = CASE WHEN status IN (3, 6) THEN ifnull(delivered_at, updated_at) ELSE delivered_at END
    WHERE status IN (2, 3, 5, 6);

WITH
known (workspace, id, status, channel, source, updated_at, sent_at, delivered_at, seen) AS (
    SELECT workspace, id, status, channel, CASE WHEN campaign IS NOT NULL THEN 1 WHEN automation IS NOT NULL THEN 2 ELSE 0 END,
        updated_at, sent_at, delivered_at, seen
    FROM messages WHERE status IN (2, 3, 5, 6, 7)
),
-- The event that made a message what it is, by kind, and whether it is the first of people's.
happened (workspace, id, channel, source, kind, at, is_machine, place) AS (
    SELECT known.workspace, known.id, channel, source, kind, at, meta ->> '$.machine' IS 1,
        row_number() OVER (
            PARTITION BY e.workspace, e.message, e.kind, meta ->> '$.machine' IS 1 ORDER BY e.at, e.id)
    FROM known JOIN message_events e ON e.workspace = known.workspace AND e.message = known.id AND e.kind >= 4
),
counted (workspace, at, channel, source, sent, delivered, bounces, complaints, unique_opens, unique_clicks, unsubscribes, opens, clicks) AS (
    SELECT workspace, sent_at, channel, source, 1, 0, 0, 0, 0, 0, 0, 0, 0 FROM known WHERE status IN (2, 3, 5, 6)
    UNION ALL SELECT workspace, delivered_at, channel, source, 0, 1, 0, 0, 0, 0, 0, 0, 0 FROM known WHERE status IN (3, 6)
    UNION ALL SELECT workspace,
            ifnull((SELECT min(at) FROM message_events e
                WHERE e.workspace = known.workspace AND e.message = known.id AND e.kind = 4), updated_at),
            channel, source, 0, 0, 1, 0, 0, 0, 0, 0, 0 FROM known WHERE status = 5
    UNION ALL SELECT workspace,
            ifnull((SELECT min(at) FROM message_events e
                WHERE e.workspace = known.workspace AND e.message = known.id AND e.kind = 5), updated_at),
            channel, source, 0, 0, 0, 1, 0, 0, 0, 0, 0 FROM known WHERE status = 6 OR seen & 4
    UNION ALL SELECT workspace, at, channel, source, 0, 0, 0, 0,
            kind = 6 AND place = 1, kind = 7 AND place = 1, kind = 8 AND place = 1, kind = 6, kind = 7
        FROM happened WHERE kind IN (6, 7, 8) AND NOT is_machine
)
INSERT INTO activity (workspace, quarter, channel, source, sent, delivered, bounces, complaints, unique_opens,
        unique_clicks, unsubscribes, opens, clicks)
    SELECT workspace, at / 900000 AS quarter, channel, source, sum(sent), sum(delivered), sum(bounces), sum(complaints),
        sum(unique_opens), sum(unique_clicks), sum(unsubscribes), sum(opens), sum(clicks)
    FROM counted GROUP BY workspace, quarter, channel, source;
