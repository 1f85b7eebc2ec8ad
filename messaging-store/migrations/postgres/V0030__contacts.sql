-- Contacts and their tags. A contact's number is that of its workspace times 2^40 plus the next of one sequence, so
-- that the contacts of a workspace stand together, nearly in the order of their creation. NULL stands for empty tags
-- and attributes.
CREATE TABLE contacts (
    n bigint PRIMARY KEY,
    workspace_number bigint NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    marketing_email boolean,
    sms boolean,
    external_id text COLLATE "C",
    email text COLLATE "C",
    phone text COLLATE "C",
    locale text COLLATE "C",
    timezone text COLLATE "C",
    tags text,
    attributes text
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX contacts_by_id ON contacts (workspace_number, id);
CREATE UNIQUE INDEX contacts_by_external_id ON contacts (workspace_number, external_id) WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX contacts_by_email ON contacts (workspace_number, email) WHERE email IS NOT NULL;
CREATE UNIQUE INDEX contacts_by_phone ON contacts (workspace_number, phone) WHERE phone IS NOT NULL;

-- How many contacts a workspace has is the sum over its shards: a connection adds to its own, so that no two wait for
-- each other.
CREATE TABLE contact_counts (
    workspace_number bigint NOT NULL,
    shard smallint NOT NULL,
    contacts bigint NOT NULL,
    PRIMARY KEY (workspace_number, shard)
) WITH (fillfactor = 50);

-- The tags that contacts have, and who has them. A contact's own tags also stand in its row.
CREATE TABLE tags (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_number bigint NOT NULL,
    tag text COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX tags_by_text ON tags (workspace_number, tag);

CREATE TABLE tag_members (
    tag bigint NOT NULL,
    contact bigint NOT NULL,
    PRIMARY KEY (tag, contact)
);

-- Removes those of some tags that nobody has any more. Whoever gives a tag to somebody holds its row; so a tag that
-- seems to be nobody's is looked at again once nobody holds it. Members that others are removing do not count at the
-- first look: the last one to commit finds that there are none.
CREATE FUNCTION forget_tags(of_workspace bigint, texts text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    candidate bigint;
BEGIN
    FOR candidate IN SELECT n FROM tags WHERE workspace_number = of_workspace AND tag = ANY (texts) ORDER BY n LOOP
        PERFORM 1 FROM tag_members WHERE tag_members.tag = candidate LIMIT 1 FOR KEY SHARE SKIP LOCKED;
        CONTINUE WHEN FOUND;
        PERFORM 1 FROM tags WHERE n = candidate FOR UPDATE;
        DELETE FROM tags
        WHERE n = candidate AND NOT EXISTS (SELECT 1 FROM tag_members WHERE tag_members.tag = candidate);
    END LOOP;
END
$$;
