-- Parts of the queue of which nothing is sent until they are resumed: the members that name them, as JSON.
CREATE TABLE suspensions (
    scope TEXT NOT NULL PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
