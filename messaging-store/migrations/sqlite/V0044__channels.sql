-- Automations hear of addresses that no index finds, too: when each came onto the suppression list or off it, and by how many
-- automations in a row that was caused. 0 in rows that were noted before, of which segments alone hear.
ALTER TABLE changed_addresses ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE changed_addresses ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;

-- What came in over a channel and has had its effect: digests of the providers' names for it, so that what is repeated changes
-- nothing twice. Kept for 8 days.
CREATE TABLE inbound_notes (
    workspace BLOB NOT NULL,
    channel INTEGER NOT NULL,
    key BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (workspace, channel, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbound_notes_by_time ON inbound_notes (at);
