-- The key comes first in the index so that keys that count upwards stay on one page.
CREATE TABLE replies (
    key text COLLATE "C" NOT NULL,
    credential uuid NOT NULL,
    route text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    fingerprint bytea NOT NULL,
    status bigint NOT NULL,
    content_type text NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (key, credential, route)
);
CREATE INDEX replies_by_end ON replies (expires_at);

-- Targets of redirected links. The key is the beginning of the SHA-256 digest of the URL.
CREATE TABLE urls (
    workspace uuid NOT NULL,
    key uuid NOT NULL,
    url text NOT NULL,
    PRIMARY KEY (workspace, key)
);
