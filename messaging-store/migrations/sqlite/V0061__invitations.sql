-- A membership opens nothing before its person has accepted. Those from before count as accepted.
ALTER TABLE members ADD COLUMN invited INTEGER NOT NULL DEFAULT 0;
DROP INDEX members_by_user;
CREATE INDEX members_by_user ON members (user, invited, workspace);

-- Whoever was created by being added, and could not sign in yet, was created by that workspace.
UPDATE users
SET revision = revision + 1, doc = json_set(doc, '$.created_by', (
    SELECT members.doc ->> '$.workspace_id' FROM members WHERE members.user = users.id
))
WHERE doc ->> '$.password_hash' IS NULL
    AND (SELECT count(*) FROM members WHERE members.user = users.id) = 1
    AND (SELECT members.doc ->> '$.created_at' FROM members WHERE members.user = users.id) = doc ->> '$.created_at'
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.user = users.id);

-- Tickets did not say what their maker could give; they are made anew.
DELETE FROM tickets;

-- An email is counted from anywhere, and a /48 of IPv6 as a whole. Failures from before count for neither.
ALTER TABLE sign_in_failures ADD COLUMN site BLOB NOT NULL DEFAULT x'';
ALTER TABLE sign_in_failures ADD COLUMN account BLOB NOT NULL DEFAULT x'';
-- How many tries of the email had to wait for one another, this one included.
ALTER TABLE sign_in_failures ADD COLUMN slowed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sign_in_failures_by_site ON sign_in_failures (site, at);
CREATE INDEX sign_in_failures_by_account ON sign_in_failures (account, at);
