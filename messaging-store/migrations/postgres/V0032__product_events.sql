-- What contacts did, as the workspace's own programs tell it. An event names its contact and its name by numbers.
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
