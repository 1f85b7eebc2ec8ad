-- What holds for the database as a whole, by name: `key_check`, the check value of the secret key; `name`, that of the
-- installation; `fence`, whether it is fenced.
CREATE TABLE installation (
    name text COLLATE "C" PRIMARY KEY,
    value text COLLATE "C" NOT NULL
);
