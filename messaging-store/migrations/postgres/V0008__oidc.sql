-- People at single sign-on providers, by issuer and subject, and the users that they are.
CREATE TABLE linked_identities (
    issuer text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    user_id uuid NOT NULL,
    linked_at bigint NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX linked_identities_by_user ON linked_identities (user_id);
