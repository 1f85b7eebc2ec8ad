-- Audiences of campaigns that were frozen, the addresses that they have taken, and those that are left out.
CREATE TABLE campaign_audience (
    campaign bigint NOT NULL,
    kind bigint NOT NULL,
    due_at bigint NOT NULL,
    piece bigint NOT NULL,
    places bytea NOT NULL,
    PRIMARY KEY (campaign, kind, due_at, piece)
);

CREATE TABLE campaign_addresses (
    n bigint GENERATED ALWAYS AS IDENTITY,
    campaign bigint NOT NULL,
    digests bytea NOT NULL,
    PRIMARY KEY (campaign, n)
);

CREATE TABLE campaign_left_out (
    campaign bigint NOT NULL,
    piece bigint NOT NULL,
    entries bytea NOT NULL,
    PRIMARY KEY (campaign, piece)
);
-- They are hashes, which nothing makes shorter.
ALTER TABLE campaign_addresses ALTER COLUMN digests SET STORAGE EXTERNAL;
ALTER TABLE campaign_left_out ALTER COLUMN entries SET STORAGE EXTERNAL;
