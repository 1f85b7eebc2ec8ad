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
