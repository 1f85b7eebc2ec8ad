-- The suppression list.
CREATE TABLE suppressions (
    workspace uuid NOT NULL,
    channel bigint NOT NULL,
    address text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, channel, address)
);
CREATE UNIQUE INDEX suppressions_by_id ON suppressions (workspace, id);
