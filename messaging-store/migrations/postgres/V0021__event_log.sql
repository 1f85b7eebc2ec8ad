-- The events of a workspace in the order in which they were committed.
--
-- A place in the log is an era, the transaction's number (`xid8`) and a number of the sequence. Whoever reads takes only
-- what transactions below the oldest that is running have written: nothing appears before it any more. Times are no part
-- of the order.
CREATE SEQUENCE event_log_numbers;
CREATE TABLE event_log (
    workspace uuid NOT NULL,
    era smallint NOT NULL,
    xid bigint NOT NULL,
    n bigint NOT NULL,
    message uuid NOT NULL,
    at bigint NOT NULL,
    event uuid NOT NULL,
    PRIMARY KEY (workspace, era, xid, n)
);
-- By pieces of about 70 minutes, in which the places of a workspace are in order: what is old is found in the first
-- pieces, and the first entry from a time on is the first of one of those that follow.
CREATE INDEX event_log_by_time ON event_log ((at >> 22), workspace, era, xid, n) INCLUDE (at);

-- Numbers of transactions begin anew in another cluster, and a promoted standby may use some once more: with either an era
-- begins. Era 0 is what was moved here from a store that has no transactions.
CREATE TABLE log_era (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    era smallint NOT NULL,
    timeline text NOT NULL
);
INSERT INTO log_era (era, timeline) VALUES (1, '');

-- The cluster and the timeline that are written to. Where the cluster's identifier is not shown, the database stands for it.
CREATE FUNCTION present_timeline() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    cluster text;
BEGIN
    BEGIN
        SELECT system_identifier::text INTO cluster FROM pg_control_system();
    EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
        SELECT 'database ' || oid INTO cluster FROM pg_database WHERE datname = current_database();
    END;
    -- The timeline of what is written now: a checkpoint knows of a promotion minutes later.
    RETURN cluster || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8);
END
$$;

-- Begins an era unless the present one is that of the timeline.
CREATE FUNCTION begin_log_era() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    present text := present_timeline();
BEGIN
    IF NOT EXISTS (SELECT 1 FROM log_era WHERE timeline = present) THEN
        UPDATE log_era SET era = era + 1, timeline = present WHERE timeline <> present;
    END IF;
END
$$;

-- Workspaces whose events somebody asks for, and until when they are logged.
CREATE TABLE event_followers (
    workspace uuid PRIMARY KEY,
    until bigint NOT NULL
);
