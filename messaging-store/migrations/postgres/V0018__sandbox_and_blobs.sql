CREATE TABLE captures (
    workspace uuid NOT NULL,
    message uuid NOT NULL,
    channel bigint NOT NULL,
    captured_at bigint NOT NULL,
    recipient text NOT NULL,
    sender text,
    subject text,
    source bytea NOT NULL,
    PRIMARY KEY (workspace, message)
);
ALTER TABLE captures ALTER COLUMN source SET STORAGE EXTERNAL;

-- Attachments: whether a commit has kept them, and the message of which they are. By id first, which begins with its
-- time.
CREATE TABLE blobs (
    id uuid NOT NULL,
    workspace uuid NOT NULL,
    message uuid NOT NULL,
    pending boolean NOT NULL,
    size bigint NOT NULL,
    PRIMARY KEY (id, workspace)
) WITH (fillfactor = 80);
CREATE INDEX blobs_pending ON blobs (id, workspace) WHERE pending;

-- Their bytes, from the place `at` on.
CREATE TABLE blob_pieces (
    blob uuid NOT NULL,
    workspace uuid NOT NULL,
    at bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (blob, workspace, at)
);
ALTER TABLE blob_pieces ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Blobs that were put, that no commit had named for long, and that none can name any more. Ids begin with their time.
CREATE TABLE abandoned_blobs (
    blob uuid NOT NULL,
    workspace uuid NOT NULL,
    PRIMARY KEY (blob, workspace)
);
