-- What holds for the database as a whole, by name: `key_check`, the check value of the secret key; `owner`, the
-- token of the program that does the jobs; `latest`, at least nearly the latest time that a job was dated at.
CREATE TABLE installation (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What the clock said when `due_at` was decided. Jobs from before are never taken for wrongly dated.
ALTER TABLE jobs ADD COLUMN dated_at INTEGER NOT NULL DEFAULT 0;
