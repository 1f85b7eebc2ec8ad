-- A membership opens nothing before its person has accepted. Those from before count as accepted.
ALTER TABLE members ADD COLUMN invited boolean NOT NULL DEFAULT false;
DROP INDEX members_by_user;
CREATE INDEX members_by_user ON members (user_id, invited, workspace);

-- Whoever was created by being added, and could not sign in yet, was created by that workspace.
UPDATE users
SET revision = users.revision + 1,
    doc = left(users.doc, -1) || ',"created_by":' || (members.doc::json -> 'workspace_id')::text || '}'
FROM members
WHERE members.user_id = users.id
    AND users.doc::json ->> 'password_hash' IS NULL
    AND (SELECT count(*) FROM members AS every WHERE every.user_id = users.id) = 1
    AND members.doc::json ->> 'created_at' = users.doc::json ->> 'created_at'
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.user_id = users.id);

-- Tickets did not say what their maker could give; they are made anew.
DELETE FROM tickets;

-- An email is counted from anywhere, and a /48 of IPv6 as a whole. Failures from before count for neither.
ALTER TABLE sign_in_failures ADD COLUMN site bytea NOT NULL DEFAULT '';
ALTER TABLE sign_in_failures ADD COLUMN account bytea NOT NULL DEFAULT '';
-- How many tries of the email had to wait for one another, this one included.
ALTER TABLE sign_in_failures ADD COLUMN slowed bigint NOT NULL DEFAULT 0;
CREATE INDEX sign_in_failures_by_site ON sign_in_failures (site, at);
CREATE INDEX sign_in_failures_by_account ON sign_in_failures (account, at);

-- A program that knows no invitations would let people in who have not accepted.
UPDATE schema_compatibility SET oldest_reader = 61;
