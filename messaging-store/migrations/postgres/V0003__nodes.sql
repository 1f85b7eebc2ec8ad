-- The processes of an installation. A process that may write has a term; each of its transactions touches one of the
-- term's rows in `writers` first, so that whoever declares it dead ends all its writing by deleting them.
CREATE SEQUENCE terms;
CREATE TABLE nodes (
    term bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    -- Whether it claims jobs.
    works boolean NOT NULL,
    -- 0 working, 1 idle, 2 draining, 3 fenced, 4 its clock differs.
    state smallint NOT NULL,
    -- What its connections are called.
    connections text COLLATE "C" NOT NULL,
    clock_offset_ms bigint NOT NULL,
    -- Milliseconds on the database's clock.
    seen_at bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.2);
CREATE TABLE writers (
    term bigint NOT NULL,
    slot bigint NOT NULL,
    -- Which transaction was the last; only rises.
    n bigint NOT NULL,
    PRIMARY KEY (term, slot)
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

-- Who claims the jobs of which lanes: a lane belongs to the place that its name is hashed to. There are 256 for ever.
CREATE TABLE places (
    place smallint PRIMARY KEY,
    term bigint,
    -- Nearly the latest time at which a job of the place was dated.
    latest bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
INSERT INTO places (place) SELECT generate_series(0, 255);

-- Milliseconds on the database's clock, which runs on within a transaction.
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
    $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Ends the transaction of a process whose term is over.
CREATE FUNCTION expect_term(touched bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF touched IS DISTINCT FROM 1 THEN
        RAISE EXCEPTION 'the term is over' USING ERRCODE = 'MG002';
    END IF;
    RETURN true;
END
$$;

-- Ends the transaction of a process that has lost the claim of a job.
CREATE FUNCTION expect_claim(touched bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF touched IS DISTINCT FROM 1 THEN
        RAISE EXCEPTION 'the job is not there' USING ERRCODE = 'MG003';
    END IF;
    RETURN true;
END
$$;
