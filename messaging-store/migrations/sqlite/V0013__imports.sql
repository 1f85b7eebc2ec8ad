-- Imports of contacts. The uploaded files are beside the database.

CREATE TABLE imports (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

-- Which rows were refused: the lines of the report, a slice of rows at a time. By import first, because
-- ids begin with their time and the oldest are let go.
CREATE TABLE import_errors (
    import BLOB NOT NULL,
    first_row INTEGER NOT NULL,
    workspace BLOB NOT NULL,
    lines TEXT NOT NULL,
    PRIMARY KEY (import, first_row)
) STRICT, WITHOUT ROWID;
