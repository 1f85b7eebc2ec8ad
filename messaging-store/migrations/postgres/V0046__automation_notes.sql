-- What happened to contacts, nearly in the order of the commits. `what` holds ids, by kind; `event` is the number of a
-- product event, the time of an event of a message. `tx` is the transaction that wrote it: a transaction may commit after
-- one with larger numbers, and whoever takes notes away takes those alone that it has read.
CREATE TABLE automation_notes (
    automation bigint NOT NULL,
    n bigint NOT NULL,
    contact bigint NOT NULL,
    at bigint NOT NULL,
    event bigint,
    tx bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    shard smallint NOT NULL,
    kind smallint NOT NULL,
    depth smallint NOT NULL,
    may_enter boolean NOT NULL,
    what bytea NOT NULL,
    PRIMARY KEY (automation, shard, n)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
-- One for all automations. No number is used again, so that whoever takes up to one that is gone finds out.
CREATE SEQUENCE automation_note_numbers;
