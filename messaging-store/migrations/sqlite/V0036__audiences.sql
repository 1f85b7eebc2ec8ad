-- Frozen audiences. A piece is the contacts whose numbers have all but the last 16 bits in common; a row holds the last
-- 16 bits of those who have something in common: a verdict (kind 0 to 4), or that they are recipients who are due at the
-- same time (5); kind 6 are recipients of the test group. `places` is as `Bits` encodes it.
CREATE TABLE campaign_audience (
    campaign INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    piece INTEGER NOT NULL,
    places BLOB NOT NULL,
    PRIMARY KEY (campaign, kind, due_at, piece)
) STRICT, WITHOUT ROWID;

-- Digests of addresses that recipients of an unfinished audience have, 8 bytes each in rising order; a row for each commit
-- that took some.
CREATE TABLE campaign_addresses (
    campaign INTEGER NOT NULL,
    n INTEGER NOT NULL,
    digests BLOB NOT NULL,
    PRIMARY KEY (campaign, n)
) STRICT, WITHOUT ROWID;
