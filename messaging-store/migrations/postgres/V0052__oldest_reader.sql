-- The number of the last migration that a program must know to work with this schema.
CREATE TABLE schema_compatibility (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    oldest_reader bigint NOT NULL
);
INSERT INTO schema_compatibility (oldest_reader) VALUES (52);
