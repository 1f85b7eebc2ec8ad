-- What was put aside because the database refused its outcome. Ids rise with time.
CREATE TABLE quarantined (
    id BLOB NOT NULL PRIMARY KEY,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
