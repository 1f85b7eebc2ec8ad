-- Messages, what was asked for, their events and attempts. Enumerations are stored as their position in the ALL list of
-- their type.

-- The narrow row that changes. What changes in it as it is sent is in no index, so that its new version stays on its page
-- and costs no index an entry; `message_states` finds the few messages that are asked for by their state.
CREATE TABLE messages (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    status bigint NOT NULL,
    channel bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    recipient text NOT NULL,
    sender text,
    contact uuid,
    campaign uuid,
    automation uuid,
    template uuid,
    tags text,
    metadata text,
    variant bigint,
    hold_reason bigint,
    hold_until bigint,
    hold_since bigint,
    -- Bits; as are the links.
    seen bigint NOT NULL,
    links bigint NOT NULL,
    skip bigint,
    sent_at bigint,
    delivered_at bigint,
    -- Which message a fallback stands for: the first of its chain; and whether another follows should a message not arrive.
    fallback_of uuid,
    has_fallback boolean,
    PRIMARY KEY (workspace, id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX messages_by_contact ON messages (workspace, contact, id) WHERE contact IS NOT NULL;
CREATE INDEX messages_by_campaign ON messages (workspace, campaign, id) WHERE campaign IS NOT NULL;
CREATE INDEX messages_by_automation ON messages (workspace, automation, id) WHERE automation IS NOT NULL;

-- Deferred and the bad ends only: a message that goes well never touches it.
CREATE TABLE message_states (
    workspace uuid NOT NULL,
    status bigint NOT NULL,
    message uuid NOT NULL,
    campaign uuid,
    PRIMARY KEY (workspace, status, message)
);
-- The bad ends: few messages of a campaign, which are asked for by their state.
CREATE INDEX message_states_by_campaign ON message_states (workspace, campaign, status, message)
    WHERE campaign IS NOT NULL AND status >= 5;

CREATE FUNCTION keep_message_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM message_states WHERE workspace = OLD.workspace AND status = OLD.status AND message = OLD.id;
    END IF;
    IF NEW.status >= 4 THEN
        INSERT INTO message_states (workspace, status, message, campaign)
            VALUES (NEW.workspace, NEW.status, NEW.id, NEW.campaign);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER messages_begin_in_a_state AFTER INSERT ON messages
    FOR EACH ROW WHEN (NEW.status >= 4) EXECUTE FUNCTION keep_message_state();
CREATE TRIGGER messages_change_their_state AFTER UPDATE ON messages
    FOR EACH ROW WHEN (OLD.status <> NEW.status AND (OLD.status >= 4 OR NEW.status >= 4))
    EXECUTE FUNCTION keep_message_state();

-- Never changes, but for what is erased. Ids begin with their time, so that accepting appends and forgetting removes from
-- the front.
CREATE TABLE message_contents (
    message uuid NOT NULL,
    workspace uuid NOT NULL,
    request bytea NOT NULL,
    PRIMARY KEY (message, workspace)
);
-- What is long stands outside of the row as it is: its length is known without it, and no time goes into packing it.
ALTER TABLE message_contents ALTER COLUMN request SET STORAGE EXTERNAL;

CREATE TABLE message_events (
    workspace uuid NOT NULL,
    message uuid NOT NULL,
    at bigint NOT NULL,
    id uuid NOT NULL,
    kind bigint NOT NULL,
    meta text,
    PRIMARY KEY (workspace, message, at, id)
);

-- What was said on the wire.
CREATE TABLE message_attempts (
    workspace uuid NOT NULL,
    message uuid NOT NULL,
    id uuid NOT NULL,
    attempt bigint NOT NULL,
    at bigint NOT NULL,
    provider text,
    doc text NOT NULL,
    PRIMARY KEY (workspace, message, id)
);
CREATE INDEX message_attempts_by_time ON message_attempts (at);

-- Which messages copy somebody, so that erasing that person finds them. Only messages with copies have rows. The
-- key is a MAC over workspace and address.
CREATE TABLE copied_recipients (
    workspace uuid NOT NULL,
    key uuid NOT NULL,
    message uuid NOT NULL,
    PRIMARY KEY (workspace, key, message)
);

-- The newest message of each workspace that was accepted before copies were noted, in databases that were moved here:
-- up to there, erasing looks through the messages themselves.
CREATE TABLE unlisted_copies (
    workspace uuid PRIMARY KEY,
    newest uuid NOT NULL
);
