-- What opens one session without a password.
CREATE TABLE tickets (
    digest BLOB NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tickets_by_expiry ON tickets (expires_at);

-- Sessions get ids, so that people see theirs. Those from before have none; they would have ended within 12 hours.
DROP TABLE sessions;
CREATE TABLE sessions (
    token BLOB NOT NULL PRIMARY KEY,
    id BLOB NOT NULL,
    user BLOB NOT NULL,
    password_version INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- Apart from the document, so that noting a use does not rewrite it.
    used_at INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
CREATE UNIQUE INDEX sessions_by_user ON sessions (user, id);
