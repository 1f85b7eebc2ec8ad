-- A suppression is found by the SHA-256 of its address, as on PostgreSQL: every key is equally short. address_digest() is a
-- function of the program that applies this.
CREATE TABLE suppressions_by_digest (
    workspace BLOB NOT NULL,
    channel INTEGER NOT NULL,
    digest BLOB NOT NULL,
    address TEXT NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    id TEXT GENERATED ALWAYS AS (doc ->> '$.id') VIRTUAL,
    PRIMARY KEY (workspace, channel, digest)
) STRICT, WITHOUT ROWID;
INSERT INTO suppressions_by_digest (workspace, channel, digest, address, revision, doc)
SELECT workspace, channel, address_digest(address), address, revision, doc FROM suppressions ORDER BY 1, 2, 3;
DROP TABLE suppressions;
ALTER TABLE suppressions_by_digest RENAME TO suppressions;
CREATE UNIQUE INDEX suppressions_by_id ON suppressions (workspace, id);
