-- Workspaces have a number in tables of many rows; a contact's number is that of its workspace times 2^40 plus the next of
-- one sequence for all, so that no row is hot.
CREATE TABLE workspace_numbers (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace uuid NOT NULL UNIQUE,
    -- What its dynamic segments read.
    read_mask bigint NOT NULL DEFAULT 0
);
CREATE SEQUENCE contact_numbers;
