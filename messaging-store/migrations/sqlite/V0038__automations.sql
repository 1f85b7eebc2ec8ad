-- Automations. Rows of which there are many name an automation by its number.

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
CREATE INDEX automations_by_status ON automations (workspace, status, id) WHERE removed = 0;
CREATE INDEX automations_removed ON automations (n) WHERE removed = 1;

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
CREATE INDEX automation_date_fires_due ON automation_date_fires (automation, contact & 3, due_at) WHERE taken = 0;
CREATE INDEX automation_date_fires_taken ON automation_date_fires (due_at) WHERE taken = 1;

-- Contacts that are gone while runs of theirs are still there, to be deleted a slice at a time.
CREATE TABLE automation_deleted_contacts (
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (workspace, id)
) STRICT, WITHOUT ROWID;

-- Lists (0), segments (1) and templates (2) that open campaigns (kind of holder 0) and active automations (1) need.
CREATE TABLE holds (
    workspace BLOB NOT NULL,
    kind INTEGER NOT NULL,
    id BLOB NOT NULL,
    holder_kind INTEGER NOT NULL,
    holder INTEGER NOT NULL,
    PRIMARY KEY (workspace, kind, id, holder_kind, holder)
) STRICT, WITHOUT ROWID;
CREATE INDEX holds_by_holder ON holds (holder_kind, holder);
INSERT INTO holds (workspace, kind, id, holder_kind, holder)
    SELECT workspace, kind, id, 0, campaign FROM campaign_references;
DROP TABLE campaign_references;

-- Nobody came to want them: automations have notes of their own.
DROP TABLE segment_moves;
ALTER TABLE segments DROP COLUMN keeps_moves;

-- How many automations caused one another up to the change.
ALTER TABLE changed_contacts ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
