-- == Ends and uses of API keys ==

-- The end of a key that nobody has revoked or replaced, and the time of the next warning before it. Keys that were made
-- before are looked at once, which fills both in.
ALTER TABLE api_keys ADD COLUMN ends_at bigint;
ALTER TABLE api_keys ADD COLUMN warn_at bigint;
UPDATE api_keys SET warn_at = 0 WHERE doc LIKE '%"expires_at":"%';
CREATE INDEX api_keys_by_end ON api_keys (ends_at) WHERE ends_at IS NOT NULL;
CREATE INDEX api_keys_by_warning ON api_keys (warn_at) WHERE warn_at IS NOT NULL;

-- The operations that keys were used for: the first time, and the last one with the address of the caller.
CREATE TABLE api_key_operations (
    id uuid NOT NULL,
    operation text COLLATE "C" NOT NULL,
    first_at bigint NOT NULL,
    used_at bigint NOT NULL,
    ip text COLLATE "C",
    PRIMARY KEY (id, operation)
) WITH (fillfactor = 50);
