-- Runs in a row that failed: what a job waits for before its next run grows with them.
ALTER TABLE jobs ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
