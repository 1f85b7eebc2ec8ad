-- The id stands in the document; as text it sorts like its bytes.
ALTER TABLE suppressions ADD COLUMN id TEXT GENERATED ALWAYS AS (doc ->> '$.id') VIRTUAL;
CREATE UNIQUE INDEX suppressions_by_id ON suppressions (workspace, id);

-- Targets of redirected links. The key is the beginning of the SHA-256 digest of the URL.
CREATE TABLE urls (
    workspace BLOB NOT NULL,
    key BLOB NOT NULL,
    url TEXT NOT NULL,
    PRIMARY KEY (workspace, key)
) STRICT, WITHOUT ROWID;
