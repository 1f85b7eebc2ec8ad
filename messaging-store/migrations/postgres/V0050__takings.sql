-- What the processes took from the buckets of limits since they started. Not durable: buckets are full after a minute.
CREATE UNLOGGED TABLE takings (
    bucket uuid NOT NULL,
    process uuid NOT NULL,
    full_at bigint NOT NULL,
    taken bigint NOT NULL,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (bucket, process)
) WITH (fillfactor = 80);
