-- Providers' names for messages, by which their receipts name them. `provider` and `name` are as the provider writes
-- them; rows older than 30 days go when new ones come.
CREATE TABLE provider_links (
    workspace uuid NOT NULL,
    message uuid NOT NULL,
    at bigint NOT NULL,
    channel bigint NOT NULL,
    provider text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, channel, provider, name)
);
CREATE INDEX provider_links_by_age ON provider_links (at);
CREATE INDEX provider_links_by_message ON provider_links (message);

-- What came in over a channel and has had its effect: digests of the providers' names for it, so that what is repeated
-- changes nothing twice. Kept for 8 days.
CREATE TABLE inbound_notes (
    workspace uuid NOT NULL,
    channel bigint NOT NULL,
    key uuid NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (workspace, channel, key)
);
CREATE INDEX inbound_notes_by_time ON inbound_notes (at);

-- Final soft bounces in a row. Nearly empty: a delivery removes the row. By the SHA-256 digest of the address: those of
-- push notifications are longer than keys of an index may be.
CREATE TABLE soft_bounces (
    workspace uuid NOT NULL,
    channel bigint NOT NULL,
    digest bytea NOT NULL,
    address text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (workspace, channel, digest)
) WITH (fillfactor = 80);
