CREATE TABLE refinery_schema_history (
    version int4 PRIMARY KEY, name VARCHAR(255), applied_on VARCHAR(255), checksum VARCHAR(255));
-- The schema of a database on PostgreSQL.
--
-- Ids are ULIDs as uuid, times are milliseconds since 1970, docs are the record as JSON in text: jsonb would change numbers
-- and order. Enumerations are stored as their position in the ALL list of their type.
--
-- How a column is stored is said by ALTER TABLE, because CREATE TABLE takes it from PostgreSQL 16 on.

-- == Ends of transactions: functions that raise where a statement finds something else than it should ==

-- Ends the transaction with a conflict unless a statement touched as many rows as it should have.
CREATE FUNCTION expect_rows(touched bigint, expected bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF touched IS DISTINCT FROM expected THEN
        RAISE EXCEPTION 'touched % rows instead of %', touched, expected USING ERRCODE = 'MG001';
    END IF;
    RETURN true;
END
$$;

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

-- == The installation, and the processes that work on it ==

-- The number of the last migration that a program must know to work with this schema.
CREATE TABLE schema_compatibility (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    oldest_reader bigint NOT NULL
);
INSERT INTO schema_compatibility (oldest_reader) VALUES (1);

-- What holds for the database as a whole, by name: `key_check`, the check value of the secret key; `name`, that of the
-- installation; `fence`, whether it is fenced.
CREATE TABLE installation (
    name text COLLATE "C" PRIMARY KEY,
    value text COLLATE "C" NOT NULL
);

-- What was put aside because the database refused its outcome. Ids rise with time.
CREATE TABLE quarantined (
    id uuid PRIMARY KEY,
    doc text NOT NULL
);

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
    seen_at bigint NOT NULL,
    -- The ids of the secret keys that it holds, by commas, the one that it seals under first. NULL: it has not said so.
    keys text COLLATE "C"
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

-- What the processes took from the buckets of limits since they started. Not durable: buckets are full after a minute.
CREATE UNLOGGED TABLE takings (
    bucket uuid NOT NULL,
    process uuid NOT NULL,
    full_at bigint NOT NULL,
    taken bigint NOT NULL,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (bucket, process)
) WITH (fillfactor = 80);

-- Parts of the queue of which nothing is sent until they are resumed: the members that name them, as JSON.
CREATE TABLE suspensions (
    scope text COLLATE "C" PRIMARY KEY,
    since bigint NOT NULL
);

-- == Users, and how they sign in ==

CREATE TABLE users (
    id uuid PRIMARY KEY,
    email text COLLATE "C" NOT NULL UNIQUE,
    revision bigint NOT NULL,
    doc text NOT NULL
);

CREATE TABLE sessions (
    token bytea PRIMARY KEY,
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    password_version bigint NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint NOT NULL,
    doc text NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX sessions_by_user ON sessions (user_id, id);
CREATE INDEX sessions_by_end ON sessions (expires_at);

-- What opens one session without a password.
CREATE TABLE tickets (
    digest bytea PRIMARY KEY,
    expires_at bigint NOT NULL,
    doc text NOT NULL
);
CREATE INDEX tickets_by_end ON tickets (expires_at);

-- Failed sign-ins of the last hour. `network` is where one came from, `site` the same with a /48 of IPv6 as a whole;
-- `email` is a digest of the email and the network, `account` one of the email alone.
CREATE TABLE sign_in_failures (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    network bytea NOT NULL,
    email bytea NOT NULL,
    site bytea NOT NULL DEFAULT '',
    account bytea NOT NULL DEFAULT '',
    -- How many tries of the email had to wait for one another, this one included.
    slowed bigint NOT NULL DEFAULT 0
);
CREATE INDEX sign_in_failures_by_email ON sign_in_failures (email, at);
CREATE INDEX sign_in_failures_by_network ON sign_in_failures (network, at);
CREATE INDEX sign_in_failures_by_site ON sign_in_failures (site, at);
CREATE INDEX sign_in_failures_by_account ON sign_in_failures (account, at);
CREATE INDEX sign_in_failures_by_time ON sign_in_failures (at);

-- == Workspaces, their members and API keys ==

CREATE TABLE workspaces (
    id uuid PRIMARY KEY,
    revision bigint NOT NULL,
    doc text NOT NULL
);

-- Workspaces under deletion, and those that are gone, whose ids stay taken. `state`: 0 can be restored, 1 is being removed,
-- 2 is gone.
CREATE TABLE ending_workspaces (
    workspace uuid PRIMARY KEY,
    deletes_at bigint NOT NULL,
    state smallint NOT NULL
);

-- Workspaces have a number in tables of many rows; a contact's number is that of its workspace times 2^40 plus the next of
-- one sequence for all, so that no row is hot.
CREATE TABLE workspace_numbers (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace uuid NOT NULL UNIQUE,
    -- What its dynamic segments read.
    read_mask bigint NOT NULL DEFAULT 0
);
CREATE SEQUENCE contact_numbers;

-- A membership opens nothing before its person has accepted: it is `invited` until then.
CREATE TABLE members (
    workspace uuid NOT NULL,
    user_id uuid NOT NULL,
    owner boolean NOT NULL,
    invited boolean NOT NULL DEFAULT false,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, user_id)
);
CREATE INDEX members_by_user ON members (user_id, invited, workspace);

-- Keys are looked up by the digest of their secret, so that the prefix makes no difference in time.
CREATE TABLE api_keys (
    workspace uuid NOT NULL,
    id uuid NOT NULL UNIQUE,
    prefix text COLLATE "C" NOT NULL UNIQUE,
    secret bytea NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, id)
);
CREATE INDEX api_keys_by_secret ON api_keys (secret);

-- Apart from the key, so that noting a use does not rewrite its document.
CREATE TABLE api_key_uses (
    id uuid PRIMARY KEY,
    used_at bigint NOT NULL
) WITH (fillfactor = 50);

-- Remembered answers, by Idempotency-Key. The key comes first in the index so that keys that count upwards stay on one
-- page.
CREATE TABLE replies (
    key text COLLATE "C" NOT NULL,
    credential uuid NOT NULL,
    route text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    fingerprint bytea NOT NULL,
    status bigint NOT NULL,
    content_type text NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (key, credential, route)
);
CREATE INDEX replies_by_end ON replies (expires_at);
-- Whoever removes a workspace finds what is of it without reading the table: by the credential, and the answers to people by
-- the workspace that the route names.
CREATE INDEX replies_by_credential ON replies (credential);
CREATE INDEX replies_by_workspace ON replies (substring(route FROM 'wsp_[0-9A-Z]{26}'))
    WHERE substring(route FROM 'wsp_[0-9A-Z]{26}') IS NOT NULL;

-- == Settings of workspaces ==

CREATE TABLE channels (
    workspace uuid NOT NULL,
    channel bigint NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, channel)
);

CREATE TABLE sending_domains (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, id),
    -- What comes back by mail names a domain, not a workspace.
    UNIQUE (name, workspace)
);

CREATE TABLE custom_fields (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, key)
);

-- == Templates ==

-- A removed template stays, with its versions, until no message can need them.
CREATE TABLE templates (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    channel bigint NOT NULL,
    revision bigint NOT NULL,
    version bigint NOT NULL,
    removed_at bigint,
    PRIMARY KEY (workspace, id)
) WITH (fillfactor = 80);
CREATE INDEX templates_removed ON templates (removed_at) WHERE removed_at IS NOT NULL;

-- Versions never change. The head is the document without its bodies.
CREATE TABLE template_versions (
    workspace uuid NOT NULL,
    template uuid NOT NULL,
    version bigint NOT NULL,
    head text NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, template, version)
);

-- == Messages ==

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

-- What the sandbox captured.
CREATE TABLE captures (
    workspace uuid NOT NULL,
    message uuid NOT NULL,
    channel bigint NOT NULL,
    captured_at bigint NOT NULL,
    recipient text NOT NULL,
    sender text,
    subject text,
    source bytea NOT NULL,
    PRIMARY KEY (workspace, message)
);
ALTER TABLE captures ALTER COLUMN source SET STORAGE EXTERNAL;

-- Attachments: whether a commit has kept them, and the message of which they are. By id first, which begins with its
-- time.
CREATE TABLE blobs (
    id uuid NOT NULL,
    workspace uuid NOT NULL,
    message uuid NOT NULL,
    pending boolean NOT NULL,
    size bigint NOT NULL,
    -- Where its bytes are: `s3://bucket/prefix`, or nothing when they are in `blob_pieces`.
    bucket text,
    PRIMARY KEY (id, workspace)
) WITH (fillfactor = 80);
CREATE INDEX blobs_pending ON blobs (id, workspace) WHERE pending;

-- Their bytes, from the place `at` on.
CREATE TABLE blob_pieces (
    blob uuid NOT NULL,
    workspace uuid NOT NULL,
    at bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (blob, workspace, at)
);
ALTER TABLE blob_pieces ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Blobs that were put, that no commit had named for long, and that none can name any more. Ids begin with their time.
CREATE TABLE abandoned_blobs (
    blob uuid NOT NULL,
    workspace uuid NOT NULL,
    PRIMARY KEY (blob, workspace)
);

-- Targets of redirected links. The key is the beginning of the SHA-256 digest of the URL.
CREATE TABLE urls (
    workspace uuid NOT NULL,
    key uuid NOT NULL,
    url text NOT NULL,
    PRIMARY KEY (workspace, key)
);

-- == What comes back from providers, and suppressions ==

-- Providers' names for messages, by which their receipts name them. `provider` and `name` are as the provider writes
-- them; rows older than 30 days go when new ones come.
CREATE TABLE provider_links (
    workspace uuid NOT NULL,
    message uuid NOT NULL,
    at bigint NOT NULL,
    channel bigint NOT NULL,
    provider text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, channel, provider, name)
);
CREATE INDEX provider_links_by_age ON provider_links (at);
CREATE INDEX provider_links_by_message ON provider_links (message);

-- What came in over a channel and has had its effect: digests of the providers' names for it, so that what is repeated
-- changes nothing twice. Kept for 8 days.
CREATE TABLE inbound_notes (
    workspace uuid NOT NULL,
    channel bigint NOT NULL,
    key uuid NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (workspace, channel, key)
);
CREATE INDEX inbound_notes_by_time ON inbound_notes (at);

-- Final soft bounces in a row. Nearly empty: a delivery removes the row. By the SHA-256 digest of the address: those of
-- push notifications are longer than keys of an index may be.
CREATE TABLE soft_bounces (
    workspace uuid NOT NULL,
    channel bigint NOT NULL,
    digest bytea NOT NULL,
    address text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (workspace, channel, digest)
) WITH (fillfactor = 80);

-- The suppression list. An address may have more bytes than an index takes: 4,096 characters. So it is found by its SHA-256.
CREATE TABLE suppressions (
    workspace uuid NOT NULL,
    channel bigint NOT NULL,
    digest bytea NOT NULL,
    address text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, channel, digest)
);
CREATE UNIQUE INDEX suppressions_by_id ON suppressions (workspace, id);

-- == Webhooks and the event log ==

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
-- The deliveries of one message. Tests have none.
CREATE INDEX webhook_deliveries_by_message ON webhook_deliveries (message, id) WHERE message IS NOT NULL;
-- Whoever removes a workspace finds what is of it without reading the table.
CREATE INDEX webhook_deliveries_by_workspace ON webhook_deliveries (workspace);

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

-- The events of a workspace in the order in which they were committed.
--
-- A place in the log is an era, the transaction's number (`xid8`) and a number of the sequence. Whoever reads takes only
-- what transactions older than the oldest that is running have written: nothing appears before it any more. Times are no
-- part of the order.
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

-- Below which transaction nothing of this database appears any more behind what a snapshot shows: its oldest that is
-- running. One that certainly is another database's writes nothing here; one that just began or ended may be ours.
CREATE FUNCTION log_horizon(shown pg_snapshot) RETURNS bigint LANGUAGE sql AS $$
    SELECT coalesce(min(running.xid), pg_snapshot_xmax(shown)::text::bigint)
    FROM (SELECT xid::text::bigint AS xid FROM pg_snapshot_xip(shown) AS xid) AS running
    WHERE NOT EXISTS (
        SELECT 1 FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
            AND l.transactionid::text::bigint = (running.xid & 4294967295)
            AND a.datid <> (SELECT oid FROM pg_database WHERE datname = current_database()))
$$;

-- Numbers of transactions begin anew in another cluster, and a promoted standby may use some once more: with either an era
-- begins. Era 0 is what was moved here from a store that has no transactions.
CREATE TABLE log_era (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    era smallint NOT NULL,
    timeline text NOT NULL,
    -- The database that was written to last; empty until one is.
    database text NOT NULL DEFAULT ''
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

-- The database that is written to, whatever its timeline.
CREATE FUNCTION present_database() RETURNS text LANGUAGE sql AS $$
    SELECT split_part(present_timeline(), '/', 1) || '/' || oid FROM pg_database WHERE datname = current_database()
$$;

-- Begins an era unless the present one is that of the timeline, and puts up the fence in a copy.
--
-- A database that was restored from a copy is another one than that which was written to last: nothing leaves it before
-- somebody says so who knows what the other has sent since. A promoted standby is the same database. Without a workspace
-- there is nothing to be sent twice.
CREATE FUNCTION begin_log_era() RETURNS void LANGUAGE plpgsql AS $$
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

-- Workspaces whose events somebody asks for, and until when they are logged.
CREATE TABLE event_followers (
    workspace uuid PRIMARY KEY,
    until bigint NOT NULL
);

-- == Jobs ==

-- A claim never writes, but for woken ones; so a job costs an insert and a delete.
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

-- == Contacts, tags, lists and imports ==

-- Numbered so that the contacts of a workspace stand together, nearly in the order of their creation. NULL stands for empty
-- tags and attributes.
CREATE TABLE contacts (
    n bigint PRIMARY KEY,
    workspace_number bigint NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    marketing_email boolean,
    sms boolean,
    external_id text COLLATE "C",
    email text COLLATE "C",
    phone text COLLATE "C",
    locale text COLLATE "C",
    timezone text COLLATE "C",
    tags text,
    attributes text
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX contacts_by_id ON contacts (workspace_number, id);
CREATE UNIQUE INDEX contacts_by_external_id ON contacts (workspace_number, external_id) WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX contacts_by_email ON contacts (workspace_number, email) WHERE email IS NOT NULL;
CREATE UNIQUE INDEX contacts_by_phone ON contacts (workspace_number, phone) WHERE phone IS NOT NULL;

-- How many contacts a workspace has is the sum over its shards: a connection adds to its own, so that no two wait for
-- each other.
CREATE TABLE contact_counts (
    workspace_number bigint NOT NULL,
    shard smallint NOT NULL,
    contacts bigint NOT NULL,
    PRIMARY KEY (workspace_number, shard)
) WITH (fillfactor = 50);

-- Contacts that are gone while some of their events are still there. The events become those of the merge target, the
-- contact that this one was merged into, a slice at a time; without one they are deleted.
CREATE TABLE deleted_contacts (
    n bigint PRIMARY KEY,
    workspace_number bigint NOT NULL,
    id uuid NOT NULL,
    merge_target bigint
);
CREATE UNIQUE INDEX deleted_contacts_by_id ON deleted_contacts (workspace_number, id);
CREATE INDEX deleted_contacts_by_merge_target ON deleted_contacts (merge_target) WHERE merge_target IS NOT NULL;

-- The tags that contacts have, and who has them. A contact's own tags also stand in its row.
CREATE TABLE tags (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_number bigint NOT NULL,
    tag text COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX tags_by_text ON tags (workspace_number, tag);

CREATE TABLE tag_members (
    tag bigint NOT NULL,
    contact bigint NOT NULL,
    PRIMARY KEY (tag, contact)
);

-- Removes those of some tags that nobody has any more. Whoever gives a tag to somebody holds its row; so a tag that
-- seems to be nobody's is looked at again once nobody holds it. Members that others are removing do not count at the
-- first look: the last one to commit finds that there are none.
CREATE FUNCTION forget_tags(of_workspace bigint, texts text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    candidate bigint;
BEGIN
    FOR candidate IN SELECT n FROM tags WHERE workspace_number = of_workspace AND tag = ANY (texts) ORDER BY n LOOP
        PERFORM 1 FROM tag_members WHERE tag_members.tag = candidate LIMIT 1 FOR KEY SHARE SKIP LOCKED;
        CONTINUE WHEN FOUND;
        PERFORM 1 FROM tags WHERE n = candidate FOR UPDATE;
        DELETE FROM tags
        WHERE n = candidate AND NOT EXISTS (SELECT 1 FROM tag_members WHERE tag_members.tag = candidate);
    END LOOP;
END
$$;

-- A removed list stays until its members are let go.
CREATE TABLE lists (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_number bigint NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    removed boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    name text NOT NULL
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX lists_by_id ON lists (workspace_number, id);
CREATE INDEX lists_removed ON lists (n) WHERE removed;

-- How many members a list has is the sum over its shards.
CREATE TABLE list_counts (
    list bigint NOT NULL,
    shard smallint NOT NULL,
    members bigint NOT NULL,
    PRIMARY KEY (list, shard)
) WITH (fillfactor = 50);

CREATE TABLE list_members (
    list bigint NOT NULL,
    contact bigint NOT NULL,
    PRIMARY KEY (list, contact)
);
CREATE INDEX list_members_by_contact ON list_members (contact, list);

CREATE TABLE imports (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, id)
) WITH (fillfactor = 80);

-- Which rows were refused: the lines of the report, a slice of rows at a time. By import first, because ids begin with
-- their time and the oldest are let go.
CREATE TABLE import_errors (
    import uuid NOT NULL,
    first_row bigint NOT NULL,
    workspace uuid NOT NULL,
    lines text NOT NULL,
    PRIMARY KEY (import, first_row)
);

-- Uploaded files until they are read: few at a time. Only those that are kept are read.
CREATE TABLE uploads (
    import uuid NOT NULL,
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    kept boolean NOT NULL,
    size bigint NOT NULL,
    PRIMARY KEY (import, workspace, id)
) WITH (fillfactor = 80);

-- Their bytes, from the place `at` on. Not compressed, so that a part of a piece is read without the rest of it.
CREATE TABLE upload_pieces (
    import uuid NOT NULL,
    workspace uuid NOT NULL,
    upload uuid NOT NULL,
    at bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (import, workspace, upload, at)
);
ALTER TABLE upload_pieces ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- == Product events: what contacts did, as the workspace's own programs tell it ==

-- An event names its contact and its name by numbers.
CREATE TABLE event_names (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_number bigint NOT NULL,
    name text COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX event_names_by_text ON event_names (workspace_number, name);

-- Numbered nearly in the order of their arrival. NULL stands for empty properties.
CREATE TABLE product_events (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    contact bigint NOT NULL,
    name bigint NOT NULL,
    -- When it happened, which may be long before it arrived.
    at bigint NOT NULL,
    id uuid NOT NULL,
    properties text
);
CREATE INDEX product_events_by_contact ON product_events (contact, name, at) INCLUDE (n);

-- What callers call their events, so that a repetition is noticed.
CREATE TABLE event_unique_ids (
    event bigint PRIMARY KEY,
    workspace_number bigint NOT NULL,
    received_at bigint NOT NULL,
    unique_id text COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX event_unique_ids_by_text ON event_unique_ids (workspace_number, unique_id);
CREATE INDEX event_unique_ids_by_time ON event_unique_ids (received_at);

-- == Segments, whom they hold, and the changes that lead to others ==

-- A removed segment stays until its members are let go.
CREATE TABLE segments (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_number bigint NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    removed boolean NOT NULL,
    kind bigint NOT NULL,
    status bigint NOT NULL,
    -- What its filter reads; nothing for a static segment, whose members nobody follows.
    read_mask bigint NOT NULL,
    calculation bigint NOT NULL,
    calculated_at bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    name text NOT NULL,
    filter text NOT NULL
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX segments_by_id ON segments (workspace_number, id);
CREATE INDEX segments_removed ON segments (n) WHERE removed;

-- How many members there are: the sum of some rows, so that no row is hot.
CREATE TABLE segment_sizes (
    segment bigint NOT NULL,
    shard bigint NOT NULL,
    members bigint NOT NULL,
    PRIMARY KEY (segment, shard)
) WITH (fillfactor = 50);

CREATE TABLE segment_members (
    segment bigint NOT NULL,
    contact bigint NOT NULL,
    PRIMARY KEY (segment, contact)
);

-- Contacts that changed in what a dynamic segment reads. A mark tells whether one has changed again since it was read.
CREATE TABLE changed_contacts (
    contact bigint PRIMARY KEY,
    read_mask bigint NOT NULL,
    mark bigint NOT NULL,
    depth bigint NOT NULL
) WITH (fillfactor = 70);

-- Addresses that came onto the suppression list or off it, and up to which contact their owners were looked for.
CREATE TABLE changed_addresses (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_number bigint NOT NULL,
    channel bigint NOT NULL,
    address text COLLATE "C" NOT NULL,
    looked_through bigint NOT NULL,
    at bigint NOT NULL,
    depth bigint NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX changed_addresses_by_workspace ON changed_addresses (workspace_number);

-- == Campaigns; rows of which there are many name a campaign by its number ==

-- A removed campaign stays until what belongs to it is let go. No number is used again.
CREATE TABLE campaigns (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    removed boolean NOT NULL,
    status bigint NOT NULL,
    doc text NOT NULL
);
CREATE UNIQUE INDEX campaigns_by_id ON campaigns (workspace, id);
CREATE INDEX campaigns_by_status ON campaigns (workspace, status, id) WHERE NOT removed;
-- Scheduled, sending, paused.
CREATE INDEX campaigns_open ON campaigns (n) WHERE NOT removed AND status BETWEEN 1 AND 3;
CREATE INDEX campaigns_removed ON campaigns (n) WHERE removed;

-- Lists (0), segments (1) and templates (2) that open campaigns (kind of holder 0) and active automations (1) need.
CREATE TABLE holds (
    workspace uuid NOT NULL,
    kind smallint NOT NULL,
    id uuid NOT NULL,
    holder_kind smallint NOT NULL,
    holder uuid NOT NULL,
    PRIMARY KEY (workspace, kind, id, holder_kind, holder)
);
CREATE INDEX holds_by_holder ON holds (workspace, holder_kind, holder);

-- Apart from the campaign, so that jobs do not change what people change.
CREATE TABLE campaign_progress (
    campaign bigint PRIMARY KEY,
    revision bigint NOT NULL,
    doc text NOT NULL
) WITH (fillfactor = 80);

-- Frozen audiences. A piece is the contacts whose numbers have all but the last 16 bits in common; a row holds the last
-- 16 bits of those who have something in common: a verdict (kind 0 to 4), or that they are recipients who are due at the
-- same time (5); kind 6 are recipients of the test group. `places` is as `Bits` encodes it.
CREATE TABLE campaign_audience (
    campaign bigint NOT NULL,
    kind bigint NOT NULL,
    due_at bigint NOT NULL,
    piece bigint NOT NULL,
    places bytea NOT NULL,
    PRIMARY KEY (campaign, kind, due_at, piece)
);

-- Digests of addresses that recipients of an unfinished audience have, 8 bytes each in rising order; a row for each commit
-- that took some.
CREATE TABLE campaign_addresses (
    n bigint GENERATED ALWAYS AS IDENTITY,
    campaign bigint NOT NULL,
    digests bytea NOT NULL,
    PRIMARY KEY (campaign, n)
);
-- They are hashes, which nothing makes shorter.
ALTER TABLE campaign_addresses ALTER COLUMN digests SET STORAGE EXTERNAL;

-- Addresses of recipients that other recipients of the campaign have: for each piece the last 16 bits of the contact's
-- number and the digest of the address, 10 bytes each, until all messages are made.
CREATE TABLE campaign_left_out (
    campaign bigint NOT NULL,
    piece bigint NOT NULL,
    entries bytea NOT NULL,
    PRIMARY KEY (campaign, piece)
);
ALTER TABLE campaign_left_out ALTER COLUMN entries SET STORAGE EXTERNAL;

-- Messages that have no job yet.
CREATE TABLE campaign_waiting (
    campaign bigint NOT NULL,
    track smallint NOT NULL,
    due_at bigint NOT NULL,
    message uuid NOT NULL,
    PRIMARY KEY (campaign, track, due_at, message)
);

-- Messages of which something was seen, by its bit.
CREATE TABLE campaign_engagements (
    campaign bigint NOT NULL,
    seen smallint NOT NULL,
    message uuid NOT NULL,
    PRIMARY KEY (campaign, seen, message)
);

-- When marketing messages to a contact began: four bytes each, seconds since 1970. `last_at` is the last of them, 0 where
-- there is none; the week it lies in changes seldom, and so is what old rows are found by.
CREATE TABLE contact_sends (
    contact bigint NOT NULL,
    channel smallint NOT NULL,
    revision bigint NOT NULL,
    times bytea NOT NULL,
    last_at bigint NOT NULL,
    week bigint GENERATED ALWAYS AS (last_at / 604800) STORED,
    PRIMARY KEY (contact, channel)
) WITH (fillfactor = 80);
CREATE INDEX contact_sends_by_week ON contact_sends (week);

-- == Automations; rows of which there are many name an automation by its number ==

-- A removed automation stays until what belongs to it is let go. No number is used again.
CREATE TABLE automations (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    removed boolean NOT NULL,
    status bigint NOT NULL,
    version bigint NOT NULL,
    -- What enters contacts, and the lanes of the jobs; both as JSON.
    entry text,
    lanes text NOT NULL,
    doc text NOT NULL
);
CREATE UNIQUE INDEX automations_by_id ON automations (workspace, id);
CREATE INDEX automations_by_status ON automations (workspace, status, id) WHERE NOT removed;
CREATE INDEX automations_removed ON automations (n) WHERE removed;

-- `interest` is what the runs of a version wait for; empty where that is nothing.
CREATE TABLE automation_versions (
    automation bigint NOT NULL,
    version bigint NOT NULL,
    interest text NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (automation, version)
);

-- Nodes of all versions.
CREATE TABLE automation_nodes (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    automation bigint NOT NULL,
    id text COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX automation_nodes_by_id ON automation_nodes (automation, id);

-- The row is the timer. `arrived` counts from `entered_at`. An entry event that was accepted at `entered_at` is kept
-- without the six bytes of its id that say so. A share of the contacts is those whose numbers have the last two bits in
-- common.
CREATE TABLE automation_runs (
    automation bigint NOT NULL,
    contact bigint NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    version bigint NOT NULL,
    entered_at bigint NOT NULL,
    arrived bigint NOT NULL,
    due_at bigint,
    ended_at bigint,
    node bigint,
    status smallint NOT NULL,
    depth smallint NOT NULL,
    steps integer NOT NULL,
    entry_event bytea,
    held text,
    exit_reason text COLLATE "C",
    -- The run waits where it began and keeps no row of steps: that it entered, and waits from `arrived` until `due_at`,
    -- stands in this row. The row of steps is written when it goes on.
    untold boolean NOT NULL,
    PRIMARY KEY (automation, id)
) WITH (fillfactor = 80);
CREATE INDEX automation_runs_due ON automation_runs (automation, (contact & 3), due_at) WHERE due_at IS NOT NULL;
CREATE INDEX automation_runs_by_contact ON automation_runs (contact, automation);
CREATE INDEX automation_runs_ended ON automation_runs (ended_at) WHERE ended_at IS NOT NULL;

-- What of a run never changes and may be large; only where there is something.
CREATE TABLE automation_run_inputs (
    automation bigint NOT NULL,
    run uuid NOT NULL,
    event text,
    key text COLLATE "C",
    PRIMARY KEY (automation, run)
);

-- The steps of a commit, in one row.
CREATE TABLE automation_run_steps (
    automation bigint NOT NULL,
    run uuid NOT NULL,
    revision bigint NOT NULL,
    steps text NOT NULL,
    PRIMARY KEY (automation, run, revision)
);

CREATE TABLE automation_messages (
    message uuid PRIMARY KEY,
    automation bigint NOT NULL,
    run uuid NOT NULL,
    node bigint NOT NULL
);
CREATE INDEX automation_messages_by_run ON automation_messages (automation, run);

-- `key` is empty where there is none; JSON never is.
CREATE TABLE automation_entries (
    automation bigint NOT NULL,
    contact bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    entered_at bigint NOT NULL,
    PRIMARY KEY (automation, contact, key)
) WITH (fillfactor = 80);

-- Moments of dates. Those that were taken stay for a while, so that they are not kept again.
CREATE TABLE automation_date_fires (
    automation bigint NOT NULL,
    contact bigint NOT NULL,
    due_at bigint NOT NULL,
    taken boolean NOT NULL,
    PRIMARY KEY (automation, contact, due_at)
);
CREATE INDEX automation_date_fires_due ON automation_date_fires (automation, (contact & 3), due_at) WHERE NOT taken;
CREATE INDEX automation_date_fires_taken ON automation_date_fires (due_at) WHERE taken;

-- Contacts that are gone while runs of theirs are still there, to be deleted a slice at a time.
CREATE TABLE automation_deleted_contacts (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    n bigint NOT NULL,
    PRIMARY KEY (workspace, id)
);

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

-- The numbers of notes; one sequence for all automations. No number is used again, so that whoever takes up to one that is
-- gone finds out.
CREATE SEQUENCE automation_note_numbers;

-- == Counters: each is the sum over its shards. A connection adds to its own, so that no two wait for each other ==

-- What the messages of a campaign count for, by variant. Each number is the sum over the variant's messages, but for
-- opens, clicks and machine_opens, which count events.
CREATE TABLE campaign_counts (
    campaign bigint NOT NULL,
    -- The place of the variant; 0 in a campaign that compares none.
    variant smallint NOT NULL,
    shard smallint NOT NULL,
    waiting bigint NOT NULL,
    sending bigint NOT NULL,
    deferred bigint NOT NULL,
    sent bigint NOT NULL,
    delivered bigint NOT NULL,
    bounces bigint NOT NULL,
    complaints bigint NOT NULL,
    failed bigint NOT NULL,
    cancelled bigint NOT NULL,
    skipped_suppressed bigint NOT NULL,
    skipped_no_consent bigint NOT NULL,
    skipped_frequency_cap bigint NOT NULL,
    unique_opens bigint NOT NULL,
    unique_clicks bigint NOT NULL,
    unsubscribes bigint NOT NULL,
    unique_machine_opens bigint NOT NULL,
    opens bigint NOT NULL,
    clicks bigint NOT NULL,
    machine_opens bigint NOT NULL,
    PRIMARY KEY (campaign, variant, shard)
) WITH (fillfactor = 50);

-- What was counted in each quarter of an hour, counted from 1970, of all messages of a workspace by channel and source:
-- 0 requests, 1 campaigns, 2 automations.
CREATE TABLE activity (
    workspace uuid NOT NULL,
    quarter integer NOT NULL,
    channel smallint NOT NULL,
    source smallint NOT NULL,
    shard smallint NOT NULL,
    sent bigint NOT NULL,
    delivered bigint NOT NULL,
    bounces bigint NOT NULL,
    complaints bigint NOT NULL,
    unique_opens bigint NOT NULL,
    unique_clicks bigint NOT NULL,
    unsubscribes bigint NOT NULL,
    opens bigint NOT NULL,
    clicks bigint NOT NULL,
    PRIMARY KEY (workspace, quarter, channel, source, shard)
) WITH (fillfactor = 80);

-- The same of each campaign.
CREATE TABLE campaign_activity (
    campaign bigint NOT NULL,
    quarter integer NOT NULL,
    shard smallint NOT NULL,
    sent bigint NOT NULL,
    delivered bigint NOT NULL,
    bounces bigint NOT NULL,
    complaints bigint NOT NULL,
    unique_opens bigint NOT NULL,
    unique_clicks bigint NOT NULL,
    unsubscribes bigint NOT NULL,
    opens bigint NOT NULL,
    clicks bigint NOT NULL,
    PRIMARY KEY (campaign, quarter, shard)
) WITH (fillfactor = 80);

-- The links of a campaign that were followed, by the link's number in the template of its variant.
CREATE TABLE campaign_links (
    campaign bigint NOT NULL,
    variant smallint NOT NULL,
    link smallint NOT NULL,
    url text NOT NULL,
    PRIMARY KEY (campaign, variant, link)
);
-- How often.
CREATE TABLE campaign_link_counts (
    campaign bigint NOT NULL,
    variant smallint NOT NULL,
    link smallint NOT NULL,
    shard smallint NOT NULL,
    clicks bigint NOT NULL,
    unique_clicks bigint NOT NULL,
    PRIMARY KEY (campaign, variant, link, shard)
) WITH (fillfactor = 50);

-- How many product events of a name happened in each quarter of an hour.
CREATE TABLE product_event_activity (
    name bigint NOT NULL,
    quarter integer NOT NULL,
    shard smallint NOT NULL,
    events bigint NOT NULL,
    PRIMARY KEY (name, quarter, shard)
) WITH (fillfactor = 80);

-- How many runs of an automation are in each state, without refused entries.
CREATE TABLE automation_run_counts (
    automation bigint NOT NULL,
    status bigint NOT NULL,
    shard smallint NOT NULL,
    runs bigint NOT NULL,
    PRIMARY KEY (automation, status, shard)
) WITH (fillfactor = 50);

-- How many rows of runs name a version.
CREATE TABLE automation_version_counts (
    automation bigint NOT NULL,
    version bigint NOT NULL,
    shard smallint NOT NULL,
    runs bigint NOT NULL,
    PRIMARY KEY (automation, version, shard)
) WITH (fillfactor = 50);

-- How often a node was reached, and how many open runs stand at it.
CREATE TABLE automation_node_counts (
    node bigint NOT NULL,
    shard smallint NOT NULL,
    entered bigint NOT NULL,
    waiting bigint NOT NULL,
    PRIMARY KEY (node, shard)
) WITH (fillfactor = 50);

-- How often a branch of a node was taken.
CREATE TABLE automation_branches (
    node bigint NOT NULL,
    branch text COLLATE "C" NOT NULL,
    shard smallint NOT NULL,
    taken bigint NOT NULL,
    PRIMARY KEY (node, branch, shard)
) WITH (fillfactor = 50);
-- == IP pools, and sources of mail with their paths ==

-- A pool of the id of zeros instead of a workspace is shared with all of them.
CREATE TABLE ip_pools (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, name)
);
CREATE INDEX ip_pools_by_id ON ip_pools (id);

-- The addresses that a workspace may name in its pools.
CREATE TABLE ip_grants (
    workspace uuid NOT NULL,
    ip text COLLATE "C" NOT NULL,
    granted_at bigint NOT NULL,
    PRIMARY KEY (workspace, ip)
);

-- What is kept of a source, whichever node has the address: an IP address or `default`.
CREATE TABLE sources (
    ip text COLLATE "C" PRIMARY KEY,
    revision bigint NOT NULL,
    doc text NOT NULL
) WITH (fillfactor = 50);

-- What is kept of a path: a source and the site that its mail goes to. `day` counts from 1970-01-01.
CREATE TABLE paths (
    ip text COLLATE "C" NOT NULL,
    site text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    sent_today bigint NOT NULL,
    day bigint NOT NULL,
    is_stopped boolean NOT NULL,
    updated_at bigint NOT NULL,
    state text NOT NULL,
    PRIMARY KEY (ip, site)
) WITH (fillfactor = 50);
CREATE INDEX paths_by_age ON paths (updated_at) WHERE NOT is_stopped;

-- The sources of a process with the names that they greet with, as JSON. NULL: it has not said so.
ALTER TABLE nodes ADD COLUMN sources text;
-- Transport security: MTA-STS policies (RFC 8461) of domains of recipients, which all workspaces share.
CREATE TABLE sts_policies (
    domain text COLLATE "C" PRIMARY KEY,
    expires_at bigint NOT NULL,
    doc text NOT NULL
);
CREATE INDEX sts_policies_by_expiry ON sts_policies (expires_at);
-- == Reports about sending domains ==

-- The address of reports names a domain, not a workspace.
CREATE INDEX sending_domains_by_id ON sending_domains (id);

-- Reports that arrived, verified as the reporter's or not, so that each counts once. `purpose` is 0 for DMARC, 1 for TLS;
-- `day` counts from 1970-01-01 and is the one on which the period of the report begins.
CREATE TABLE domain_reports (
    workspace uuid NOT NULL,
    domain uuid NOT NULL,
    key uuid NOT NULL,
    purpose bigint NOT NULL,
    day bigint NOT NULL,
    reporter text COLLATE "C" NOT NULL,
    verified boolean NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (workspace, domain, key)
);
CREATE INDEX domain_reports_by_domain ON domain_reports (workspace, domain, day);
CREATE INDEX domain_reports_by_day ON domain_reports (day);

-- Messages by day, reporter, source and result of DMARC, which is a set of bits.
CREATE TABLE dmarc_rows (
    workspace uuid NOT NULL,
    domain uuid NOT NULL,
    day bigint NOT NULL,
    reporter text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    result bigint NOT NULL,
    messages bigint NOT NULL,
    last_seen bigint NOT NULL,
    PRIMARY KEY (workspace, domain, day, reporter, source, result)
);
CREATE INDEX dmarc_rows_by_day ON dmarc_rows (day);

-- TLS sessions by day, reporter, exchanger and result. Ids begin with the time at which the report arrived.
CREATE TABLE tls_rows (
    workspace uuid NOT NULL,
    domain uuid NOT NULL,
    id uuid NOT NULL,
    day bigint NOT NULL,
    reporter text COLLATE "C" NOT NULL,
    mx text NOT NULL,
    result text NOT NULL,
    sessions bigint NOT NULL,
    failures bigint NOT NULL,
    PRIMARY KEY (workspace, domain, id)
);
CREATE INDEX tls_rows_by_day ON tls_rows (day);
-- == Requests of the API ==

-- What was asked of the API and how it was answered. `id` is the request id of the answer, which callers may choose.
CREATE TABLE api_requests (
    workspace uuid NOT NULL,
    key uuid NOT NULL,
    id text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    method text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    status bigint NOT NULL,
    code text COLLATE "C",
    duration_ms bigint NOT NULL,
    request_bytes bigint NOT NULL,
    key_id text COLLATE "C",
    user_id text COLLATE "C",
    ip text COLLATE "C",
    user_agent text,
    idempotency_key text COLLATE "C",
    resource_id text COLLATE "C",
    PRIMARY KEY (workspace, key)
);
CREATE INDEX api_requests_by_id ON api_requests (workspace, id);

-- Bodies of some of them, apart from the rows that listings read.
CREATE TABLE api_request_bodies (
    workspace uuid NOT NULL,
    key uuid NOT NULL,
    request text,
    response text,
    PRIMARY KEY (workspace, key)
);

-- == Audit log ==

-- A workspace of the id of zeros is the installation. The ids are texts, because they are of several types.
CREATE TABLE audit_log (
    workspace uuid NOT NULL,
    n bigint NOT NULL,
    at bigint NOT NULL,
    actor_kind text COLLATE "C" NOT NULL,
    actor text COLLATE "C",
    operation text COLLATE "C" NOT NULL,
    resource_kind text COLLATE "C" NOT NULL,
    resource text COLLATE "C",
    doc text NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (workspace, n)
);

-- The ends of each chain of rows: the last row, and the last one that was let go, after which the chain begins.
CREATE TABLE audit_chains (
    workspace uuid PRIMARY KEY,
    n bigint NOT NULL,
    hash bytea NOT NULL,
    anchor_n bigint NOT NULL,
    anchor_hash bytea NOT NULL
) WITH (fillfactor = 50);
-- Tests of campaigns, which no statistics count; NULL of all other messages.
ALTER TABLE messages ADD COLUMN is_test boolean;

-- == Images ==

-- The same octets are one image of a workspace.
CREATE TABLE images (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, sha256)
);

-- Their octets, which are compressed already.
CREATE TABLE image_bytes (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (workspace, id)
);
ALTER TABLE image_bytes ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- == Search ==

-- What is searched of contacts, in lower case: a row for those whose numbers have all but the last 5 bits in common. Short
-- enough to stand in the row, and not compressed: it is read more often than it is stored.
CREATE TABLE contact_texts (
    block bigint PRIMARY KEY,
    shown text COLLATE "C" NOT NULL,
    hidden text COLLATE "C" NOT NULL
);
ALTER TABLE contact_texts ALTER COLUMN shown SET STORAGE EXTERNAL;
ALTER TABLE contact_texts ALTER COLUMN hidden SET STORAGE EXTERNAL;

-- Notes that contacts of a block have changed, which the row above does not follow yet.
CREATE TABLE changed_contact_texts (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    block bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

CREATE FUNCTION note_contact_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO changed_contact_texts (block) VALUES (OLD.n >> 5);
    ELSE
        INSERT INTO changed_contact_texts (block) VALUES (NEW.n >> 5);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER contacts_begin_and_end_to_be_found AFTER INSERT OR DELETE ON contacts
    FOR EACH ROW EXECUTE FUNCTION note_contact_text();
CREATE TRIGGER contacts_are_found_anew AFTER UPDATE ON contacts
    FOR EACH ROW WHEN (OLD.external_id IS DISTINCT FROM NEW.external_id OR OLD.email IS DISTINCT FROM NEW.email
        OR OLD.phone IS DISTINCT FROM NEW.phone OR OLD.attributes IS DISTINCT FROM NEW.attributes)
    EXECUTE FUNCTION note_contact_text();
INSERT INTO changed_contact_texts (block) SELECT DISTINCT n >> 5 FROM contacts;

-- What is searched of messages, in lower case: a row for some that follow one another. `is_due`: it is to be made anew;
-- `is_aged`: it was made when contents of its messages were forgotten.
CREATE TABLE message_texts (
    workspace uuid NOT NULL,
    first uuid NOT NULL,
    last uuid NOT NULL,
    messages bigint NOT NULL,
    is_due boolean NOT NULL,
    is_aged boolean NOT NULL,
    shown text COLLATE "C" NOT NULL,
    hidden text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, first)
);
ALTER TABLE message_texts ALTER COLUMN shown SET STORAGE EXTERNAL;
ALTER TABLE message_texts ALTER COLUMN hidden SET STORAGE EXTERNAL;
CREATE INDEX message_texts_due ON message_texts (workspace, first) WHERE is_due;
CREATE INDEX message_texts_by_age ON message_texts (last) WHERE NOT is_aged;
-- == Lists that face their readers ==

ALTER TABLE lists ADD COLUMN is_public boolean NOT NULL DEFAULT false;
ALTER TABLE lists ADD COLUMN is_double boolean NOT NULL DEFAULT false;
ALTER TABLE lists ADD COLUMN description text;
CREATE INDEX lists_public ON lists (workspace_number, id) WHERE is_public;

-- What is recorded of contacts on public lists. `list_members` has those who are confirmed; here are also those who are
-- asked to confirm (0) and those who left (2), each with the proof of how that came about.
CREATE TABLE list_subscriptions (
    list bigint NOT NULL,
    contact bigint NOT NULL,
    revision bigint NOT NULL,
    status bigint NOT NULL,
    since bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (list, contact)
);
CREATE INDEX list_subscriptions_by_contact ON list_subscriptions (contact, list);
CREATE INDEX list_subscriptions_unconfirmed ON list_subscriptions (since) WHERE status = 0;

-- Forms by which readers subscribe.
CREATE TABLE forms (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, id)
);
-- Email by site and quarter of an hour: what became of each recipient, and how long deliveries took, by the upper bound in
-- seconds.
CREATE TABLE site_activity (
    workspace uuid NOT NULL,
    quarter integer NOT NULL,
    site text COLLATE "C" NOT NULL,
    shard smallint NOT NULL,
    accepted bigint NOT NULL,
    delivered bigint NOT NULL,
    deferred bigint NOT NULL,
    bounced_hard bigint NOT NULL,
    bounced_soft bigint NOT NULL,
    complaints bigint NOT NULL,
    opened_human bigint NOT NULL,
    over_tls bigint NOT NULL,
    within_1 bigint NOT NULL,
    within_2 bigint NOT NULL,
    within_5 bigint NOT NULL,
    within_10 bigint NOT NULL,
    within_30 bigint NOT NULL,
    within_60 bigint NOT NULL,
    within_300 bigint NOT NULL,
    within_900 bigint NOT NULL,
    within_3600 bigint NOT NULL,
    within_14400 bigint NOT NULL,
    within_86400 bigint NOT NULL,
    later bigint NOT NULL,
    PRIMARY KEY (workspace, quarter, site, shard)
) WITH (fillfactor = 80);
CREATE INDEX site_activity_by_quarter ON site_activity (quarter);
-- Second factors of users. `expires_at` is that of one that nobody has confirmed yet.
CREATE TABLE factors (
    user_id uuid NOT NULL,
    id uuid NOT NULL,
    expires_at bigint,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX factors_by_id ON factors (id);
CREATE INDEX factors_by_end ON factors (expires_at) WHERE expires_at IS NOT NULL;

-- Digests of codes that are good once each.
CREATE TABLE recovery_codes (
    user_id uuid NOT NULL,
    digest bytea NOT NULL,
    PRIMARY KEY (user_id, digest)
);

-- Sign-ins that wait for a second factor, with how many codes were tried.
CREATE TABLE pending_sign_ins (
    digest bytea PRIMARY KEY,
    user_id uuid NOT NULL,
    expires_at bigint NOT NULL,
    tries bigint NOT NULL,
    doc text NOT NULL
);
CREATE INDEX pending_sign_ins_by_user ON pending_sign_ins (user_id);
CREATE INDEX pending_sign_ins_by_end ON pending_sign_ins (expires_at);
-- People at single sign-on providers, by issuer and subject, and the users that they are.
CREATE TABLE linked_identities (
    issuer text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    user_id uuid NOT NULL,
    linked_at bigint NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX linked_identities_by_user ON linked_identities (user_id);
-- When a campaign that an archive may show began; NULL of one that has not begun or is kept out. What an archive shows is
-- decided when it is read.
ALTER TABLE campaigns ADD COLUMN archived_at bigint;
UPDATE campaigns
SET archived_at = CASE WHEN doc::json ->> 'channel' = 'email'
    THEN floor(extract(epoch FROM (doc::json ->> 'started_at')::timestamptz))::bigint * 1000 END
WHERE NOT removed;
CREATE INDEX campaigns_archived ON campaigns (workspace, archived_at, id) WHERE archived_at IS NOT NULL AND NOT removed;
-- == Ends and uses of API keys ==

-- The end of a key that nobody has revoked or replaced, and the time of the next warning before it. Keys that were made
-- before are looked at once, which fills both in.
ALTER TABLE api_keys ADD COLUMN ends_at bigint;
ALTER TABLE api_keys ADD COLUMN warn_at bigint;
UPDATE api_keys SET warn_at = 0 WHERE doc LIKE '%"expires_at":"%';
CREATE INDEX api_keys_by_end ON api_keys (ends_at) WHERE ends_at IS NOT NULL;
CREATE INDEX api_keys_by_warning ON api_keys (warn_at) WHERE warn_at IS NOT NULL;

-- The operations that keys were used for: the first time, and the last one with the address of the caller.
CREATE TABLE api_key_operations (
    id uuid NOT NULL,
    operation text COLLATE "C" NOT NULL,
    first_at bigint NOT NULL,
    used_at bigint NOT NULL,
    ip text COLLATE "C",
    PRIMARY KEY (id, operation)
) WITH (fillfactor = 50);
INSERT INTO api_keys ("workspace", "id", "prefix", "secret", "revision", "doc", "ends_at", "warn_at") OVERRIDING SYSTEM VALUE VALUES ('01010101-0101-0101-0101-010101010101', '03030303-0303-0303-0303-030303030303', 'mk_live_3', E'\\x2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b', '1', E'{"id":"key_030C1G60R30C1G60R30C1G60R3","workspace_id":"wsp_01040G2081040G2081040G2081","name":"deploy \\"bot\\"","prefix":"mk_live_3","secret_digest":"K7gNU3sdo-OL0wNhqoVWhr3g6s1xYv72ol_pe_Unols","scopes":["messages:send","contacts:write"],"rate_limit":600,"ip_allowlist":["10.0.0.0/8","2001:db8::1"],"created_at":"2023-11-14T22:13:20.005Z","expires_at":"2023-11-14T22:13:20.006Z","revoked_at":"2023-11-14T22:13:20.007Z"}', NULL, NULL);
INSERT INTO automation_versions ("automation", "version", "interest", "doc") OVERRIDING SYSTEM VALUE VALUES ('1', '1', '', '{"trigger":{"config":{"name":"cart_updated"},"kind":"event"},"graph":{"edges":[],"nodes":[{"id":"w","kind":"exit"}]},"re_entry":"after_exit","re_entry_key":"event.cart","masked":true}');
INSERT INTO automations ("n", "workspace", "id", "revision", "removed", "status", "version", "entry", "lanes", "doc") OVERRIDING SYSTEM VALUE VALUES ('1', '01010101-0101-0101-0101-010101010101', '0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a', '1', 'false', '1', '1', '{"event_where":["cart_updated",[{"op":"gte","property":"total","value":50}]]}', '[]', '{"id":"aut_0A1850M2GA1850M2GA1850M2GA","workspace_id":"wsp_01040G2081040G2081040G2081","name":"Cart «1»","status":"active","trigger":{"config":{"name":"cart_updated"},"kind":"event"},"graph":{"edges":[],"nodes":[{"id":"w","kind":"exit"}]},"re_entry":"after_exit","re_entry_key":"event.cart","masked":true,"version":1,"activated_at":"2023-11-14T22:13:20.038Z","created_at":"2023-11-14T22:13:20.037Z","updated_at":"2023-11-14T22:13:20.039Z"}');
INSERT INTO campaigns ("n", "workspace", "id", "revision", "removed", "status", "doc", "archived_at") OVERRIDING SYSTEM VALUE VALUES ('1', '01010101-0101-0101-0101-010101010101', '09090909-0909-0909-0909-090909090909', '1', 'false', '0', '{"id":"cmp_09144GJ289144GJ289144GJ289","workspace_id":"wsp_01040G2081040G2081040G2081","name":"Spring «1»","channel":"email","kind":"regular","template_id":"tpl_040G2081040G2081040G208104","subject_override":"Hello {{ name }}","from_name":null,"from_email":"news@acme.example","reply_to":null,"audience":{"list_ids":["lst_050M2GA1850M2GA1850M2GA185"],"segment_ids":["seg_0D1M6GT38D1M6GT38D1M6GT38D"],"exclude_list_ids":["lst_0E1R70W3GE1R70W3GE1R70W3GE"]},"variants":[],"settings":{"utm":null,"quiet_hours":null,"frequency_cap":null,"ab_test":null,"rate_limit":null},"status":"draft","phase":null,"scheduled_at":null,"wall_time":null,"schedule_called_at":null,"started_at":null,"completed_at":null,"recipients":null,"test_sent_at":null,"winner":null,"scores":[],"pause_reason":null,"failure_reason":null,"created_at":"2023-11-14T22:13:20.035Z","updated_at":"2023-11-14T22:13:20.036Z"}', NULL);
INSERT INTO contact_counts ("workspace_number", "shard", "contacts") OVERRIDING SYSTEM VALUE VALUES ('1', 0, '1');
INSERT INTO contacts ("n", "workspace_number", "id", "revision", "created_at", "updated_at", "marketing_email", "sms", "external_id", "email", "phone", "locale", "timezone", "tags", "attributes") OVERRIDING SYSTEM VALUE VALUES ('1099511627777', '1', '06060606-0606-0606-0606-060606060606', '1', '1700000000014', '1700000000015', 'true', 'false', 'user «6»', 'grete@example.org', '+37120000006', 'de-DE', 'Europe/Berlin', E'["vip","de \\"quoted\\""]', '{"age":31,"home":{"city":"Rīga"},"plan":"pro","ü":[1.5,"x",null]}');
INSERT INTO list_counts ("list", "shard", "members") OVERRIDING SYSTEM VALUE VALUES ('1', 0, '1');
INSERT INTO list_members ("list", "contact") OVERRIDING SYSTEM VALUE VALUES ('1', '1099511627777');
INSERT INTO lists ("n", "workspace_number", "id", "revision", "removed", "created_at", "updated_at", "name", "is_public", "is_double", "description") OVERRIDING SYSTEM VALUE VALUES ('1', '1', '05050505-0505-0505-0505-050505050505', '1', 'false', '1700000000016', '1700000000017', 'News «weekly»', 'false', 'false', NULL);
INSERT INTO members ("workspace", "user_id", "owner", "invited", "revision", "doc") OVERRIDING SYSTEM VALUE VALUES ('01010101-0101-0101-0101-010101010101', '02020202-0202-0202-0202-020202020202', 'true', 'false', '1', '{"workspace_id":"wsp_01040G2081040G2081040G2081","user_id":"usr_02081040G2081040G2081040G2","role":"owner","status":"active","invited_by":"ann@example.org","up_to":"admin","created_at":"2023-11-14T22:13:20.004Z"}');
INSERT INTO message_contents ("message", "workspace", "request") OVERRIDING SYSTEM VALUE VALUES ('07070707-0707-0707-0707-070707070707', '01010101-0101-0101-0101-010101010101', E'\\x7b226368616e6e656c223a22656d61696c222c22746f223a226772657465406578616d706c652e6f7267222c227375626a656374223a224772c3bcc39f65227d');
INSERT INTO message_events ("workspace", "message", "at", "id", "kind", "meta") OVERRIDING SYSTEM VALUE VALUES ('01010101-0101-0101-0101-010101010101', '07070707-0707-0707-0707-070707070707', '1700000000025', '08080808-0808-0808-0808-080808080808', '2', '{"code":250,"mx":"mx.example.org"}');
INSERT INTO messages ("workspace", "id", "revision", "status", "channel", "created_at", "updated_at", "recipient", "sender", "contact", "campaign", "automation", "template", "tags", "metadata", "variant", "hold_reason", "hold_until", "hold_since", "seen", "links", "skip", "sent_at", "delivered_at", "fallback_of", "has_fallback", "is_test") OVERRIDING SYSTEM VALUE VALUES ('01010101-0101-0101-0101-010101010101', '07070707-0707-0707-0707-070707070707', '1', '3', '0', '1700000000011', '1700000000012', 'Grete Hermann <grete@example.org>', 'news@acme.example', '06060606-0606-0606-0606-060606060606', '09090909-0909-0909-0909-090909090909', '0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a', '04040404-0404-0404-0404-040404040404', E'["welcome","de \\"quoted\\""]', '{"items":["a","b"],"order":17,"ü":null}', '3', '2', '1700000000023', '1700000000022', '9', '-9223372036854775803', '1', '1700000000024', '1700000000025', NULL, NULL, NULL);
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") OVERRIDING SYSTEM VALUE VALUES ('1', 'schema', '2026-01-01T00:00:00Z', '2397671213812541659');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") OVERRIDING SYSTEM VALUE VALUES ('10', 'api_keys', '2026-01-01T00:00:00Z', '14313694094945930261');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") OVERRIDING SYSTEM VALUE VALUES ('2', 'deliverability', '2026-01-01T00:00:00Z', '3768278264800666954');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") OVERRIDING SYSTEM VALUE VALUES ('3', 'requests_and_audit', '2026-01-01T00:00:00Z', '3466656550960596344');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") OVERRIDING SYSTEM VALUE VALUES ('4', 'search_and_images', '2026-01-01T00:00:00Z', '18213586667553488683');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") OVERRIDING SYSTEM VALUE VALUES ('5', 'public_lists', '2026-01-01T00:00:00Z', '2617362488891492795');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") OVERRIDING SYSTEM VALUE VALUES ('6', 'site_counters', '2026-01-01T00:00:00Z', '460980912877971920');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") OVERRIDING SYSTEM VALUE VALUES ('7', 'second_factor', '2026-01-01T00:00:00Z', '10764431387415063436');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") OVERRIDING SYSTEM VALUE VALUES ('8', 'oidc', '2026-01-01T00:00:00Z', '3718355276612804329');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") OVERRIDING SYSTEM VALUE VALUES ('9', 'archive', '2026-01-01T00:00:00Z', '5186085426724339509');
INSERT INTO suppressions ("workspace", "channel", "digest", "address", "id", "revision", "doc") OVERRIDING SYSTEM VALUE VALUES ('01010101-0101-0101-0101-010101010101', '0', E'\\x1778f79c5f88baa2af933bc6b04687cf5f47d46e60252492bf6044c9bedc9c8d', 'no@example.org', '0c0c0c0c-0c0c-0c0c-0c0c-0c0c0c0c0c0c', '1', '{"id":"sup_0C1G60R30C1G60R30C1G60R30C","workspace_id":"wsp_01040G2081040G2081040G2081","channel":"email","address":"no@example.org","reason":"bounce","detail":"550 5.1.1 user unknown","source":"system","created_at":"2023-11-14T22:13:20.010Z"}');
INSERT INTO tag_members ("tag", "contact") OVERRIDING SYSTEM VALUE VALUES ('1', '1099511627777');
INSERT INTO tag_members ("tag", "contact") OVERRIDING SYSTEM VALUE VALUES ('2', '1099511627777');
INSERT INTO tags ("n", "workspace_number", "tag") OVERRIDING SYSTEM VALUE VALUES ('1', '1', 'de "quoted"');
INSERT INTO tags ("n", "workspace_number", "tag") OVERRIDING SYSTEM VALUE VALUES ('2', '1', 'vip');
INSERT INTO template_versions ("workspace", "template", "version", "head", "doc") OVERRIDING SYSTEM VALUE VALUES ('01010101-0101-0101-0101-010101010101', '04040404-0404-0404-0404-040404040404', '1', '{"id":"tpl_040G2081040G2081040G208104","workspace_id":"wsp_01040G2081040G2081040G2081","channel":"email","version":1,"reverted_from":null,"name":"Order «new»","subject":"Order {{ order.id }}","preheader":"Grüße","from_name":"Acme","from_email":"shop@acme.example","reply_to":"help@acme.example","declared":["order.id"],"inline_css":true,"variables":["order.id","name"],"warnings":[{"code":"no_unsubscribe_link","message":"there is none"}],"parts":{"subject":true,"html":true,"text":true},"created_at":"2023-11-14T22:13:20.030Z","updated_at":"2023-11-14T22:13:20.031Z"}', E'{"id":"tpl_040G2081040G2081040G208104","workspace_id":"wsp_01040G2081040G2081040G2081","channel":"email","version":1,"reverted_from":null,"name":"Order «new»","subject":"Order {{ order.id }}","preheader":"Grüße","from_name":"Acme","from_email":"shop@acme.example","reply_to":"help@acme.example","html":"<p>{{ name }}</p>","mjml":"<mjml></mjml>","text":"Hi {{ name }}","declared":["order.id"],"inline_css":true,"ready":"<p style=\\"x:y\\">{{ name }}</p>","variables":["order.id","name"],"warnings":[{"code":"no_unsubscribe_link","message":"there is none"}],"parts":{"subject":true,"html":true,"text":true},"created_at":"2023-11-14T22:13:20.030Z","updated_at":"2023-11-14T22:13:20.031Z"}');
INSERT INTO templates ("workspace", "id", "channel", "revision", "version", "removed_at") OVERRIDING SYSTEM VALUE VALUES ('01010101-0101-0101-0101-010101010101', '04040404-0404-0404-0404-040404040404', '0', '1', '1', NULL);
INSERT INTO users ("id", "email", "revision", "doc") OVERRIDING SYSTEM VALUE VALUES ('02020202-0202-0202-0202-020202020202', 'ada@example.org', '1', '{"id":"usr_02081040G2081040G2081040G2","email":"ada@example.org","name":"Ада Лавлейс","password_hash":"$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA","password_version":3,"operator":true,"created_by":"wsp_070W3GE1R70W3GE1R70W3GE1R7","signed_in":true,"created_at":"2023-11-14T22:13:20.001Z"}');
INSERT INTO webhooks ("workspace", "id", "revision", "status", "doc") OVERRIDING SYSTEM VALUE VALUES ('01010101-0101-0101-0101-010101010101', '0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b', '1', 'paused', '{"id":"whk_0B1C5GP2RB1C5GP2RB1C5GP2RB","workspace_id":"wsp_01040G2081040G2081040G2081","url":"https://acme.com/hook?ü=1","events":["bounce","*"],"status":"paused","pii":true,"secret":"sealed:1:AAAA","previous_secret":["sealed:1:BBBB","2023-11-14T22:13:20.009Z"],"draining":true,"created_at":"2023-11-14T22:13:20.001Z","updated_at":"2023-11-14T22:13:20.002Z"}');
INSERT INTO workspace_numbers ("number", "workspace", "read_mask") OVERRIDING SYSTEM VALUE VALUES ('1', '01010101-0101-0101-0101-010101010101', '0');
INSERT INTO workspaces ("id", "revision", "doc") OVERRIDING SYSTEM VALUE VALUES ('01010101-0101-0101-0101-010101010101', '1', '{"id":"wsp_01040G2081040G2081040G2081","name":"Acme «Ltd»","timezone":"Europe/Riga","opt_out_keywords":["STOPP"],"created_at":"2023-11-14T22:13:20.003Z"}');
SELECT setval('automations_n_seq', 1);
SELECT setval('campaigns_n_seq', 1);
SELECT setval('changed_contact_texts_n_seq', 1);
SELECT setval('contact_numbers', 1);
SELECT setval('lists_n_seq', 1);
SELECT setval('tags_n_seq', 2);
SELECT setval('workspace_numbers_number_seq', 1);
