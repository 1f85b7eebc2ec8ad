-- What was said on the wire, in the order of the attempts: recording appends, forgetting removes from
-- the front.
CREATE TABLE message_attempts (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    message BLOB NOT NULL,
    id BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX message_attempts_by_message ON message_attempts (workspace, message, id);
