-- Tests of campaigns, which no statistics count; NULL of all other messages.
ALTER TABLE messages ADD COLUMN is_test INTEGER;

-- == Images ==

-- The same octets are one image of a workspace.
CREATE TABLE images (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX images_by_digest ON images (workspace, sha256);

-- Their octets. By number, because a table ordered by its key keeps no row that is longer than a page.
CREATE TABLE image_bytes (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX image_bytes_by_id ON image_bytes (workspace, id);

-- == Search ==

-- What is searched of contacts, in lower case: a row for those whose numbers have all but the last 5 bits in common.
CREATE TABLE contact_texts (
    block INTEGER PRIMARY KEY,
    shown TEXT NOT NULL,
    hidden TEXT NOT NULL
) STRICT;

-- Notes that contacts of a block have changed, which the row above does not follow yet.
CREATE TABLE changed_contact_texts (
    n INTEGER PRIMARY KEY,
    block INTEGER NOT NULL
) STRICT;

CREATE TRIGGER contacts_begin_to_be_found AFTER INSERT ON contacts BEGIN
    INSERT INTO changed_contact_texts (block) VALUES (new.n >> 5);
END;
CREATE TRIGGER contacts_are_found_anew AFTER UPDATE OF external_id, email, phone, attributes ON contacts
WHEN old.external_id IS NOT new.external_id OR old.email IS NOT new.email OR old.phone IS NOT new.phone
    OR old.attributes IS NOT new.attributes
BEGIN
    INSERT INTO changed_contact_texts (block) VALUES (new.n >> 5);
END;
CREATE TRIGGER contacts_end_to_be_found AFTER DELETE ON contacts BEGIN
    INSERT INTO changed_contact_texts (block) VALUES (old.n >> 5);
END;
INSERT INTO changed_contact_texts (block) SELECT DISTINCT n >> 5 FROM contacts;

-- What is searched of messages, in lower case: a row for some that follow one another. `is_due`: it is to be made anew;
-- `is_aged`: it was made when contents of its messages were forgotten.
CREATE TABLE message_texts (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    first BLOB NOT NULL,
    last BLOB NOT NULL,
    messages INTEGER NOT NULL,
    is_due INTEGER NOT NULL,
    is_aged INTEGER NOT NULL,
    shown TEXT NOT NULL,
    hidden TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX message_texts_by_first ON message_texts (workspace, first);
CREATE INDEX message_texts_due ON message_texts (workspace, first) WHERE is_due;
CREATE INDEX message_texts_by_age ON message_texts (last) WHERE NOT is_aged;
