-- What was put aside because the database refused its outcome. Ids rise with time.
CREATE TABLE quarantined (
    id uuid PRIMARY KEY,
    doc text NOT NULL
);

-- An address may have more bytes than an index takes: 4,096 characters. So it is found by its SHA-256.
CREATE FUNCTION address_digest(address text) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT sha256(convert_to(address, 'UTF8')) $$;
ALTER TABLE suppressions ADD COLUMN digest bytea NOT NULL GENERATED ALWAYS AS (address_digest(address)) STORED;
ALTER TABLE suppressions DROP CONSTRAINT suppressions_pkey;
ALTER TABLE suppressions ADD PRIMARY KEY (workspace, channel, digest);
-- For programs that look addresses up by their text; it goes away a release later.
CREATE INDEX suppressions_by_address ON suppressions USING hash (address);
