-- A database that was restored from a copy is another one than that which was written to last: nothing leaves it before
-- somebody says so who knows what the other has sent since. A promoted standby is the same database.
ALTER TABLE log_era ADD COLUMN database text NOT NULL DEFAULT '';

-- The database that is written to, whatever its timeline.
CREATE FUNCTION present_database() RETURNS text LANGUAGE sql AS $$
    SELECT split_part(present_timeline(), '/', 1) || '/' || oid FROM pg_database WHERE datname = current_database()
$$;

-- Begins an era unless the present one is that of the timeline, and puts up the fence in a copy. Without a workspace there
-- is nothing to be sent twice.
CREATE OR REPLACE FUNCTION begin_log_era() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    on_timeline text := present_timeline();
    here text := present_database();
    before text;
BEGIN
    IF EXISTS (SELECT 1 FROM log_era WHERE timeline = on_timeline AND database = here) THEN
        RETURN;
    END IF;
    -- One connection at a time.
    SELECT database INTO before FROM log_era FOR UPDATE;
    IF before <> '' AND before <> here AND EXISTS (SELECT 1 FROM workspaces) THEN
        INSERT INTO installation (name, value) VALUES ('fence', 'held ' || now_ms()) ON CONFLICT (name) DO NOTHING;
    END IF;
    UPDATE log_era SET era = era + (timeline <> on_timeline)::integer, timeline = on_timeline, database = here;
END
$$;
