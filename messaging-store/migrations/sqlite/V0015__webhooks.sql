CREATE TABLE webhooks (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

-- Since when every attempt at a webhook has failed. No row: the last one went well, or there was none.
CREATE TABLE webhook_failures (
    workspace BLOB NOT NULL,
    webhook BLOB NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (workspace, webhook)
) STRICT, WITHOUT ROWID;

-- The payload is not stored but made of the event and its message at every attempt, so that nothing has to
-- be redacted here. Only tests bring their own.
CREATE TABLE webhook_deliveries (
    id BLOB NOT NULL PRIMARY KEY,
    workspace BLOB NOT NULL,
    webhook BLOB NOT NULL,
    status INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    event BLOB NOT NULL,
    type INTEGER NOT NULL,
    -- Where the event is: its message and its time. NULL: a test.
    message BLOB,
    at INTEGER,
    payload TEXT,
    created_at INTEGER NOT NULL,
    next_attempt_at INTEGER,
    delivered_at INTEGER,
    duration_ms INTEGER,
    response_status INTEGER,
    response_body TEXT,
    error INTEGER,
    replay_of BLOB,
    -- 1: waits to be sent in its order.
    backlog INTEGER NOT NULL,
    -- 1: the receiver never got the event by this delivery, and nobody has replayed it.
    missed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook, id);
-- Few deliveries touch these: one that goes well does not.
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (webhook, status, id) WHERE status >= 2;
CREATE INDEX webhook_deliveries_in_backlog ON webhook_deliveries (webhook, id) WHERE backlog = 1;
CREATE INDEX webhook_deliveries_missed ON webhook_deliveries (webhook, id) WHERE missed = 1;
CREATE INDEX webhook_deliveries_held ON webhook_deliveries (id) WHERE status = 3;

-- The events of a workspace in the order in which they were committed. n grows with the clock, so that it
-- never comes again after old rows have gone.
CREATE TABLE event_log (
    workspace BLOB NOT NULL,
    n INTEGER NOT NULL,
    message BLOB NOT NULL,
    at INTEGER NOT NULL,
    event BLOB NOT NULL,
    PRIMARY KEY (workspace, n)
) STRICT, WITHOUT ROWID;

-- Workspaces whose events somebody asks for, and until when they are logged.
CREATE TABLE event_followers (
    workspace BLOB NOT NULL PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
