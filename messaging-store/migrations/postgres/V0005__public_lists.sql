-- == Lists that face their readers ==

ALTER TABLE lists ADD COLUMN is_public boolean NOT NULL DEFAULT false;
ALTER TABLE lists ADD COLUMN is_double boolean NOT NULL DEFAULT false;
ALTER TABLE lists ADD COLUMN description text;
CREATE INDEX lists_public ON lists (workspace_number, id) WHERE is_public;

-- What is recorded of contacts on public lists. `list_members` has those who are confirmed; here are also those who are
-- asked to confirm (0) and those who left (2), each with the proof of how that came about.
CREATE TABLE list_subscriptions (
    list bigint NOT NULL,
    contact bigint NOT NULL,
    revision bigint NOT NULL,
    status bigint NOT NULL,
    since bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (list, contact)
);
CREATE INDEX list_subscriptions_by_contact ON list_subscriptions (contact, list);
CREATE INDEX list_subscriptions_unconfirmed ON list_subscriptions (since) WHERE status = 0;

-- Forms by which readers subscribe.
CREATE TABLE forms (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, id)
);
