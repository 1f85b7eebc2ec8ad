-- == Lists that face their readers ==

ALTER TABLE lists ADD COLUMN is_public INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lists ADD COLUMN is_double INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lists ADD COLUMN description TEXT;
CREATE INDEX lists_public ON lists (workspace_number, id) WHERE is_public;

-- What is recorded of contacts on public lists. `list_members` has those who are confirmed; here are also those who are
-- asked to confirm (0) and those who left (2), each with the proof of how that came about.
CREATE TABLE list_subscriptions (
    list INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    status INTEGER NOT NULL,
    since INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (list, contact)
) STRICT, WITHOUT ROWID;
CREATE INDEX list_subscriptions_by_contact ON list_subscriptions (contact, list);
CREATE INDEX list_subscriptions_unconfirmed ON list_subscriptions (since) WHERE status = 0;

-- Forms by which readers subscribe.
CREATE TABLE forms (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
