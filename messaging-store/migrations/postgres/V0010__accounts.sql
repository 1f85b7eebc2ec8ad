-- Users, sessions, tickets, workspaces, memberships. Documents are text: jsonb would change numbers and order.
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

CREATE TABLE tickets (
    digest bytea PRIMARY KEY,
    expires_at bigint NOT NULL,
    doc text NOT NULL
);
CREATE INDEX tickets_by_end ON tickets (expires_at);

CREATE TABLE workspaces (
    id uuid PRIMARY KEY,
    revision bigint NOT NULL,
    doc text NOT NULL
);

CREATE TABLE members (
    workspace uuid NOT NULL,
    user_id uuid NOT NULL,
    owner boolean NOT NULL,
    revision bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (workspace, user_id)
);
CREATE INDEX members_by_user ON members (user_id, workspace);
