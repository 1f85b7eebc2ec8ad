-- Failed sign-ins of the last hour. The email is a digest of itself and the network.
CREATE TABLE sign_in_failures (
    n INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    network BLOB NOT NULL,
    email BLOB NOT NULL
) STRICT;
CREATE INDEX sign_in_failures_by_email ON sign_in_failures (email, at);
CREATE INDEX sign_in_failures_by_network ON sign_in_failures (network, at);
CREATE INDEX sign_in_failures_by_time ON sign_in_failures (at);

-- Keys are looked up by the digest of their secret, so that the prefix makes no difference in time.
CREATE INDEX api_keys_by_secret ON api_keys (doc ->> '$.secret_digest');
