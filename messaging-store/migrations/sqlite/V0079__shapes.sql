ALTER TABLE api_keys ADD COLUMN secret BLOB NOT NULL DEFAULT x'';
DROP INDEX api_keys_by_secret;
CREATE INDEX api_keys_by_secret ON api_keys (secret);

DROP TABLE soft_bounces;
CREATE TABLE soft_bounces (
    workspace BLOB NOT NULL,
    channel INTEGER NOT NULL,
    digest BLOB NOT NULL,
    address TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (workspace, channel, digest)
) STRICT, WITHOUT ROWID;

ALTER TABLE sessions RENAME COLUMN user TO user_id;
ALTER TABLE members RENAME COLUMN user TO user_id;

ALTER TABLE message_attempts ADD COLUMN provider TEXT;

DROP INDEX campaigns_by_status;
DROP INDEX campaigns_open;
DROP INDEX campaigns_removed;
CREATE INDEX campaigns_by_status ON campaigns (workspace, status, id) WHERE NOT removed;
-- Scheduled, sending, paused.
CREATE INDEX campaigns_open ON campaigns (n) WHERE NOT removed AND status BETWEEN 1 AND 3;
CREATE INDEX campaigns_removed ON campaigns (n) WHERE removed;

-- The last of the times, in seconds.
ALTER TABLE contact_sends ADD COLUMN last_at INTEGER NOT NULL DEFAULT 0;

DROP TABLE holds;
CREATE TABLE holds (
    workspace BLOB NOT NULL,
    kind INTEGER NOT NULL,
    id BLOB NOT NULL,
    holder_kind INTEGER NOT NULL,
    holder BLOB NOT NULL,
    PRIMARY KEY (workspace, kind, id, holder_kind, holder)
) STRICT, WITHOUT ROWID;
CREATE INDEX holds_by_holder ON holds (workspace, holder_kind, holder);

ALTER TABLE webhooks ADD COLUMN status TEXT NOT NULL DEFAULT '';

DROP INDEX lists_removed;
CREATE INDEX lists_removed ON lists (n) WHERE removed;
