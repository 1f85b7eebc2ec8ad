-- Workspaces under deletion, and those that are gone, whose ids stay taken. `state`: 0 can be restored, 1 is being removed,
-- 2 is gone.
CREATE TABLE ending_workspaces (
    workspace BLOB NOT NULL PRIMARY KEY,
    deletes_at INTEGER NOT NULL,
    state INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
