-- Contacts, lists and tags refer to one another by numbers, which are narrow and keep the rows of an
-- index side by side. A workspace has a number, its audience; a contact's number is that of its audience
-- times 2^40 plus a count, so the contacts of a workspace stand together in the order of their creation.

CREATE TABLE audiences (
    number INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL UNIQUE,
    -- The count of the newest contact; numbers of erased contacts are not used again.
    newest INTEGER NOT NULL,
    contacts INTEGER NOT NULL
) STRICT;

-- By number, because rows are wide. NULL stands for empty tags and attributes.
CREATE TABLE contacts (
    n INTEGER PRIMARY KEY,
    audience INTEGER NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    marketing_email INTEGER,
    sms INTEGER,
    external_id TEXT,
    email TEXT,
    phone TEXT,
    locale TEXT,
    timezone TEXT,
    tags TEXT,
    attributes TEXT
) STRICT;
CREATE UNIQUE INDEX contacts_by_id ON contacts (audience, id);
CREATE UNIQUE INDEX contacts_by_external_id ON contacts (audience, external_id) WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX contacts_by_email ON contacts (audience, email) WHERE email IS NOT NULL;
CREATE UNIQUE INDEX contacts_by_phone ON contacts (audience, phone) WHERE phone IS NOT NULL;

-- The tags that contacts have, and who has them. A contact's own tags also stand in its row.
CREATE TABLE tags (
    n INTEGER PRIMARY KEY,
    audience INTEGER NOT NULL,
    tag TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX tags_by_text ON tags (audience, tag);

CREATE TABLE tag_members (
    tag INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    PRIMARY KEY (tag, contact)
) STRICT, WITHOUT ROWID;

-- A removed list stays until its members are let go.
CREATE TABLE lists (
    n INTEGER PRIMARY KEY,
    audience INTEGER NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    contacts INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    name TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX lists_by_id ON lists (audience, id);
CREATE INDEX lists_removed ON lists (n) WHERE removed = 1;

CREATE TABLE list_members (
    list INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    PRIMARY KEY (list, contact)
) STRICT, WITHOUT ROWID;
CREATE INDEX list_members_by_contact ON list_members (contact, list);

CREATE TABLE custom_fields (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX custom_fields_by_key ON custom_fields (workspace, key);
