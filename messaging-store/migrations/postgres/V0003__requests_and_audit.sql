-- == Requests of the API ==

-- What was asked of the API and how it was answered. `id` is the request id of the answer, which callers may choose.
CREATE TABLE api_requests (
    workspace uuid NOT NULL,
    key uuid NOT NULL,
    id text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    method text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    status bigint NOT NULL,
    code text COLLATE "C",
    duration_ms bigint NOT NULL,
    request_bytes bigint NOT NULL,
    key_id text COLLATE "C",
    user_id text COLLATE "C",
    ip text COLLATE "C",
    user_agent text,
    idempotency_key text COLLATE "C",
    resource_id text COLLATE "C",
    PRIMARY KEY (workspace, key)
);
CREATE INDEX api_requests_by_id ON api_requests (workspace, id);

-- Bodies of some of them, apart from the rows that listings read.
CREATE TABLE api_request_bodies (
    workspace uuid NOT NULL,
    key uuid NOT NULL,
    request text,
    response text,
    PRIMARY KEY (workspace, key)
);

-- == Audit log ==

-- A workspace of the id of zeros is the installation. The ids are texts, because they are of several types.
CREATE TABLE audit_log (
    workspace uuid NOT NULL,
    n bigint NOT NULL,
    at bigint NOT NULL,
    actor_kind text COLLATE "C" NOT NULL,
    actor text COLLATE "C",
    operation text COLLATE "C" NOT NULL,
    resource_kind text COLLATE "C" NOT NULL,
    resource text COLLATE "C",
    doc text NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (workspace, n)
);

-- The ends of each chain of rows: the last row, and the last one that was let go, after which the chain begins.
CREATE TABLE audit_chains (
    workspace uuid PRIMARY KEY,
    n bigint NOT NULL,
    hash bytea NOT NULL,
    anchor_n bigint NOT NULL,
    anchor_hash bytea NOT NULL
) WITH (fillfactor = 50);
