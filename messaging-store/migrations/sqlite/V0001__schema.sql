-- The schema of a database on SQLite.
--
-- Ids are the 16 bytes of a ULID, times are milliseconds since 1970, docs are the record as JSON. Enumerations are stored as
-- their position in the ALL list of their type.

-- == The installation ==

-- What holds for the database as a whole, by name: `key_check`, the check value of the secret key; `owner`, the
-- token of the program that does the jobs; `latest`, at least nearly the latest time that a job was dated at.
CREATE TABLE installation (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What the writer writes to find out whether the disk takes writes again; at most one row.
CREATE TABLE health_probe (
    n INTEGER PRIMARY KEY CHECK (n = 1),
    filler BLOB NOT NULL
) STRICT;

-- What was put aside because the database refused its outcome. Ids rise with time.
CREATE TABLE quarantined (
    id BLOB NOT NULL PRIMARY KEY,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Parts of the queue of which nothing is sent until they are resumed: the members that name them, as JSON.
CREATE TABLE suspensions (
    scope TEXT NOT NULL PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- == Users, and how they sign in ==

CREATE TABLE users (
    id BLOB NOT NULL PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    token BLOB NOT NULL PRIMARY KEY,
    id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    password_version INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- Apart from the document, so that noting a use does not rewrite it.
    used_at INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
CREATE UNIQUE INDEX sessions_by_user ON sessions (user_id, id);

-- What opens one session without a password.
CREATE TABLE tickets (
    digest BLOB NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tickets_by_expiry ON tickets (expires_at);

-- Failed sign-ins of the last hour. `network` is where one came from, `site` the same with a /48 of IPv6 as a whole;
-- `email` is a digest of the email and the network, `account` one of the email alone.
CREATE TABLE sign_in_failures (
    n INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    network BLOB NOT NULL,
    email BLOB NOT NULL,
    site BLOB NOT NULL DEFAULT x'',
    account BLOB NOT NULL DEFAULT x'',
    -- How many tries of the email had to wait for one another, this one included.
    slowed INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX sign_in_failures_by_email ON sign_in_failures (email, at);
CREATE INDEX sign_in_failures_by_network ON sign_in_failures (network, at);
CREATE INDEX sign_in_failures_by_site ON sign_in_failures (site, at);
CREATE INDEX sign_in_failures_by_account ON sign_in_failures (account, at);
CREATE INDEX sign_in_failures_by_time ON sign_in_failures (at);

-- == Workspaces, their members and API keys ==

CREATE TABLE workspaces (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Workspaces under deletion, and those that are gone, whose ids stay taken. `state`: 0 can be restored, 1 is being removed,
-- 2 is gone.
CREATE TABLE ending_workspaces (
    workspace BLOB NOT NULL PRIMARY KEY,
    deletes_at INTEGER NOT NULL,
    state INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Contacts, lists and tags refer to one another by numbers, which are narrow and keep the rows of an index side by side. A
-- contact's number is that of its workspace times 2^40 plus a count, so the contacts of a workspace stand together in the
-- order of their creation.
CREATE TABLE workspace_numbers (
    number INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL UNIQUE,
    -- The count of the newest contact; numbers of erased contacts are not used again.
    newest INTEGER NOT NULL,
    contacts INTEGER NOT NULL,
    -- What the dynamic segments of the workspace read of a contact, as the bits of `ReadMask`. What none of them reads need
    -- not be noted when it changes.
    read_mask INTEGER NOT NULL DEFAULT 0
) STRICT;

-- A membership opens nothing before its person has accepted: `invited` is 1 until then.
CREATE TABLE members (
    workspace BLOB NOT NULL,
    user_id BLOB NOT NULL,
    owner INTEGER NOT NULL,
    invited INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_user ON members (user_id, invited, workspace);

CREATE TABLE api_keys (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    prefix TEXT NOT NULL UNIQUE,
    -- The digest of the secret.
    secret BLOB NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX api_keys_by_id ON api_keys (id);
-- Keys are looked up by the digest of their secret, so that the prefix makes no difference in time.
CREATE INDEX api_keys_by_secret ON api_keys (secret);

-- Apart from the key, so that noting a use does not rewrite its document.
CREATE TABLE api_key_uses (
    id BLOB NOT NULL PRIMARY KEY,
    used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Remembered answers, by Idempotency-Key. In the order of arrival, which is nearly that of expiry: the sweep takes from the
-- front. The key comes first in the index so that keys that count upwards stay on one page.
CREATE TABLE replies (
    n INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    credential BLOB NOT NULL,
    route TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    fingerprint BLOB NOT NULL,
    status INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX replies_by_key ON replies (key, credential, route);
-- Whoever removes a workspace finds what is of it without reading the table: by the credential, and the answers to people by
-- the workspace that the route names.
CREATE INDEX replies_by_credential ON replies (credential);
CREATE INDEX replies_by_workspace ON replies (substr(route, instr(route, 'wsp_'), 30)) WHERE instr(route, 'wsp_') > 0;

-- == Settings of workspaces ==

CREATE TABLE channels (
    workspace BLOB NOT NULL,
    channel INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, channel)
) STRICT, WITHOUT ROWID;

CREATE TABLE sending_domains (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sending_domains_by_name ON sending_domains (workspace, name);
-- What comes back by mail names a domain, not a workspace.
CREATE INDEX sending_domains_by_name_alone ON sending_domains (name);

CREATE TABLE custom_fields (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX custom_fields_by_key ON custom_fields (workspace, key);

-- == Templates ==

-- A removed template stays, with its versions, until no message can need them.
CREATE TABLE templates (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    channel INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    version INTEGER NOT NULL,
    removed_at INTEGER,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX templates_removed ON templates (removed_at) WHERE removed_at IS NOT NULL;

-- Versions never change. The head is the document without its bodies and stands before it, so that a
-- listing reads no long column.
CREATE TABLE template_versions (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    template BLOB NOT NULL,
    version INTEGER NOT NULL,
    head TEXT NOT NULL,
    doc TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX template_versions_by_number ON template_versions (workspace, template, version);

-- == Messages ==

-- The narrow row that changes. What was asked for stands in message_contents and never changes.
CREATE TABLE messages (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    status INTEGER NOT NULL,
    channel INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- The row in message_contents; NULL once it is forgotten.
    content INTEGER,
    recipient TEXT NOT NULL,
    sender TEXT,
    contact BLOB,
    campaign BLOB,
    automation BLOB,
    template BLOB,
    tags TEXT,
    metadata TEXT,
    variant INTEGER,
    hold_reason INTEGER,
    hold_until INTEGER,
    hold_since INTEGER,
    -- Bits; as are the links.
    seen INTEGER NOT NULL DEFAULT 0,
    links INTEGER NOT NULL DEFAULT 0,
    skip INTEGER,
    sent_at INTEGER,
    delivered_at INTEGER,
    -- Which message a fallback stands for: the first of its chain; and whether another follows should a message not arrive.
    fallback_of BLOB,
    has_fallback INTEGER,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_by_contact ON messages (workspace, contact, id) WHERE contact IS NOT NULL;
CREATE INDEX messages_by_campaign ON messages (workspace, campaign, id) WHERE campaign IS NOT NULL;
CREATE INDEX messages_by_automation ON messages (workspace, automation, id) WHERE automation IS NOT NULL;
-- Deferred and the bad ends only: a message that goes well never touches this index.
CREATE INDEX messages_by_status ON messages (workspace, status, id) WHERE status >= 4;
-- The bad ends: few messages of a campaign, which are asked for by their state.
CREATE INDEX messages_by_campaign_and_status ON messages (workspace, campaign, status, id)
    WHERE campaign IS NOT NULL AND status >= 5;

-- In the order of acceptance, so that accepting appends and forgetting removes from the front.
CREATE TABLE message_contents (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    message BLOB NOT NULL,
    request BLOB NOT NULL
) STRICT;

CREATE TABLE message_events (
    workspace BLOB NOT NULL,
    message BLOB NOT NULL,
    at INTEGER NOT NULL,
    id BLOB NOT NULL,
    kind INTEGER NOT NULL,
    meta TEXT,
    PRIMARY KEY (workspace, message, at, id)
) STRICT, WITHOUT ROWID;

-- What was said on the wire, in the order of the attempts: recording appends, forgetting removes from
-- the front.
CREATE TABLE message_attempts (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    message BLOB NOT NULL,
    id BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    provider TEXT,
    doc TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX message_attempts_by_message ON message_attempts (workspace, message, id);

-- Which messages copy somebody, so that erasing that person finds them. Only messages with copies have rows. The
-- key is a MAC over workspace and address.
CREATE TABLE copied_recipients (
    workspace BLOB NOT NULL,
    key BLOB NOT NULL,
    message BLOB NOT NULL,
    PRIMARY KEY (workspace, key, message)
) STRICT, WITHOUT ROWID;

-- What the sandbox captured. A source of NULL is in a file. Rows of a few KiB: by number, because a table ordered by its key
-- would put all but a quarter page of each on pages of its own.
CREATE TABLE captures (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    message BLOB NOT NULL,
    channel INTEGER NOT NULL,
    captured_at INTEGER NOT NULL,
    recipient TEXT NOT NULL,
    sender TEXT,
    subject TEXT,
    source BLOB
) STRICT;
CREATE UNIQUE INDEX captures_by_message ON captures (workspace, message);

-- Blobs that were put, that no commit had named for long, and that none can name any more. Ids begin with their time.
CREATE TABLE abandoned_blobs (
    blob BLOB NOT NULL,
    workspace BLOB NOT NULL,
    PRIMARY KEY (blob, workspace)
) STRICT, WITHOUT ROWID;

-- Targets of redirected links. The key is the beginning of the SHA-256 digest of the URL.
CREATE TABLE urls (
    workspace BLOB NOT NULL,
    key BLOB NOT NULL,
    url TEXT NOT NULL,
    PRIMARY KEY (workspace, key)
) STRICT, WITHOUT ROWID;

-- == What comes back from providers, and suppressions ==

-- Providers' names for messages, by which their receipts name them. `provider` and `name` are as the provider writes
-- them; rows older than 30 days go when new ones come.
CREATE TABLE provider_links (
    workspace BLOB NOT NULL,
    channel INTEGER NOT NULL,
    provider TEXT NOT NULL,
    name TEXT NOT NULL,
    message BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (workspace, channel, provider, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX provider_links_by_age ON provider_links (at);
-- What a message shows of its provider is found by the message. Email has no rows here.
CREATE INDEX provider_links_by_message ON provider_links (message);

-- What came in over a channel and has had its effect: digests of the providers' names for it, so that what is repeated
-- changes nothing twice. Kept for 8 days.
CREATE TABLE inbound_notes (
    workspace BLOB NOT NULL,
    channel INTEGER NOT NULL,
    key BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (workspace, channel, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbound_notes_by_time ON inbound_notes (at);

-- Final soft bounces in a row, found by the SHA-256 of the address. Nearly empty: a delivery removes the row.
CREATE TABLE soft_bounces (
    workspace BLOB NOT NULL,
    channel INTEGER NOT NULL,
    digest BLOB NOT NULL,
    address TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (workspace, channel, digest)
) STRICT, WITHOUT ROWID;

-- The suppression list. A suppression is found by the SHA-256 of its address: every key is equally short.
CREATE TABLE suppressions (
    workspace BLOB NOT NULL,
    channel INTEGER NOT NULL,
    digest BLOB NOT NULL,
    address TEXT NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, channel, digest)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX suppressions_by_id ON suppressions (workspace, id);

-- == Webhooks and the event log ==

CREATE TABLE webhooks (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    status TEXT NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

-- Since when every attempt at a webhook has failed. No row: the last one went well, or there was none.
CREATE TABLE webhook_failures (
    workspace BLOB NOT NULL,
    webhook BLOB NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (workspace, webhook)
) STRICT, WITHOUT ROWID;

-- The payload is not stored but made of the event and its message at every attempt, so that nothing has to
-- be redacted here. Only tests bring their own.
CREATE TABLE webhook_deliveries (
    id BLOB NOT NULL PRIMARY KEY,
    workspace BLOB NOT NULL,
    webhook BLOB NOT NULL,
    status INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    event BLOB NOT NULL,
    type INTEGER NOT NULL,
    -- Where the event is: its message and its time. NULL: a test.
    message BLOB,
    at INTEGER,
    payload TEXT,
    created_at INTEGER NOT NULL,
    next_attempt_at INTEGER,
    delivered_at INTEGER,
    duration_ms INTEGER,
    response_status INTEGER,
    response_body TEXT,
    error INTEGER,
    replay_of BLOB,
    -- 1: waits to be sent in its order.
    backlog INTEGER NOT NULL,
    -- 1: the receiver never got the event by this delivery, and nobody has replayed it.
    missed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook, id);
-- Few deliveries touch these: one that goes well does not.
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (webhook, status, id) WHERE status >= 2;
CREATE INDEX webhook_deliveries_in_backlog ON webhook_deliveries (webhook, id) WHERE backlog = 1;
CREATE INDEX webhook_deliveries_missed ON webhook_deliveries (webhook, id) WHERE missed = 1;
CREATE INDEX webhook_deliveries_held ON webhook_deliveries (id) WHERE status = 3;
-- The deliveries of one message. Tests have none.
CREATE INDEX webhook_deliveries_by_message ON webhook_deliveries (message, id) WHERE message IS NOT NULL;
-- Whoever removes a workspace finds what is of it without reading the table.
CREATE INDEX webhook_deliveries_by_workspace ON webhook_deliveries (workspace);

-- The events of a workspace in the order in which they were committed. n grows with the clock, so that it
-- never comes again after old rows have gone.
CREATE TABLE event_log (
    workspace BLOB NOT NULL,
    n INTEGER NOT NULL,
    message BLOB NOT NULL,
    at INTEGER NOT NULL,
    event BLOB NOT NULL,
    PRIMARY KEY (workspace, n)
) STRICT, WITHOUT ROWID;

-- Workspaces whose events somebody asks for, and until when they are logged.
CREATE TABLE event_followers (
    workspace BLOB NOT NULL PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- == Jobs ==

CREATE TABLE jobs (
    lane TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    id BLOB NOT NULL,
    kind TEXT NOT NULL,
    payload BLOB NOT NULL,
    -- Runs in a row that failed: what a job waits for before its next run grows with them.
    failures INTEGER NOT NULL DEFAULT 0,
    -- What the clock said when `due_at` was decided.
    dated_at INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (lane, due_at, id)
) STRICT, WITHOUT ROWID;

-- One row for every lane that has jobs: when to look at it next. Lanes that are served again and
-- again in the same millisecond take turns.
CREATE TABLE lanes (
    lane TEXT NOT NULL PRIMARY KEY,
    next_at INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    -- The flow of a lane, class and workspace, as its text begins: what takes turns in claims.
    flow TEXT NOT NULL DEFAULT 't/-'
) STRICT, WITHOUT ROWID;
CREATE INDEX lanes_by_time ON lanes (next_at, turn, lane);
CREATE INDEX lanes_by_flow ON lanes (flow, next_at, turn, lane);

-- == Contacts, tags, lists and imports ==

-- By number, because rows are wide. NULL stands for empty tags and attributes.
CREATE TABLE contacts (
    n INTEGER PRIMARY KEY,
    workspace_number INTEGER NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    marketing_email INTEGER,
    sms INTEGER,
    external_id TEXT,
    email TEXT,
    phone TEXT,
    locale TEXT,
    timezone TEXT,
    tags TEXT,
    attributes TEXT
) STRICT;
CREATE UNIQUE INDEX contacts_by_id ON contacts (workspace_number, id);
CREATE UNIQUE INDEX contacts_by_external_id ON contacts (workspace_number, external_id) WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX contacts_by_email ON contacts (workspace_number, email) WHERE email IS NOT NULL;
CREATE UNIQUE INDEX contacts_by_phone ON contacts (workspace_number, phone) WHERE phone IS NOT NULL;

-- Contacts that are gone while some of their events are still there. The events become those of the merge target,
-- the contact that this one was merged into, a slice at a time; without one they are deleted.
CREATE TABLE deleted_contacts (
    n INTEGER PRIMARY KEY,
    workspace_number INTEGER NOT NULL,
    id BLOB NOT NULL,
    merge_target INTEGER
) STRICT;
CREATE UNIQUE INDEX deleted_contacts_by_id ON deleted_contacts (workspace_number, id);

-- The tags that contacts have, and who has them. A contact's own tags also stand in its row.
CREATE TABLE tags (
    n INTEGER PRIMARY KEY,
    workspace_number INTEGER NOT NULL,
    tag TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX tags_by_text ON tags (workspace_number, tag);

CREATE TABLE tag_members (
    tag INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    PRIMARY KEY (tag, contact)
) STRICT, WITHOUT ROWID;

-- A removed list stays until its members are let go.
CREATE TABLE lists (
    n INTEGER PRIMARY KEY,
    workspace_number INTEGER NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    contacts INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    name TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX lists_by_id ON lists (workspace_number, id);
CREATE INDEX lists_removed ON lists (n) WHERE removed;

CREATE TABLE list_members (
    list INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    PRIMARY KEY (list, contact)
) STRICT, WITHOUT ROWID;
CREATE INDEX list_members_by_contact ON list_members (contact, list);

-- Imports of contacts. The uploaded files are beside the database.
CREATE TABLE imports (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

-- Which rows were refused: the lines of the report, a slice of rows at a time. By import first, because
-- ids begin with their time and the oldest are let go.
CREATE TABLE import_errors (
    import BLOB NOT NULL,
    first_row INTEGER NOT NULL,
    workspace BLOB NOT NULL,
    lines TEXT NOT NULL,
    PRIMARY KEY (import, first_row)
) STRICT, WITHOUT ROWID;

-- == Product events: what contacts did, as the workspace's own programs tell it ==

-- An event names its contact by the contact's number and its name by a number too: there are few names, and the index holds
-- them once for each event.
CREATE TABLE event_names (
    n INTEGER PRIMARY KEY,
    workspace_number INTEGER NOT NULL,
    name TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_names_by_text ON event_names (workspace_number, name);

-- Numbered in the order of their arrival. NULL stands for empty properties.
CREATE TABLE product_events (
    n INTEGER PRIMARY KEY,
    contact INTEGER NOT NULL,
    name INTEGER NOT NULL,
    -- When it happened, which may be long before it arrived.
    at INTEGER NOT NULL,
    id BLOB NOT NULL,
    properties TEXT
) STRICT;
CREATE INDEX product_events_by_contact ON product_events (contact, name, at);

-- What callers call their events, so that a repetition is noticed. By the number of the event, so that what
-- expires first stands first.
CREATE TABLE event_unique_ids (
    event INTEGER PRIMARY KEY,
    workspace_number INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    unique_id TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_unique_ids_by_text ON event_unique_ids (workspace_number, unique_id);

-- == Segments, whom they hold, and the changes that lead to others ==

-- A removed segment stays until its members are let go.
CREATE TABLE segments (
    n INTEGER PRIMARY KEY,
    workspace_number INTEGER NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    status INTEGER NOT NULL,
    -- What its filter reads; nothing for a static segment, whose members nobody follows.
    read_mask INTEGER NOT NULL,
    members INTEGER NOT NULL,
    calculation INTEGER NOT NULL,
    calculated_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    name TEXT NOT NULL,
    filter TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX segments_by_id ON segments (workspace_number, id);
CREATE INDEX segments_removed ON segments (n) WHERE removed;

CREATE TABLE segment_members (
    segment INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    PRIMARY KEY (segment, contact)
) STRICT, WITHOUT ROWID;

-- Contacts that changed in something that a dynamic segment reads: in what, and a mark that is another after
-- every change, so that a note is taken away only by whoever saw all of it.
CREATE TABLE changed_contacts (
    contact INTEGER PRIMARY KEY,
    read_mask INTEGER NOT NULL,
    mark INTEGER NOT NULL,
    -- How many automations caused one another up to the change.
    depth INTEGER NOT NULL
) STRICT;

-- Addresses that came onto the suppression list or off it, of channels whose addresses no index finds: the
-- contacts of the workspace are looked through for them, up to which number so far. Automations hear of them too: when each
-- came or went, and by how many automations in a row that was caused.
CREATE TABLE changed_addresses (
    n INTEGER PRIMARY KEY,
    workspace_number INTEGER NOT NULL,
    channel INTEGER NOT NULL,
    address TEXT NOT NULL,
    looked_through INTEGER NOT NULL,
    at INTEGER NOT NULL,
    depth INTEGER NOT NULL
) STRICT;
CREATE INDEX changed_addresses_by_workspace ON changed_addresses (workspace_number);

-- == Campaigns; rows of which there are many name a campaign by its number ==

-- A removed campaign stays until what belongs to it is let go. Numbers are not used again before that.
CREATE TABLE campaigns (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    status INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX campaigns_by_id ON campaigns (workspace, id);
CREATE INDEX campaigns_by_status ON campaigns (workspace, status, id) WHERE NOT removed;
-- Scheduled, sending, paused.
CREATE INDEX campaigns_open ON campaigns (n) WHERE NOT removed AND status BETWEEN 1 AND 3;
CREATE INDEX campaigns_removed ON campaigns (n) WHERE removed;

-- Lists (0), segments (1) and templates (2) that open campaigns (kind of holder 0) and active automations (1) need.
CREATE TABLE holds (
    workspace BLOB NOT NULL,
    kind INTEGER NOT NULL,
    id BLOB NOT NULL,
    holder_kind INTEGER NOT NULL,
    holder BLOB NOT NULL,
    PRIMARY KEY (workspace, kind, id, holder_kind, holder)
) STRICT, WITHOUT ROWID;
CREATE INDEX holds_by_holder ON holds (workspace, holder_kind, holder);

-- Apart from the campaign, so that jobs do not change what people change.
CREATE TABLE campaign_progress (
    campaign INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT;

-- Frozen audiences. A piece is the contacts whose numbers have all but the last 16 bits in common; a row holds the last
-- 16 bits of those who have something in common: a verdict (kind 0 to 4), or that they are recipients who are due at the
-- same time (5); kind 6 are recipients of the test group. `places` is as `Bits` encodes it.
CREATE TABLE campaign_audience (
    campaign INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    piece INTEGER NOT NULL,
    places BLOB NOT NULL,
    PRIMARY KEY (campaign, kind, due_at, piece)
) STRICT, WITHOUT ROWID;

-- Digests of addresses that recipients of an unfinished audience have, 8 bytes each in rising order; a row for each commit
-- that took some.
CREATE TABLE campaign_addresses (
    campaign INTEGER NOT NULL,
    n INTEGER NOT NULL,
    digests BLOB NOT NULL,
    PRIMARY KEY (campaign, n)
) STRICT, WITHOUT ROWID;

-- Addresses of recipients that other recipients of the campaign have: for each piece the last 16 bits of the contact's
-- number and the digest of the address, 10 bytes each, until all messages are made.
CREATE TABLE campaign_left_out (
    campaign INTEGER NOT NULL,
    piece INTEGER NOT NULL,
    entries BLOB NOT NULL,
    PRIMARY KEY (campaign, piece)
) STRICT, WITHOUT ROWID;

-- Messages that have no job yet.
CREATE TABLE campaign_waiting (
    campaign INTEGER NOT NULL,
    track INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    message BLOB NOT NULL,
    PRIMARY KEY (campaign, track, due_at, message)
) STRICT, WITHOUT ROWID;

-- Messages of which something was seen, by its bit.
CREATE TABLE campaign_engagements (
    campaign INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    message BLOB NOT NULL,
    PRIMARY KEY (campaign, seen, message)
) STRICT, WITHOUT ROWID;

-- When marketing messages to a contact began: four bytes each, seconds since 1970. `last_at` is the last of them.
CREATE TABLE contact_sends (
    contact INTEGER NOT NULL,
    channel INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    times BLOB NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (contact, channel)
) STRICT, WITHOUT ROWID;

-- == Automations; rows of which there are many name an automation by its number ==

-- A removed automation stays until what belongs to it is let go. Numbers are not used again before that.
CREATE TABLE automations (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    status INTEGER NOT NULL,
    version INTEGER NOT NULL,
    -- What enters contacts, and the lanes of the jobs; both as JSON.
    entry TEXT,
    lanes TEXT NOT NULL,
    doc TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX automations_by_id ON automations (workspace, id);
CREATE INDEX automations_by_status ON automations (workspace, status, id) WHERE NOT removed;
CREATE INDEX automations_removed ON automations (n) WHERE removed;

-- `runs` counts the rows of runs that name it; `interest` is what those wait for.
CREATE TABLE automation_versions (
    automation INTEGER NOT NULL,
    version INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    interest TEXT NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (automation, version)
) STRICT;
CREATE INDEX automation_versions_unused ON automation_versions (automation, version) WHERE runs = 0;

-- Nodes of all versions, with how often they were reached and how many open runs stand at them.
CREATE TABLE automation_nodes (
    n INTEGER PRIMARY KEY,
    automation INTEGER NOT NULL,
    id TEXT NOT NULL,
    entered INTEGER NOT NULL,
    waiting INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX automation_nodes_by_id ON automation_nodes (automation, id);

-- How often a branch of a node was taken.
CREATE TABLE automation_branches (
    node INTEGER NOT NULL,
    branch TEXT NOT NULL,
    taken INTEGER NOT NULL,
    PRIMARY KEY (node, branch)
) STRICT, WITHOUT ROWID;

-- How many runs are in each state, without refused entries.
CREATE TABLE automation_run_counts (
    automation INTEGER NOT NULL,
    status INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    PRIMARY KEY (automation, status)
) STRICT, WITHOUT ROWID;

-- The row is the timer. `arrived` counts from `entered_at`. An entry event that was accepted at `entered_at` is kept
-- without the six bytes of its id that say so. A share of the contacts is those whose numbers have the last two bits in
-- common.
CREATE TABLE automation_runs (
    automation INTEGER NOT NULL,
    id BLOB NOT NULL,
    contact INTEGER NOT NULL,
    version INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    status INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    entered_at INTEGER NOT NULL,
    arrived INTEGER NOT NULL,
    due_at INTEGER,
    ended_at INTEGER,
    node INTEGER,
    entry_event BLOB,
    held TEXT,
    exit_reason TEXT,
    -- 1: the run waits where it began and keeps no row of steps: that it entered, and waits from `arrived` until `due_at`,
    -- stands in this row. The row of steps is written when it goes on.
    untold INTEGER NOT NULL,
    PRIMARY KEY (automation, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX automation_runs_due ON automation_runs (automation, contact & 3, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX automation_runs_by_contact ON automation_runs (contact, automation, ended_at, version);
CREATE INDEX automation_runs_ended ON automation_runs (ended_at) WHERE ended_at IS NOT NULL;

-- What of a run never changes and may be large; only where there is something.
CREATE TABLE automation_run_inputs (
    automation INTEGER NOT NULL,
    run BLOB NOT NULL,
    event TEXT,
    key TEXT,
    PRIMARY KEY (automation, run)
) STRICT, WITHOUT ROWID;

-- The steps of a commit, in one row.
CREATE TABLE automation_run_steps (
    automation INTEGER NOT NULL,
    run BLOB NOT NULL,
    revision INTEGER NOT NULL,
    steps TEXT NOT NULL,
    PRIMARY KEY (automation, run, revision)
) STRICT, WITHOUT ROWID;

CREATE TABLE automation_messages (
    message BLOB PRIMARY KEY,
    automation INTEGER NOT NULL,
    run BLOB NOT NULL,
    node INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX automation_messages_by_run ON automation_messages (automation, run);

-- `key` is empty where there is none; JSON never is.
CREATE TABLE automation_entries (
    automation INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    entered_at INTEGER NOT NULL,
    PRIMARY KEY (automation, contact, key)
) STRICT, WITHOUT ROWID;

-- What happened to contacts, in the order of the commits. `what` holds ids, by kind; `event` is the number of a product
-- event, the time of an event of a message.
CREATE TABLE automation_notes (
    automation INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    n INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    may_enter INTEGER NOT NULL,
    event INTEGER,
    what BLOB NOT NULL,
    PRIMARY KEY (automation, shard, n)
) STRICT, WITHOUT ROWID;

-- The number of the last note. None is used again, so that whoever takes up to one that is gone finds out.
CREATE TABLE automation_note_number (n INTEGER NOT NULL) STRICT;
INSERT INTO automation_note_number (n) VALUES (0);

-- Moments of dates. Those that were taken stay for a while, so that they are not kept again.
CREATE TABLE automation_date_fires (
    automation INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    taken INTEGER NOT NULL,
    PRIMARY KEY (automation, contact, due_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX automation_date_fires_due ON automation_date_fires (automation, contact & 3, due_at) WHERE NOT taken;
CREATE INDEX automation_date_fires_taken ON automation_date_fires (due_at) WHERE taken;

-- Contacts that are gone while runs of theirs are still there, to be deleted a slice at a time.
CREATE TABLE automation_deleted_contacts (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

-- == Counters ==

-- What the messages of a campaign count for, a row for each variant that has any. Each number is the sum over the
-- variant's messages, but for opens, clicks and machine_opens, which count events.
CREATE TABLE campaign_counts (
    campaign INTEGER NOT NULL,
    -- The place of the variant; 0 in a campaign that compares none.
    variant INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    sending INTEGER NOT NULL,
    deferred INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    bounces INTEGER NOT NULL,
    complaints INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    skipped_suppressed INTEGER NOT NULL,
    skipped_no_consent INTEGER NOT NULL,
    skipped_frequency_cap INTEGER NOT NULL,
    unique_opens INTEGER NOT NULL,
    unique_clicks INTEGER NOT NULL,
    unsubscribes INTEGER NOT NULL,
    unique_machine_opens INTEGER NOT NULL,
    opens INTEGER NOT NULL,
    clicks INTEGER NOT NULL,
    machine_opens INTEGER NOT NULL,
    PRIMARY KEY (campaign, variant)
) STRICT, WITHOUT ROWID;

-- What was counted in each quarter of an hour, counted from 1970, of all messages of a workspace by channel and source:
-- 0 requests, 1 campaigns, 2 automations.
CREATE TABLE activity (
    workspace BLOB NOT NULL,
    quarter INTEGER NOT NULL,
    channel INTEGER NOT NULL,
    source INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    bounces INTEGER NOT NULL,
    complaints INTEGER NOT NULL,
    unique_opens INTEGER NOT NULL,
    unique_clicks INTEGER NOT NULL,
    unsubscribes INTEGER NOT NULL,
    opens INTEGER NOT NULL,
    clicks INTEGER NOT NULL,
    PRIMARY KEY (workspace, quarter, channel, source)
) STRICT, WITHOUT ROWID;

-- The same of each campaign.
CREATE TABLE campaign_activity (
    campaign INTEGER NOT NULL,
    quarter INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    bounces INTEGER NOT NULL,
    complaints INTEGER NOT NULL,
    unique_opens INTEGER NOT NULL,
    unique_clicks INTEGER NOT NULL,
    unsubscribes INTEGER NOT NULL,
    opens INTEGER NOT NULL,
    clicks INTEGER NOT NULL,
    PRIMARY KEY (campaign, quarter)
) STRICT, WITHOUT ROWID;

-- How often each link of a campaign was followed, by the link's number in the template of its variant.
CREATE TABLE campaign_links (
    campaign INTEGER NOT NULL,
    variant INTEGER NOT NULL,
    link INTEGER NOT NULL,
    url TEXT NOT NULL,
    clicks INTEGER NOT NULL,
    unique_clicks INTEGER NOT NULL,
    PRIMARY KEY (campaign, variant, link)
) STRICT, WITHOUT ROWID;

-- How many product events of a name happened in each quarter of an hour.
CREATE TABLE product_event_activity (
    name INTEGER NOT NULL,
    quarter INTEGER NOT NULL,
    events INTEGER NOT NULL,
    PRIMARY KEY (name, quarter)
) STRICT, WITHOUT ROWID;
