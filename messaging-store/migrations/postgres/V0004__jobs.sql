-- Jobs. A claim never writes, but for woken ones; so a job costs an insert and a delete.
CREATE TABLE jobs (
    lane text COLLATE "C" NOT NULL,
    due_at bigint NOT NULL,
    id uuid NOT NULL,
    place smallint NOT NULL,
    -- Of the lane's class: one that nobody waits for.
    bulk boolean NOT NULL,
    -- Whether its lane needs it only once.
    once boolean NOT NULL DEFAULT false,
    failures bigint NOT NULL DEFAULT 0,
    -- When its due time was decided.
    dated_at bigint NOT NULL,
    -- It is due then if that is earlier: its lane was woken since it was claimed last.
    woken_at bigint,
    kind text COLLATE "C" NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (lane, due_at, id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX jobs_by_place ON jobs (place, bulk, due_at, id);
CREATE INDEX jobs_woken ON jobs (place) WHERE woken_at IS NOT NULL;
CREATE UNIQUE INDEX jobs_once ON jobs (lane) WHERE once;
