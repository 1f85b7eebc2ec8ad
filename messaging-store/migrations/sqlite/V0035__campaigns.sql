-- Campaigns. Rows of which there are many name a campaign by its number.

-- A removed campaign stays until what belongs to it is let go. Numbers are not used again before that.
CREATE TABLE campaigns (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    status INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX campaigns_by_id ON campaigns (workspace, id);
CREATE INDEX campaigns_by_status ON campaigns (workspace, status, id) WHERE removed = 0;
-- Scheduled, sending, paused.
CREATE INDEX campaigns_open ON campaigns (n) WHERE removed = 0 AND status BETWEEN 1 AND 3;
CREATE INDEX campaigns_removed ON campaigns (n) WHERE removed = 1;

-- Lists (0), segments (1) and templates (2) that open campaigns need.
CREATE TABLE campaign_references (
    workspace BLOB NOT NULL,
    kind INTEGER NOT NULL,
    id BLOB NOT NULL,
    campaign INTEGER NOT NULL,
    PRIMARY KEY (workspace, kind, id, campaign)
) STRICT, WITHOUT ROWID;
CREATE INDEX campaign_references_by_campaign ON campaign_references (campaign);

-- Apart from the campaign, so that jobs do not change what people change.
CREATE TABLE campaign_progress (
    campaign INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT;

-- Messages that have no job yet.
CREATE TABLE campaign_waiting (
    campaign INTEGER NOT NULL,
    track INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    message BLOB NOT NULL,
    PRIMARY KEY (campaign, track, due_at, message)
) STRICT, WITHOUT ROWID;

-- Messages of which something was seen, by its bit.
CREATE TABLE campaign_engagements (
    campaign INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    message BLOB NOT NULL,
    PRIMARY KEY (campaign, seen, message)
) STRICT, WITHOUT ROWID;

-- When marketing messages to a contact began: four bytes each, seconds since 1970.
CREATE TABLE contact_sends (
    contact INTEGER NOT NULL,
    channel INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    times BLOB NOT NULL,
    PRIMARY KEY (contact, channel)
) STRICT, WITHOUT ROWID;

ALTER TABLE messages ADD COLUMN variant INTEGER;
ALTER TABLE messages ADD COLUMN hold_reason INTEGER;
ALTER TABLE messages ADD COLUMN hold_until INTEGER;
ALTER TABLE messages ADD COLUMN hold_since INTEGER;
-- Bits; as are the links.
ALTER TABLE messages ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN links INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN skip INTEGER;
ALTER TABLE messages ADD COLUMN sent_at INTEGER;
ALTER TABLE messages ADD COLUMN delivered_at INTEGER;
-- The bad ends: few messages of a campaign, which are asked for by their state.
CREATE INDEX messages_by_campaign_and_status ON messages (workspace, campaign, status, id)
    WHERE campaign IS NOT NULL AND status >= 5;
