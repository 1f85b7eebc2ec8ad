-- Segments, their members, and the changes that lead to others.
CREATE TABLE segments (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_number bigint NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    removed boolean NOT NULL,
    kind bigint NOT NULL,
    status bigint NOT NULL,
    -- What its filter reads; nothing for a static segment, whose members nobody follows.
    read_mask bigint NOT NULL,
    calculation bigint NOT NULL,
    calculated_at bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    name text NOT NULL,
    filter text NOT NULL
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX segments_by_id ON segments (workspace_number, id);
CREATE INDEX segments_removed ON segments (n) WHERE removed;

-- How many members there are: the sum of some rows, so that no row is hot.
CREATE TABLE segment_sizes (
    segment bigint NOT NULL,
    shard bigint NOT NULL,
    members bigint NOT NULL,
    PRIMARY KEY (segment, shard)
) WITH (fillfactor = 50);

CREATE TABLE segment_members (
    segment bigint NOT NULL,
    contact bigint NOT NULL,
    PRIMARY KEY (segment, contact)
);

-- Contacts that changed in what a dynamic segment reads. A mark tells whether one has changed again since it was read.
CREATE TABLE changed_contacts (
    contact bigint PRIMARY KEY,
    read_mask bigint NOT NULL,
    mark bigint NOT NULL,
    depth bigint NOT NULL
) WITH (fillfactor = 70);

-- Addresses that came onto the suppression list or off it, and up to which contact their owners were looked for.
CREATE TABLE changed_addresses (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_number bigint NOT NULL,
    channel bigint NOT NULL,
    address text COLLATE "C" NOT NULL,
    looked_through bigint NOT NULL,
    at bigint NOT NULL,
    depth bigint NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX changed_addresses_by_workspace ON changed_addresses (workspace_number);
