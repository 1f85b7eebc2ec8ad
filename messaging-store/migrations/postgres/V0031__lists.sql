-- Lists of contacts. A removed list stays until its members are let go.
CREATE TABLE lists (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_number bigint NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    removed boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    name text NOT NULL
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX lists_by_id ON lists (workspace_number, id);
CREATE INDEX lists_removed ON lists (n) WHERE removed;

-- How many members a list has is the sum over its shards.
CREATE TABLE list_counts (
    list bigint NOT NULL,
    shard smallint NOT NULL,
    members bigint NOT NULL,
    PRIMARY KEY (list, shard)
) WITH (fillfactor = 50);

CREATE TABLE list_members (
    list bigint NOT NULL,
    contact bigint NOT NULL,
    PRIMARY KEY (list, contact)
);
CREATE INDEX list_members_by_contact ON list_members (contact, list);
