-- Second factors of users. `expires_at` is that of one that nobody has confirmed yet.
CREATE TABLE factors (
    user_id uuid NOT NULL,
    id uuid NOT NULL,
    expires_at bigint,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX factors_by_id ON factors (id);
CREATE INDEX factors_by_end ON factors (expires_at) WHERE expires_at IS NOT NULL;

-- Digests of codes that are good once each.
CREATE TABLE recovery_codes (
    user_id uuid NOT NULL,
    digest bytea NOT NULL,
    PRIMARY KEY (user_id, digest)
);

-- Sign-ins that wait for a second factor, with how many codes were tried.
CREATE TABLE pending_sign_ins (
    digest bytea PRIMARY KEY,
    user_id uuid NOT NULL,
    expires_at bigint NOT NULL,
    tries bigint NOT NULL,
    doc text NOT NULL
);
CREATE INDEX pending_sign_ins_by_user ON pending_sign_ins (user_id);
CREATE INDEX pending_sign_ins_by_end ON pending_sign_ins (expires_at);
