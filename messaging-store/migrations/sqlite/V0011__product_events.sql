-- What contacts did, as the workspace's own programs tell it. An event names its contact by the contact's
-- number and its name by a number too: there are few names, and the index holds them once for each event.

CREATE TABLE event_names (
    n INTEGER PRIMARY KEY,
    audience INTEGER NOT NULL,
    name TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_names_by_text ON event_names (audience, name);

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
    audience INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    unique_id TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_unique_ids_by_text ON event_unique_ids (audience, unique_id);

-- Contacts that are gone while some of their events are still there. The events become those of the heir,
-- the contact that this one was merged into, a slice at a time; without an heir they are deleted.
CREATE TABLE departed_contacts (
    n INTEGER PRIMARY KEY,
    audience INTEGER NOT NULL,
    id BLOB NOT NULL,
    heir INTEGER
) STRICT;
CREATE UNIQUE INDEX departed_contacts_by_id ON departed_contacts (audience, id);
