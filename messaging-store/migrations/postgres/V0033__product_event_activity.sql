-- How many product events of a name happened in each quarter of an hour.
CREATE TABLE product_event_activity (
    name bigint NOT NULL,
    quarter integer NOT NULL,
    shard smallint NOT NULL,
    events bigint NOT NULL,
    PRIMARY KEY (name, quarter, shard)
) WITH (fillfactor = 80);
