-- Segments, and whom they hold. Like everything about contacts they have numbers of their own.

-- What the dynamic segments of the audience read of a contact, as the bits of `Aspects`. What none of them
-- reads need not be noted when it changes.
ALTER TABLE audiences ADD COLUMN interest INTEGER NOT NULL DEFAULT 0;

-- A removed segment stays until its members are let go.
CREATE TABLE segments (
    n INTEGER PRIMARY KEY,
    audience INTEGER NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    status INTEGER NOT NULL,
    -- What its filter reads; nothing for a static segment, whose members nobody follows.
    aspects INTEGER NOT NULL,
    members INTEGER NOT NULL,
    calculation INTEGER NOT NULL,
    calculated_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    name TEXT NOT NULL,
    filter TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX segments_by_id ON segments (audience, id);
CREATE INDEX segments_removed ON segments (n) WHERE removed = 1;

CREATE TABLE segment_members (
    segment INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    PRIMARY KEY (segment, contact)
) STRICT, WITHOUT ROWID;

-- Contacts that changed in something that a dynamic segment reads: in what, and a mark that is another after
-- every change, so that a note is taken away only by whoever saw all of it.
CREATE TABLE changed_contacts (
    contact INTEGER PRIMARY KEY,
    aspects INTEGER NOT NULL,
    mark INTEGER NOT NULL
) STRICT;

-- Addresses that came onto the suppression list or off it, of channels whose addresses no index finds: the
-- contacts of the audience are looked through for them, up to which number so far.
CREATE TABLE changed_addresses (
    n INTEGER PRIMARY KEY,
    audience INTEGER NOT NULL,
    channel INTEGER NOT NULL,
    address TEXT NOT NULL,
    looked_through INTEGER NOT NULL
) STRICT;
CREATE INDEX changed_addresses_by_audience ON changed_addresses (audience);
