-- == IP pools, and sources of mail with their paths ==

-- A pool of sixteen zero bytes instead of a workspace is shared with all of them.
CREATE TABLE ip_pools (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX ip_pools_by_name ON ip_pools (workspace, name);
CREATE INDEX ip_pools_by_id ON ip_pools (id);

-- The addresses that a workspace may name in its pools.
CREATE TABLE ip_grants (
    workspace BLOB NOT NULL,
    ip TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    PRIMARY KEY (workspace, ip)
) STRICT, WITHOUT ROWID;

-- What is kept of a source, whichever node has the address: an IP address or `default`.
CREATE TABLE sources (
    ip TEXT NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What is kept of a path: a source and the site that its mail goes to. `day` counts from 1970-01-01.
CREATE TABLE paths (
    ip TEXT NOT NULL,
    site TEXT NOT NULL,
    revision INTEGER NOT NULL,
    sent_today INTEGER NOT NULL,
    day INTEGER NOT NULL,
    is_stopped INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (ip, site)
) STRICT, WITHOUT ROWID;
CREATE INDEX paths_by_age ON paths (updated_at) WHERE is_stopped = 0;
