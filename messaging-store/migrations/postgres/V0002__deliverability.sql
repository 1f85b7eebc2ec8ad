-- == IP pools, and sources of mail with their paths ==

-- A pool of the id of zeros instead of a workspace is shared with all of them.
CREATE TABLE ip_pools (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, name)
);
CREATE INDEX ip_pools_by_id ON ip_pools (id);

-- The addresses that a workspace may name in its pools.
CREATE TABLE ip_grants (
    workspace uuid NOT NULL,
    ip text COLLATE "C" NOT NULL,
    granted_at bigint NOT NULL,
    PRIMARY KEY (workspace, ip)
);

-- What is kept of a source, whichever node has the address: an IP address or `default`.
CREATE TABLE sources (
    ip text COLLATE "C" PRIMARY KEY,
    revision bigint NOT NULL,
    doc text NOT NULL
) WITH (fillfactor = 50);

-- What is kept of a path: a source and the site that its mail goes to. `day` counts from 1970-01-01.
CREATE TABLE paths (
    ip text COLLATE "C" NOT NULL,
    site text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    sent_today bigint NOT NULL,
    day bigint NOT NULL,
    is_stopped boolean NOT NULL,
    updated_at bigint NOT NULL,
    state text NOT NULL,
    PRIMARY KEY (ip, site)
) WITH (fillfactor = 50);
CREATE INDEX paths_by_age ON paths (updated_at) WHERE NOT is_stopped;

-- The sources of a process with the names that they greet with, as JSON. NULL: it has not said so.
ALTER TABLE nodes ADD COLUMN sources text;
