-- Providers' names for messages, by which their receipts name them. `provider` and `name` are as the provider writes
-- them; rows older than 30 days go when new ones come.
CREATE TABLE provider_links (
    workspace BLOB NOT NULL,
    channel INTEGER NOT NULL,
    provider TEXT NOT NULL,
    name TEXT NOT NULL,
    message BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (workspace, channel, provider, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX provider_links_by_age ON provider_links (at);
