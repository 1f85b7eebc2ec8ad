-- The number of the last migration that a program must know to work with this schema.
CREATE TABLE schema_readers (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    oldest bigint NOT NULL
);
INSERT INTO schema_readers (oldest) VALUES (52);
