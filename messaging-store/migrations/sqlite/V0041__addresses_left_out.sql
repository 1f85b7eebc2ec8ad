-- Addresses of recipients that other recipients of the campaign have: for each piece the last 16 bits of the contact's
-- number and the digest of the address, 10 bytes each, until all messages are made.
CREATE TABLE campaign_left_out (
    campaign INTEGER NOT NULL,
    piece INTEGER NOT NULL,
    entries BLOB NOT NULL,
    PRIMARY KEY (campaign, piece)
) STRICT, WITHOUT ROWID;
