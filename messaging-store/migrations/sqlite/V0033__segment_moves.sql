-- Whether it is kept who becomes or ceases to be a member of a segment, for whoever works that off.
ALTER TABLE segments ADD COLUMN keeps_moves INTEGER NOT NULL DEFAULT 0;
-- Such moves in the order of their commits, as numbers of segments and contacts. A number is never used again, so that
-- whoever takes up to one that is gone finds out.
CREATE TABLE segment_moves (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace_number INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    member INTEGER NOT NULL
) STRICT;
CREATE INDEX segment_moves_by_workspace ON segment_moves (workspace_number, n);
