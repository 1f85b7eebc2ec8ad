-- Tests of campaigns, which no statistics count; NULL of all other messages.
ALTER TABLE messages ADD COLUMN is_test boolean;

-- == Images ==

-- The same octets are one image of a workspace.
CREATE TABLE images (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, sha256)
);

-- Their octets, which are compressed already.
CREATE TABLE image_bytes (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (workspace, id)
);
ALTER TABLE image_bytes ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- == Search ==

-- What is searched of contacts, in lower case: a row for those whose numbers have all but the last 5 bits in common. Short
-- enough to stand in the row, and not compressed: it is read more often than it is stored.
CREATE TABLE contact_texts (
    block bigint PRIMARY KEY,
    shown text COLLATE "C" NOT NULL,
    hidden text COLLATE "C" NOT NULL
);
ALTER TABLE contact_texts ALTER COLUMN shown SET STORAGE EXTERNAL;
ALTER TABLE contact_texts ALTER COLUMN hidden SET STORAGE EXTERNAL;

-- Notes that contacts of a block have changed, which the row above does not follow yet.
CREATE TABLE changed_contact_texts (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    block bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

CREATE FUNCTION note_contact_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO changed_contact_texts (block) VALUES (OLD.n >> 5);
    ELSE
        INSERT INTO changed_contact_texts (block) VALUES (NEW.n >> 5);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER contacts_begin_and_end_to_be_found AFTER INSERT OR DELETE ON contacts
    FOR EACH ROW EXECUTE FUNCTION note_contact_text();
CREATE TRIGGER contacts_are_found_anew AFTER UPDATE ON contacts
    FOR EACH ROW WHEN (OLD.external_id IS DISTINCT FROM NEW.external_id OR OLD.email IS DISTINCT FROM NEW.email
        OR OLD.phone IS DISTINCT FROM NEW.phone OR OLD.attributes IS DISTINCT FROM NEW.attributes)
    EXECUTE FUNCTION note_contact_text();
INSERT INTO changed_contact_texts (block) SELECT DISTINCT n >> 5 FROM contacts;

-- What is searched of messages, in lower case: a row for some that follow one another. `is_due`: it is to be made anew;
-- `is_aged`: it was made when contents of its messages were forgotten.
CREATE TABLE message_texts (
    workspace uuid NOT NULL,
    first uuid NOT NULL,
    last uuid NOT NULL,
    messages bigint NOT NULL,
    is_due boolean NOT NULL,
    is_aged boolean NOT NULL,
    shown text COLLATE "C" NOT NULL,
    hidden text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, first)
);
ALTER TABLE message_texts ALTER COLUMN shown SET STORAGE EXTERNAL;
ALTER TABLE message_texts ALTER COLUMN hidden SET STORAGE EXTERNAL;
CREATE INDEX message_texts_due ON message_texts (workspace, first) WHERE is_due;
CREATE INDEX message_texts_by_age ON message_texts (last) WHERE NOT is_aged;
