-- Parts of the queue of which nothing is sent until they are resumed: the members that name them, as JSON.
CREATE TABLE suspensions (
    scope text COLLATE "C" PRIMARY KEY,
    since bigint NOT NULL
);
