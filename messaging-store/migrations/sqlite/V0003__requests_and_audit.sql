-- == Requests of the API ==

-- What was asked of the API and how it was answered. `id` is the request id of the answer, which callers may choose.
CREATE TABLE api_requests (
    workspace BLOB NOT NULL,
    key BLOB NOT NULL,
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    operation TEXT NOT NULL,
    status INTEGER NOT NULL,
    code TEXT,
    duration_ms INTEGER NOT NULL,
    request_bytes INTEGER NOT NULL,
    key_id TEXT,
    user_id TEXT,
    ip TEXT,
    user_agent TEXT,
    idempotency_key TEXT,
    resource_id TEXT,
    PRIMARY KEY (workspace, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX api_requests_by_id ON api_requests (workspace, id);

-- Bodies of some of them, apart from the rows that listings read.
CREATE TABLE api_request_bodies (
    workspace BLOB NOT NULL,
    key BLOB NOT NULL,
    request TEXT,
    response TEXT,
    PRIMARY KEY (workspace, key)
) STRICT, WITHOUT ROWID;

-- == Audit log ==

-- A workspace of sixteen zero bytes is the installation. The ids are texts, because they are of several types.
CREATE TABLE audit_log (
    workspace BLOB NOT NULL,
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor_kind TEXT NOT NULL,
    actor TEXT,
    operation TEXT NOT NULL,
    resource_kind TEXT NOT NULL,
    resource TEXT,
    doc TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (workspace, n)
) STRICT, WITHOUT ROWID;

-- The ends of each chain of rows: the last row, and the last one that was let go, after which the chain begins.
CREATE TABLE audit_chains (
    workspace BLOB NOT NULL PRIMARY KEY,
    n INTEGER NOT NULL,
    hash BLOB NOT NULL,
    anchor_n INTEGER NOT NULL,
    anchor_hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;
