CREATE TABLE refinery_schema_history (
    version int4 PRIMARY KEY, name VARCHAR(255), applied_on VARCHAR(255), checksum VARCHAR(255));
CREATE TABLE installation (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE health_probe (
    n INTEGER PRIMARY KEY CHECK (n = 1),
    filler BLOB NOT NULL
) STRICT;
CREATE TABLE quarantined (
    id BLOB NOT NULL PRIMARY KEY,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE suspensions (
    scope TEXT NOT NULL PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE tickets (
    digest BLOB NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tickets_by_expiry ON tickets (expires_at);
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
CREATE TABLE workspaces (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE ending_workspaces (
    workspace BLOB NOT NULL PRIMARY KEY,
    deletes_at INTEGER NOT NULL,
    state INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
    doc TEXT NOT NULL, ends_at INTEGER, warn_at INTEGER,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX api_keys_by_id ON api_keys (id);
CREATE INDEX api_keys_by_secret ON api_keys (secret);
CREATE TABLE api_key_uses (
    id BLOB NOT NULL PRIMARY KEY,
    used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE INDEX replies_by_credential ON replies (credential);
CREATE INDEX replies_by_workspace ON replies (substr(route, instr(route, 'wsp_'), 30)) WHERE instr(route, 'wsp_') > 0;
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
CREATE TABLE template_versions (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    template BLOB NOT NULL,
    version INTEGER NOT NULL,
    head TEXT NOT NULL,
    doc TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX template_versions_by_number ON template_versions (workspace, template, version);
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
    has_fallback INTEGER, is_test INTEGER,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_by_contact ON messages (workspace, contact, id) WHERE contact IS NOT NULL;
CREATE INDEX messages_by_campaign ON messages (workspace, campaign, id) WHERE campaign IS NOT NULL;
CREATE INDEX messages_by_automation ON messages (workspace, automation, id) WHERE automation IS NOT NULL;
CREATE INDEX messages_by_status ON messages (workspace, status, id) WHERE status >= 4;
CREATE INDEX messages_by_campaign_and_status ON messages (workspace, campaign, status, id)
    WHERE campaign IS NOT NULL AND status >= 5;
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
CREATE TABLE copied_recipients (
    workspace BLOB NOT NULL,
    key BLOB NOT NULL,
    message BLOB NOT NULL,
    PRIMARY KEY (workspace, key, message)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE abandoned_blobs (
    blob BLOB NOT NULL,
    workspace BLOB NOT NULL,
    PRIMARY KEY (blob, workspace)
) STRICT, WITHOUT ROWID;
CREATE TABLE urls (
    workspace BLOB NOT NULL,
    key BLOB NOT NULL,
    url TEXT NOT NULL,
    PRIMARY KEY (workspace, key)
) STRICT, WITHOUT ROWID;
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
CREATE INDEX provider_links_by_message ON provider_links (message);
CREATE TABLE inbound_notes (
    workspace BLOB NOT NULL,
    channel INTEGER NOT NULL,
    key BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (workspace, channel, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbound_notes_by_time ON inbound_notes (at);
CREATE TABLE soft_bounces (
    workspace BLOB NOT NULL,
    channel INTEGER NOT NULL,
    digest BLOB NOT NULL,
    address TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (workspace, channel, digest)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE webhooks (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    status TEXT NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE webhook_failures (
    workspace BLOB NOT NULL,
    webhook BLOB NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (workspace, webhook)
) STRICT, WITHOUT ROWID;
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
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (webhook, status, id) WHERE status >= 2;
CREATE INDEX webhook_deliveries_in_backlog ON webhook_deliveries (webhook, id) WHERE backlog = 1;
CREATE INDEX webhook_deliveries_missed ON webhook_deliveries (webhook, id) WHERE missed = 1;
CREATE INDEX webhook_deliveries_held ON webhook_deliveries (id) WHERE status = 3;
CREATE INDEX webhook_deliveries_by_message ON webhook_deliveries (message, id) WHERE message IS NOT NULL;
CREATE INDEX webhook_deliveries_by_workspace ON webhook_deliveries (workspace);
CREATE TABLE event_log (
    workspace BLOB NOT NULL,
    n INTEGER NOT NULL,
    message BLOB NOT NULL,
    at INTEGER NOT NULL,
    event BLOB NOT NULL,
    PRIMARY KEY (workspace, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE event_followers (
    workspace BLOB NOT NULL PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE lanes (
    lane TEXT NOT NULL PRIMARY KEY,
    next_at INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    -- The flow of a lane, class and workspace, as its text begins: what takes turns in claims.
    flow TEXT NOT NULL DEFAULT 't/-'
) STRICT, WITHOUT ROWID;
CREATE INDEX lanes_by_time ON lanes (next_at, turn, lane);
CREATE INDEX lanes_by_flow ON lanes (flow, next_at, turn, lane);
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
CREATE TABLE deleted_contacts (
    n INTEGER PRIMARY KEY,
    workspace_number INTEGER NOT NULL,
    id BLOB NOT NULL,
    merge_target INTEGER
) STRICT;
CREATE UNIQUE INDEX deleted_contacts_by_id ON deleted_contacts (workspace_number, id);
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
, is_public INTEGER NOT NULL DEFAULT 0, is_double INTEGER NOT NULL DEFAULT 0, description TEXT) STRICT;
CREATE UNIQUE INDEX lists_by_id ON lists (workspace_number, id);
CREATE INDEX lists_removed ON lists (n) WHERE removed;
CREATE TABLE list_members (
    list INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    PRIMARY KEY (list, contact)
) STRICT, WITHOUT ROWID;
CREATE INDEX list_members_by_contact ON list_members (contact, list);
CREATE TABLE imports (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE import_errors (
    import BLOB NOT NULL,
    first_row INTEGER NOT NULL,
    workspace BLOB NOT NULL,
    lines TEXT NOT NULL,
    PRIMARY KEY (import, first_row)
) STRICT, WITHOUT ROWID;
CREATE TABLE event_names (
    n INTEGER PRIMARY KEY,
    workspace_number INTEGER NOT NULL,
    name TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_names_by_text ON event_names (workspace_number, name);
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
CREATE TABLE event_unique_ids (
    event INTEGER PRIMARY KEY,
    workspace_number INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    unique_id TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_unique_ids_by_text ON event_unique_ids (workspace_number, unique_id);
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
CREATE TABLE changed_contacts (
    contact INTEGER PRIMARY KEY,
    read_mask INTEGER NOT NULL,
    mark INTEGER NOT NULL,
    -- How many automations caused one another up to the change.
    depth INTEGER NOT NULL
) STRICT;
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
CREATE TABLE campaigns (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    status INTEGER NOT NULL,
    doc TEXT NOT NULL
, archived_at INTEGER) STRICT;
CREATE UNIQUE INDEX campaigns_by_id ON campaigns (workspace, id);
CREATE INDEX campaigns_by_status ON campaigns (workspace, status, id) WHERE NOT removed;
CREATE INDEX campaigns_open ON campaigns (n) WHERE NOT removed AND status BETWEEN 1 AND 3;
CREATE INDEX campaigns_removed ON campaigns (n) WHERE removed;
CREATE TABLE holds (
    workspace BLOB NOT NULL,
    kind INTEGER NOT NULL,
    id BLOB NOT NULL,
    holder_kind INTEGER NOT NULL,
    holder BLOB NOT NULL,
    PRIMARY KEY (workspace, kind, id, holder_kind, holder)
) STRICT, WITHOUT ROWID;
CREATE INDEX holds_by_holder ON holds (workspace, holder_kind, holder);
CREATE TABLE campaign_progress (
    campaign INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT;
CREATE TABLE campaign_audience (
    campaign INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    piece INTEGER NOT NULL,
    places BLOB NOT NULL,
    PRIMARY KEY (campaign, kind, due_at, piece)
) STRICT, WITHOUT ROWID;
CREATE TABLE campaign_addresses (
    campaign INTEGER NOT NULL,
    n INTEGER NOT NULL,
    digests BLOB NOT NULL,
    PRIMARY KEY (campaign, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE campaign_left_out (
    campaign INTEGER NOT NULL,
    piece INTEGER NOT NULL,
    entries BLOB NOT NULL,
    PRIMARY KEY (campaign, piece)
) STRICT, WITHOUT ROWID;
CREATE TABLE campaign_waiting (
    campaign INTEGER NOT NULL,
    track INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    message BLOB NOT NULL,
    PRIMARY KEY (campaign, track, due_at, message)
) STRICT, WITHOUT ROWID;
CREATE TABLE campaign_engagements (
    campaign INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    message BLOB NOT NULL,
    PRIMARY KEY (campaign, seen, message)
) STRICT, WITHOUT ROWID;
CREATE TABLE contact_sends (
    contact INTEGER NOT NULL,
    channel INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    times BLOB NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (contact, channel)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE automation_versions (
    automation INTEGER NOT NULL,
    version INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    interest TEXT NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (automation, version)
) STRICT;
CREATE INDEX automation_versions_unused ON automation_versions (automation, version) WHERE runs = 0;
CREATE TABLE automation_nodes (
    n INTEGER PRIMARY KEY,
    automation INTEGER NOT NULL,
    id TEXT NOT NULL,
    entered INTEGER NOT NULL,
    waiting INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX automation_nodes_by_id ON automation_nodes (automation, id);
CREATE TABLE automation_branches (
    node INTEGER NOT NULL,
    branch TEXT NOT NULL,
    taken INTEGER NOT NULL,
    PRIMARY KEY (node, branch)
) STRICT, WITHOUT ROWID;
CREATE TABLE automation_run_counts (
    automation INTEGER NOT NULL,
    status INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    PRIMARY KEY (automation, status)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE automation_run_inputs (
    automation INTEGER NOT NULL,
    run BLOB NOT NULL,
    event TEXT,
    key TEXT,
    PRIMARY KEY (automation, run)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE automation_entries (
    automation INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    entered_at INTEGER NOT NULL,
    PRIMARY KEY (automation, contact, key)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE automation_note_number (n INTEGER NOT NULL) STRICT;
CREATE TABLE automation_date_fires (
    automation INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    taken INTEGER NOT NULL,
    PRIMARY KEY (automation, contact, due_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX automation_date_fires_due ON automation_date_fires (automation, contact & 3, due_at) WHERE NOT taken;
CREATE INDEX automation_date_fires_taken ON automation_date_fires (due_at) WHERE taken;
CREATE TABLE automation_deleted_contacts (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE campaign_links (
    campaign INTEGER NOT NULL,
    variant INTEGER NOT NULL,
    link INTEGER NOT NULL,
    url TEXT NOT NULL,
    clicks INTEGER NOT NULL,
    unique_clicks INTEGER NOT NULL,
    PRIMARY KEY (campaign, variant, link)
) STRICT, WITHOUT ROWID;
CREATE TABLE product_event_activity (
    name INTEGER NOT NULL,
    quarter INTEGER NOT NULL,
    events INTEGER NOT NULL,
    PRIMARY KEY (name, quarter)
) STRICT, WITHOUT ROWID;
CREATE TABLE ip_pools (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX ip_pools_by_name ON ip_pools (workspace, name);
CREATE INDEX ip_pools_by_id ON ip_pools (id);
CREATE TABLE ip_grants (
    workspace BLOB NOT NULL,
    ip TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    PRIMARY KEY (workspace, ip)
) STRICT, WITHOUT ROWID;
CREATE TABLE sources (
    ip TEXT NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE paths (
    ip TEXT NOT NULL,
    site TEXT NOT NULL,
    revision INTEGER NOT NULL,
    sent_today INTEGER NOT NULL,
    day INTEGER NOT NULL,
    is_stopped INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (ip, site)
) STRICT, WITHOUT ROWID;
CREATE INDEX paths_by_age ON paths (updated_at) WHERE is_stopped = 0;
CREATE TABLE sts_policies (
    domain TEXT NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sts_policies_by_expiry ON sts_policies (expires_at);
CREATE INDEX sending_domains_by_id ON sending_domains (id);
CREATE TABLE domain_reports (
    workspace BLOB NOT NULL,
    domain BLOB NOT NULL,
    key BLOB NOT NULL,
    purpose INTEGER NOT NULL,
    day INTEGER NOT NULL,
    reporter TEXT NOT NULL,
    verified INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (workspace, domain, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX domain_reports_by_domain ON domain_reports (workspace, domain, day);
CREATE INDEX domain_reports_by_day ON domain_reports (day);
CREATE TABLE dmarc_rows (
    workspace BLOB NOT NULL,
    domain BLOB NOT NULL,
    day INTEGER NOT NULL,
    reporter TEXT NOT NULL,
    source TEXT NOT NULL,
    result INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    PRIMARY KEY (workspace, domain, day, reporter, source, result)
) STRICT, WITHOUT ROWID;
CREATE INDEX dmarc_rows_by_day ON dmarc_rows (day);
CREATE TABLE tls_rows (
    workspace BLOB NOT NULL,
    domain BLOB NOT NULL,
    id BLOB NOT NULL,
    day INTEGER NOT NULL,
    reporter TEXT NOT NULL,
    mx TEXT NOT NULL,
    result TEXT NOT NULL,
    sessions INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    PRIMARY KEY (workspace, domain, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tls_rows_by_day ON tls_rows (day);
CREATE TABLE api_requests (
    workspace BLOB NOT NULL,
    key BLOB NOT NULL,
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    operation TEXT NOT NULL,
    status INTEGER NOT NULL,
    code TEXT,
    duration_ms INTEGER NOT NULL,
    request_bytes INTEGER NOT NULL,
    key_id TEXT,
    user_id TEXT,
    ip TEXT,
    user_agent TEXT,
    idempotency_key TEXT,
    resource_id TEXT,
    PRIMARY KEY (workspace, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX api_requests_by_id ON api_requests (workspace, id);
CREATE TABLE api_request_bodies (
    workspace BLOB NOT NULL,
    key BLOB NOT NULL,
    request TEXT,
    response TEXT,
    PRIMARY KEY (workspace, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE audit_log (
    workspace BLOB NOT NULL,
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor_kind TEXT NOT NULL,
    actor TEXT,
    operation TEXT NOT NULL,
    resource_kind TEXT NOT NULL,
    resource TEXT,
    doc TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (workspace, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE audit_chains (
    workspace BLOB NOT NULL PRIMARY KEY,
    n INTEGER NOT NULL,
    hash BLOB NOT NULL,
    anchor_n INTEGER NOT NULL,
    anchor_hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE images (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX images_by_digest ON images (workspace, sha256);
CREATE TABLE image_bytes (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX image_bytes_by_id ON image_bytes (workspace, id);
CREATE TABLE contact_texts (
    block INTEGER PRIMARY KEY,
    shown TEXT NOT NULL,
    hidden TEXT NOT NULL
) STRICT;
CREATE TABLE changed_contact_texts (
    n INTEGER PRIMARY KEY,
    block INTEGER NOT NULL
) STRICT;
CREATE TRIGGER contacts_begin_to_be_found AFTER INSERT ON contacts BEGIN
    INSERT INTO changed_contact_texts (block) VALUES (new.n >> 5);
END;
CREATE TRIGGER contacts_are_found_anew AFTER UPDATE OF external_id, email, phone, attributes ON contacts
WHEN old.external_id IS NOT new.external_id OR old.email IS NOT new.email OR old.phone IS NOT new.phone
    OR old.attributes IS NOT new.attributes
BEGIN
    INSERT INTO changed_contact_texts (block) VALUES (new.n >> 5);
END;
CREATE TRIGGER contacts_end_to_be_found AFTER DELETE ON contacts BEGIN
    INSERT INTO changed_contact_texts (block) VALUES (old.n >> 5);
END;
CREATE TABLE message_texts (
    n INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    first BLOB NOT NULL,
    last BLOB NOT NULL,
    messages INTEGER NOT NULL,
    is_due INTEGER NOT NULL,
    is_aged INTEGER NOT NULL,
    shown TEXT NOT NULL,
    hidden TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX message_texts_by_first ON message_texts (workspace, first);
CREATE INDEX message_texts_due ON message_texts (workspace, first) WHERE is_due;
CREATE INDEX message_texts_by_age ON message_texts (last) WHERE NOT is_aged;
CREATE INDEX lists_public ON lists (workspace_number, id) WHERE is_public;
CREATE TABLE list_subscriptions (
    list INTEGER NOT NULL,
    contact INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    status INTEGER NOT NULL,
    since INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (list, contact)
) STRICT, WITHOUT ROWID;
CREATE INDEX list_subscriptions_by_contact ON list_subscriptions (contact, list);
CREATE INDEX list_subscriptions_unconfirmed ON list_subscriptions (since) WHERE status = 0;
CREATE TABLE forms (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE site_activity (
    workspace BLOB NOT NULL,
    quarter INTEGER NOT NULL,
    site TEXT NOT NULL,
    accepted INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    deferred INTEGER NOT NULL,
    bounced_hard INTEGER NOT NULL,
    bounced_soft INTEGER NOT NULL,
    complaints INTEGER NOT NULL,
    opened_human INTEGER NOT NULL,
    over_tls INTEGER NOT NULL,
    within_1 INTEGER NOT NULL,
    within_2 INTEGER NOT NULL,
    within_5 INTEGER NOT NULL,
    within_10 INTEGER NOT NULL,
    within_30 INTEGER NOT NULL,
    within_60 INTEGER NOT NULL,
    within_300 INTEGER NOT NULL,
    within_900 INTEGER NOT NULL,
    within_3600 INTEGER NOT NULL,
    within_14400 INTEGER NOT NULL,
    within_86400 INTEGER NOT NULL,
    later INTEGER NOT NULL,
    PRIMARY KEY (workspace, quarter, site)
) STRICT, WITHOUT ROWID;
CREATE INDEX site_activity_by_quarter ON site_activity (quarter);
CREATE TABLE factors (
    user_id BLOB NOT NULL,
    id BLOB NOT NULL,
    expires_at INTEGER,
    revision INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (user_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX factors_by_id ON factors (id);
CREATE INDEX factors_by_expiry ON factors (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE recovery_codes (
    user_id BLOB NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (user_id, digest)
) STRICT, WITHOUT ROWID;
CREATE TABLE pending_sign_ins (
    digest BLOB NOT NULL PRIMARY KEY,
    user_id BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    -- Apart from the document, so that counting does not rewrite it.
    tries INTEGER NOT NULL,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pending_sign_ins_by_user ON pending_sign_ins (user_id);
CREATE INDEX pending_sign_ins_by_expiry ON pending_sign_ins (expires_at);
CREATE TABLE linked_identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id BLOB NOT NULL,
    linked_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX linked_identities_by_user ON linked_identities (user_id);
CREATE INDEX campaigns_archived ON campaigns (workspace, archived_at, id) WHERE archived_at IS NOT NULL AND NOT removed;
CREATE INDEX api_keys_by_end ON api_keys (ends_at) WHERE ends_at IS NOT NULL;
CREATE INDEX api_keys_by_warning ON api_keys (warn_at) WHERE warn_at IS NOT NULL;
CREATE TABLE api_key_operations (
    id BLOB NOT NULL,
    operation TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    ip TEXT,
    PRIMARY KEY (id, operation)
) STRICT, WITHOUT ROWID;
INSERT INTO api_keys ("workspace", "id", "prefix", "secret", "revision", "doc", "ends_at", "warn_at") VALUES (X'01010101010101010101010101010101', X'03030303030303030303030303030303', 'mk_live_3', X'2BB80D537B1DA3E38BD30361AA855686BDE0EACD7162FEF6A25FE97BF527A25B', 1, '{"id":"key_030C1G60R30C1G60R30C1G60R3","workspace_id":"wsp_01040G2081040G2081040G2081","name":"deploy \"bot\"","prefix":"mk_live_3","secret_digest":"K7gNU3sdo-OL0wNhqoVWhr3g6s1xYv72ol_pe_Unols","scopes":["messages:send","contacts:write"],"rate_limit":600,"ip_allowlist":["10.0.0.0/8","2001:db8::1"],"created_at":"2023-11-14T22:13:20.005Z","expires_at":"2023-11-14T22:13:20.006Z","revoked_at":"2023-11-14T22:13:20.007Z"}', NULL, NULL);
INSERT INTO automation_note_number ("n") VALUES (0);
INSERT INTO automation_versions ("automation", "version", "runs", "interest", "doc") VALUES (1, 1, 0, '', '{"trigger":{"config":{"name":"cart_updated"},"kind":"event"},"graph":{"edges":[],"nodes":[{"id":"w","kind":"exit"}]},"re_entry":"after_exit","re_entry_key":"event.cart","masked":true}');
INSERT INTO automations ("n", "workspace", "id", "revision", "removed", "status", "version", "entry", "lanes", "doc") VALUES (1, X'01010101010101010101010101010101', X'0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A', 1, 0, 1, 1, '{"event_where":["cart_updated",[{"op":"gte","property":"total","value":50}]]}', '[]', '{"id":"aut_0A1850M2GA1850M2GA1850M2GA","workspace_id":"wsp_01040G2081040G2081040G2081","name":"Cart «1»","status":"active","trigger":{"config":{"name":"cart_updated"},"kind":"event"},"graph":{"edges":[],"nodes":[{"id":"w","kind":"exit"}]},"re_entry":"after_exit","re_entry_key":"event.cart","masked":true,"version":1,"activated_at":"2023-11-14T22:13:20.038Z","created_at":"2023-11-14T22:13:20.037Z","updated_at":"2023-11-14T22:13:20.039Z"}');
INSERT INTO campaigns ("n", "workspace", "id", "revision", "removed", "status", "doc", "archived_at") VALUES (1, X'01010101010101010101010101010101', X'09090909090909090909090909090909', 1, 0, 0, '{"id":"cmp_09144GJ289144GJ289144GJ289","workspace_id":"wsp_01040G2081040G2081040G2081","name":"Spring «1»","channel":"email","kind":"regular","template_id":"tpl_040G2081040G2081040G208104","subject_override":"Hello {{ name }}","from_name":null,"from_email":"news@acme.example","reply_to":null,"audience":{"list_ids":["lst_050M2GA1850M2GA1850M2GA185"],"segment_ids":["seg_0D1M6GT38D1M6GT38D1M6GT38D"],"exclude_list_ids":["lst_0E1R70W3GE1R70W3GE1R70W3GE"]},"variants":[],"settings":{"utm":null,"quiet_hours":null,"frequency_cap":null,"ab_test":null,"rate_limit":null},"status":"draft","phase":null,"scheduled_at":null,"wall_time":null,"schedule_called_at":null,"started_at":null,"completed_at":null,"recipients":null,"test_sent_at":null,"winner":null,"scores":[],"pause_reason":null,"failure_reason":null,"created_at":"2023-11-14T22:13:20.035Z","updated_at":"2023-11-14T22:13:20.036Z"}', NULL);
INSERT INTO changed_contact_texts ("n", "block") VALUES (1, 34359738368);
INSERT INTO contacts ("n", "workspace_number", "id", "revision", "created_at", "updated_at", "marketing_email", "sms", "external_id", "email", "phone", "locale", "timezone", "tags", "attributes") VALUES (1099511627777, 1, X'06060606060606060606060606060606', 1, 1700000000014, 1700000000015, 1, 0, 'user «6»', 'grete@example.org', '+37120000006', 'de-DE', 'Europe/Berlin', '["vip","de \"quoted\""]', '{"age":31,"home":{"city":"Rīga"},"plan":"pro","ü":[1.5,"x",null]}');
INSERT INTO list_members ("list", "contact") VALUES (1, 1099511627777);
INSERT INTO lists ("n", "workspace_number", "id", "revision", "removed", "contacts", "created_at", "updated_at", "name", "is_public", "is_double", "description") VALUES (1, 1, X'05050505050505050505050505050505', 1, 0, 1, 1700000000016, 1700000000017, 'News «weekly»', 0, 0, NULL);
INSERT INTO members ("workspace", "user_id", "owner", "invited", "revision", "doc") VALUES (X'01010101010101010101010101010101', X'02020202020202020202020202020202', 1, 0, 1, '{"workspace_id":"wsp_01040G2081040G2081040G2081","user_id":"usr_02081040G2081040G2081040G2","role":"owner","status":"active","invited_by":"ann@example.org","up_to":"admin","created_at":"2023-11-14T22:13:20.004Z"}');
INSERT INTO message_contents ("n", "workspace", "message", "request") VALUES (1, X'01010101010101010101010101010101', X'07070707070707070707070707070707', X'7B226368616E6E656C223A22656D61696C222C22746F223A226772657465406578616D706C652E6F7267222C227375626A656374223A224772C3BCC39F65227D');
INSERT INTO message_events ("workspace", "message", "at", "id", "kind", "meta") VALUES (X'01010101010101010101010101010101', X'07070707070707070707070707070707', 1700000000025, X'08080808080808080808080808080808', 2, '{"code":250,"mx":"mx.example.org"}');
INSERT INTO messages ("workspace", "id", "revision", "status", "channel", "created_at", "updated_at", "content", "recipient", "sender", "contact", "campaign", "automation", "template", "tags", "metadata", "variant", "hold_reason", "hold_until", "hold_since", "seen", "links", "skip", "sent_at", "delivered_at", "fallback_of", "has_fallback", "is_test") VALUES (X'01010101010101010101010101010101', X'07070707070707070707070707070707', 1, 3, 0, 1700000000011, 1700000000012, 1, 'Grete Hermann <grete@example.org>', 'news@acme.example', X'06060606060606060606060606060606', X'09090909090909090909090909090909', X'0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A', X'04040404040404040404040404040404', '["welcome","de \"quoted\""]', '{"items":["a","b"],"order":17,"ü":null}', 3, 2, 1700000000023, 1700000000022, 9, -9223372036854775803, 1, 1700000000024, 1700000000025, NULL, NULL, NULL);
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") VALUES (1, 'schema', '2026-01-01T00:00:00Z', '10271325484083064477');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") VALUES (10, 'api_keys', '2026-01-01T00:00:00Z', '7068565000725121445');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") VALUES (2, 'deliverability', '2026-01-01T00:00:00Z', '7780843090683727001');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") VALUES (3, 'requests_and_audit', '2026-01-01T00:00:00Z', '9424968962627995084');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") VALUES (4, 'search_and_images', '2026-01-01T00:00:00Z', '4381436968134820852');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") VALUES (5, 'public_lists', '2026-01-01T00:00:00Z', '8926090779263626481');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") VALUES (6, 'site_counters', '2026-01-01T00:00:00Z', '7728348714936362386');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") VALUES (7, 'second_factor', '2026-01-01T00:00:00Z', '1409166315863586962');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") VALUES (8, 'oidc', '2026-01-01T00:00:00Z', '5372109733245918591');
INSERT INTO refinery_schema_history ("version", "name", "applied_on", "checksum") VALUES (9, 'archive', '2026-01-01T00:00:00Z', '4417133281405477935');
INSERT INTO suppressions ("workspace", "channel", "digest", "address", "id", "revision", "doc") VALUES (X'01010101010101010101010101010101', 0, X'1778F79C5F88BAA2AF933BC6B04687CF5F47D46E60252492BF6044C9BEDC9C8D', 'no@example.org', X'0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C0C', 1, '{"id":"sup_0C1G60R30C1G60R30C1G60R30C","workspace_id":"wsp_01040G2081040G2081040G2081","channel":"email","address":"no@example.org","reason":"bounce","detail":"550 5.1.1 user unknown","source":"system","created_at":"2023-11-14T22:13:20.010Z"}');
INSERT INTO tag_members ("tag", "contact") VALUES (1, 1099511627777);
INSERT INTO tag_members ("tag", "contact") VALUES (2, 1099511627777);
INSERT INTO tags ("n", "workspace_number", "tag") VALUES (1, 1, 'vip');
INSERT INTO tags ("n", "workspace_number", "tag") VALUES (2, 1, 'de "quoted"');
INSERT INTO template_versions ("n", "workspace", "template", "version", "head", "doc") VALUES (1, X'01010101010101010101010101010101', X'04040404040404040404040404040404', 1, '{"id":"tpl_040G2081040G2081040G208104","workspace_id":"wsp_01040G2081040G2081040G2081","channel":"email","version":1,"reverted_from":null,"name":"Order «new»","subject":"Order {{ order.id }}","preheader":"Grüße","from_name":"Acme","from_email":"shop@acme.example","reply_to":"help@acme.example","declared":["order.id"],"inline_css":true,"variables":["order.id","name"],"warnings":[{"code":"no_unsubscribe_link","message":"there is none"}],"parts":{"subject":true,"html":true,"text":true},"created_at":"2023-11-14T22:13:20.030Z","updated_at":"2023-11-14T22:13:20.031Z"}', '{"id":"tpl_040G2081040G2081040G208104","workspace_id":"wsp_01040G2081040G2081040G2081","channel":"email","version":1,"reverted_from":null,"name":"Order «new»","subject":"Order {{ order.id }}","preheader":"Grüße","from_name":"Acme","from_email":"shop@acme.example","reply_to":"help@acme.example","html":"<p>{{ name }}</p>","mjml":"<mjml></mjml>","text":"Hi {{ name }}","declared":["order.id"],"inline_css":true,"ready":"<p style=\"x:y\">{{ name }}</p>","variables":["order.id","name"],"warnings":[{"code":"no_unsubscribe_link","message":"there is none"}],"parts":{"subject":true,"html":true,"text":true},"created_at":"2023-11-14T22:13:20.030Z","updated_at":"2023-11-14T22:13:20.031Z"}');
INSERT INTO templates ("workspace", "id", "channel", "revision", "version", "removed_at") VALUES (X'01010101010101010101010101010101', X'04040404040404040404040404040404', 0, 1, 1, NULL);
INSERT INTO users ("id", "email", "revision", "doc") VALUES (X'02020202020202020202020202020202', 'ada@example.org', 1, '{"id":"usr_02081040G2081040G2081040G2","email":"ada@example.org","name":"Ада Лавлейс","password_hash":"$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA","password_version":3,"operator":true,"created_by":"wsp_070W3GE1R70W3GE1R70W3GE1R7","signed_in":true,"created_at":"2023-11-14T22:13:20.001Z"}');
INSERT INTO webhooks ("workspace", "id", "revision", "status", "doc") VALUES (X'01010101010101010101010101010101', X'0B0B0B0B0B0B0B0B0B0B0B0B0B0B0B0B', 1, 'paused', '{"id":"whk_0B1C5GP2RB1C5GP2RB1C5GP2RB","workspace_id":"wsp_01040G2081040G2081040G2081","url":"https://acme.com/hook?ü=1","events":["bounce","*"],"status":"paused","pii":true,"secret":"sealed:1:AAAA","previous_secret":["sealed:1:BBBB","2023-11-14T22:13:20.009Z"],"draining":true,"created_at":"2023-11-14T22:13:20.001Z","updated_at":"2023-11-14T22:13:20.002Z"}');
INSERT INTO workspace_numbers ("number", "workspace", "newest", "contacts", "read_mask") VALUES (1, X'01010101010101010101010101010101', 1, 1, 0);
INSERT INTO workspaces ("id", "revision", "doc") VALUES (X'01010101010101010101010101010101', 1, '{"id":"wsp_01040G2081040G2081040G2081","name":"Acme «Ltd»","timezone":"Europe/Riga","opt_out_keywords":["STOPP"],"created_at":"2023-11-14T22:13:20.003Z"}');
