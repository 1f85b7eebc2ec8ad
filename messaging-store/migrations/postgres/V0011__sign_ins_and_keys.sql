-- Failed sign-ins of the last hour. The email is a digest of itself and the network.
CREATE TABLE sign_in_failures (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    network bytea NOT NULL,
    email bytea NOT NULL
);
CREATE INDEX sign_in_failures_by_email ON sign_in_failures (email, at);
CREATE INDEX sign_in_failures_by_network ON sign_in_failures (network, at);
CREATE INDEX sign_in_failures_by_time ON sign_in_failures (at);

-- Keys are looked up by the digest of their secret, so that the prefix makes no difference in time.
CREATE TABLE api_keys (
    workspace uuid NOT NULL,
    id uuid NOT NULL UNIQUE,
    prefix text COLLATE "C" NOT NULL UNIQUE,
    secret bytea NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, id)
);
CREATE INDEX api_keys_by_secret ON api_keys (secret);

-- Apart from the key, so that noting a use does not rewrite its document.
CREATE TABLE api_key_uses (
    id uuid PRIMARY KEY,
    used_at bigint NOT NULL
) WITH (fillfactor = 50);
