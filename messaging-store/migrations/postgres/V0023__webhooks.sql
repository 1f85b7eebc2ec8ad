CREATE TABLE webhooks (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    status text NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, id)
);

-- Since when every attempt at a webhook has failed. No row: the last one went well, or there was none.
CREATE TABLE webhook_failures (
    workspace uuid NOT NULL,
    webhook uuid NOT NULL,
    since bigint NOT NULL,
    PRIMARY KEY (workspace, webhook)
);

-- The payload is not stored but made of the event and its message at every attempt, so that nothing has to
-- be redacted here. Only tests bring their own. What changes is in no index; `marked_deliveries` finds the few that are
-- asked for by what became of them.
CREATE TABLE webhook_deliveries (
    id uuid PRIMARY KEY,
    workspace uuid NOT NULL,
    webhook uuid NOT NULL,
    status bigint NOT NULL,
    attempts bigint NOT NULL,
    event uuid NOT NULL,
    type bigint NOT NULL,
    -- Where the event is: its message and its time. NULL: a test.
    message uuid,
    at bigint,
    payload text,
    created_at bigint NOT NULL,
    next_attempt_at bigint,
    delivered_at bigint,
    duration_ms bigint,
    response_status bigint,
    response_body text,
    error bigint,
    replay_of uuid,
    -- Waits to be sent in its order.
    backlog boolean NOT NULL,
    -- The receiver never got the event by this delivery, and nobody has replayed it.
    missed boolean NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook, id);

-- Those that failed (2), are held (3) or expired (4), that wait in a backlog, or were missed: one that goes well does not
-- touch it.
CREATE TABLE marked_deliveries (
    delivery uuid PRIMARY KEY,
    webhook uuid NOT NULL,
    status bigint NOT NULL,
    backlog boolean NOT NULL,
    missed boolean NOT NULL
);
CREATE INDEX marked_deliveries_by_status ON marked_deliveries (webhook, status, delivery) WHERE status >= 2;
CREATE INDEX marked_deliveries_in_backlog ON marked_deliveries (webhook, delivery) WHERE backlog;
CREATE INDEX marked_deliveries_missed ON marked_deliveries (webhook, delivery) WHERE missed;
CREATE INDEX marked_deliveries_waiting ON marked_deliveries (delivery) WHERE status = 3 OR backlog;

CREATE FUNCTION mark_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM marked_deliveries WHERE delivery = OLD.id;
    END IF;
    IF TG_OP <> 'DELETE' AND (NEW.status >= 2 OR NEW.backlog OR NEW.missed) THEN
        INSERT INTO marked_deliveries (delivery, webhook, status, backlog, missed)
            VALUES (NEW.id, NEW.webhook, NEW.status, NEW.backlog, NEW.missed);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER deliveries_begin_marked AFTER INSERT ON webhook_deliveries
    FOR EACH ROW WHEN (NEW.status >= 2 OR NEW.backlog OR NEW.missed) EXECUTE FUNCTION mark_delivery();
CREATE TRIGGER deliveries_change_their_mark AFTER UPDATE ON webhook_deliveries
    FOR EACH ROW WHEN (
        (OLD.status, OLD.backlog, OLD.missed) IS DISTINCT FROM (NEW.status, NEW.backlog, NEW.missed)
        AND (OLD.status >= 2 OR OLD.backlog OR OLD.missed OR NEW.status >= 2 OR NEW.backlog OR NEW.missed))
    EXECUTE FUNCTION mark_delivery();
CREATE TRIGGER deliveries_end_marked AFTER DELETE ON webhook_deliveries
    FOR EACH ROW WHEN (OLD.status >= 2 OR OLD.backlog OR OLD.missed) EXECUTE FUNCTION mark_delivery();
