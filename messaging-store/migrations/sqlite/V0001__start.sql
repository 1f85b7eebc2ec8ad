-- Ids are the 16 bytes of a ULID, times are milliseconds since 1970, docs are the record as JSON.
-- Enumerations are stored as their position in the ALL list of their type.

CREATE TABLE users (
    id BLOB NOT NULL PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    token BLOB NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE workspaces (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE members (
    workspace BLOB NOT NULL,
    user BLOB NOT NULL,
    owner INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, user)
) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_user ON members (user, workspace);

CREATE TABLE api_keys (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    prefix TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX api_keys_by_id ON api_keys (id);

-- Apart from the key, so that noting a use does not rewrite its document.
CREATE TABLE api_key_uses (
    id BLOB NOT NULL PRIMARY KEY,
    used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sending_domains (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sending_domains_by_name ON sending_domains (workspace, name);

CREATE TABLE channels (
    workspace BLOB NOT NULL,
    channel INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, channel)
) STRICT, WITHOUT ROWID;

CREATE TABLE suppressions (
    workspace BLOB NOT NULL,
    channel INTEGER NOT NULL,
    address TEXT NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, channel, address)
) STRICT, WITHOUT ROWID;

-- The narrow row that changes. What was asked for stands in message_contents and never changes.
CREATE TABLE messages (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    status INTEGER NOT NULL,
    channel INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    content INTEGER,
    recipient TEXT NOT NULL,
    sender TEXT,
    contact BLOB,
    campaign BLOB,
    automation BLOB,
    template BLOB,
    tags TEXT,
    metadata TEXT,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_by_contact ON messages (workspace, contact, id) WHERE contact IS NOT NULL;
CREATE INDEX messages_by_campaign ON messages (workspace, campaign, id) WHERE campaign IS NOT NULL;
CREATE INDEX messages_by_automation ON messages (workspace, automation, id) WHERE automation IS NOT NULL;
-- Deferred and the bad ends only: a message that goes well never touches this index.
CREATE INDEX messages_by_status ON messages (workspace, status, id) WHERE status >= 4;

-- In the order of acceptance, so that accepting appends and forgetting removes from the front.
CREATE TABLE message_contents (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    message BLOB NOT NULL,
    request BLOB NOT NULL
) STRICT;

CREATE TABLE message_events (
    workspace BLOB NOT NULL,
    message BLOB NOT NULL,
    at INTEGER NOT NULL,
    id BLOB NOT NULL,
    kind INTEGER NOT NULL,
    meta TEXT,
    PRIMARY KEY (workspace, message, at, id)
) STRICT, WITHOUT ROWID;

-- A source of NULL is in a file. Rows of a few KiB: by number, because a table ordered by its key would
-- put all but a quarter page of each on pages of its own.
CREATE TABLE captures (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    message BLOB NOT NULL,
    channel INTEGER NOT NULL,
    captured_at INTEGER NOT NULL,
    recipient TEXT NOT NULL,
    sender TEXT,
    subject TEXT,
    source BLOB
) STRICT;
CREATE UNIQUE INDEX captures_by_message ON captures (workspace, message);

CREATE TABLE jobs (
    lane TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    id BLOB NOT NULL,
    kind TEXT NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (lane, due_at, id)
) STRICT, WITHOUT ROWID;

-- One row for every lane that has jobs: when to look at it next. Lanes that are served again and
-- again in the same millisecond take turns.
CREATE TABLE lanes (
    lane TEXT NOT NULL PRIMARY KEY,
    next_at INTEGER NOT NULL,
    turn INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX lanes_by_time ON lanes (next_at, turn, lane);

-- In the order of arrival, which is nearly that of expiry: the sweep takes from the front. The key
-- comes first in the index so that keys that count upwards stay on one page.
CREATE TABLE replies (
    n INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    credential BLOB NOT NULL,
    route TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    fingerprint BLOB NOT NULL,
    status INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX replies_by_key ON replies (key, credential, route);
