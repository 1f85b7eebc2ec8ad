-- Campaigns. Rows of which there are many name a campaign by its number.

-- A removed campaign stays until what belongs to it is let go. No number is used again.
CREATE TABLE campaigns (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    removed boolean NOT NULL,
    status bigint NOT NULL,
    doc text NOT NULL
);
CREATE UNIQUE INDEX campaigns_by_id ON campaigns (workspace, id);
CREATE INDEX campaigns_by_status ON campaigns (workspace, status, id) WHERE NOT removed;
-- Scheduled, sending, paused.
CREATE INDEX campaigns_open ON campaigns (n) WHERE NOT removed AND status BETWEEN 1 AND 3;
CREATE INDEX campaigns_removed ON campaigns (n) WHERE removed;

-- Lists (0), segments (1) and templates (2) that open campaigns (kind of holder 0) and active automations (1) need.
CREATE TABLE holds (
    workspace uuid NOT NULL,
    kind smallint NOT NULL,
    id uuid NOT NULL,
    holder_kind smallint NOT NULL,
    holder uuid NOT NULL,
    PRIMARY KEY (workspace, kind, id, holder_kind, holder)
);
CREATE INDEX holds_by_holder ON holds (workspace, holder_kind, holder);

-- Apart from the campaign, so that jobs do not change what people change.
CREATE TABLE campaign_progress (
    campaign bigint PRIMARY KEY,
    revision bigint NOT NULL,
    doc text NOT NULL
) WITH (fillfactor = 80);

-- Messages that have no job yet.
CREATE TABLE campaign_waiting (
    campaign bigint NOT NULL,
    track smallint NOT NULL,
    due_at bigint NOT NULL,
    message uuid NOT NULL,
    PRIMARY KEY (campaign, track, due_at, message)
);

-- Messages of which something was seen, by its bit.
CREATE TABLE campaign_engagements (
    campaign bigint NOT NULL,
    seen smallint NOT NULL,
    message uuid NOT NULL,
    PRIMARY KEY (campaign, seen, message)
);

-- When marketing messages to a contact began: four bytes each, seconds since 1970. `last_at` is the last of them, 0 where
-- there is none; the week it lies in changes seldom, and so is what old rows are found by.
CREATE TABLE contact_sends (
    contact bigint NOT NULL,
    channel smallint NOT NULL,
    revision bigint NOT NULL,
    times bytea NOT NULL,
    last_at bigint NOT NULL,
    week bigint GENERATED ALWAYS AS (last_at / 604800) STORED,
    PRIMARY KEY (contact, channel)
) WITH (fillfactor = 80);
CREATE INDEX contact_sends_by_week ON contact_sends (week);
