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
