-- Automations. Rows of which there are many name an automation by its number. What is counted is in V0041.

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
