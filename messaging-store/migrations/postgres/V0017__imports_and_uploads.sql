CREATE TABLE imports (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, id)
) WITH (fillfactor = 80);

-- Which rows were refused: the lines of the report, a slice of rows at a time. By import first, because ids begin with
-- their time and the oldest are let go.
CREATE TABLE import_errors (
    import uuid NOT NULL,
    first_row bigint NOT NULL,
    workspace uuid NOT NULL,
    lines text NOT NULL,
    PRIMARY KEY (import, first_row)
);

-- Uploaded files until they are read: few at a time. Only those that are kept are read.
CREATE TABLE uploads (
    import uuid NOT NULL,
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    kept boolean NOT NULL,
    size bigint NOT NULL,
    PRIMARY KEY (import, workspace, id)
) WITH (fillfactor = 80);

-- Their bytes, from the place `at` on. Not compressed, so that a part of a piece is read without the rest of it.
CREATE TABLE upload_pieces (
    import uuid NOT NULL,
    workspace uuid NOT NULL,
    upload uuid NOT NULL,
    at bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (import, workspace, upload, at)
);
ALTER TABLE upload_pieces ALTER COLUMN bytes SET STORAGE EXTERNAL;
