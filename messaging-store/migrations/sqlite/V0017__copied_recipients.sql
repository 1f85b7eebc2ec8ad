-- Which messages copy somebody, so that erasing that person finds them. Only messages with copies have rows. The
-- key is a MAC over workspace and address.
CREATE TABLE copied_recipients (
    workspace BLOB NOT NULL,
    key BLOB NOT NULL,
    message BLOB NOT NULL,
    PRIMARY KEY (workspace, key, message)
) STRICT, WITHOUT ROWID;

-- The newest message of each workspace that was accepted before copies were noted: up to there, erasing looks
-- through the messages themselves.
CREATE TABLE unlisted_copies (
    workspace BLOB NOT NULL PRIMARY KEY,
    newest BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO unlisted_copies (workspace, newest)
    SELECT workspace, newest FROM (
        SELECT w.id AS workspace, (SELECT max(m.id) FROM messages m WHERE m.workspace = w.id) AS newest
        FROM workspaces w
    ) WHERE newest IS NOT NULL;
