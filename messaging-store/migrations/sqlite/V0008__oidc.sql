-- People at single sign-on providers, by issuer and subject, and the users that they are.
CREATE TABLE linked_identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id BLOB NOT NULL,
    linked_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX linked_identities_by_user ON linked_identities (user_id);
