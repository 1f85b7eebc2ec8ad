-- What the writer writes to find out whether the disk takes writes again; at most one row.
CREATE TABLE health_probe (
    n INTEGER PRIMARY KEY CHECK (n = 1),
    filler BLOB NOT NULL
) STRICT;
