-- When a campaign that an archive may show began; NULL of one that has not begun or is kept out. What an archive shows is
-- decided when it is read.
ALTER TABLE campaigns ADD COLUMN archived_at INTEGER;
UPDATE campaigns
SET archived_at = CASE WHEN json_extract(doc, '$.channel') = 'email' THEN unixepoch(json_extract(doc, '$.started_at')) * 1000 END
WHERE NOT removed;
CREATE INDEX campaigns_archived ON campaigns (workspace, archived_at, id) WHERE archived_at IS NOT NULL AND NOT removed;
