-- A removed template stays, with its versions, until no message can need them.
CREATE TABLE templates (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    channel INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    version INTEGER NOT NULL,
    removed_at INTEGER,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX templates_removed ON templates (removed_at) WHERE removed_at IS NOT NULL;

-- Versions never change. The head is the document without its bodies and stands before it, so that a
-- listing reads no long column.
CREATE TABLE template_versions (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    template BLOB NOT NULL,
    version INTEGER NOT NULL,
    head TEXT NOT NULL,
    doc TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX template_versions_by_number ON template_versions (workspace, template, version);
