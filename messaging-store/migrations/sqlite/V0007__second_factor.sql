-- Second factors of users. `expires_at` is that of one that nobody has confirmed yet.
CREATE TABLE factors (
    user_id BLOB NOT NULL,
    id BLOB NOT NULL,
    expires_at INTEGER,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (user_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX factors_by_id ON factors (id);
CREATE INDEX factors_by_expiry ON factors (expires_at) WHERE expires_at IS NOT NULL;

-- Digests of codes that are good once each.
CREATE TABLE recovery_codes (
    user_id BLOB NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (user_id, digest)
) STRICT, WITHOUT ROWID;

-- Sign-ins that wait for a second factor, with how many codes were tried.
CREATE TABLE pending_sign_ins (
    digest BLOB NOT NULL PRIMARY KEY,
    user_id BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    -- Apart from the document, so that counting does not rewrite it.
    tries INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pending_sign_ins_by_user ON pending_sign_ins (user_id);
CREATE INDEX pending_sign_ins_by_expiry ON pending_sign_ins (expires_at);
