-- Blobs that were put, that no commit had named for long, and that none can name any more. Ids begin with their time.
CREATE TABLE abandoned_blobs (
    blob BLOB NOT NULL,
    workspace BLOB NOT NULL,
    PRIMARY KEY (blob, workspace)
) STRICT, WITHOUT ROWID;
