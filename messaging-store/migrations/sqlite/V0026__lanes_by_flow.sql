-- The flow of a lane, class and workspace, as its text begins: what takes turns in claims. Lanes from before
-- have a text without one and belong to the transactional work of no workspace.
ALTER TABLE lanes ADD COLUMN flow TEXT NOT NULL DEFAULT 't/-';
CREATE INDEX lanes_by_flow ON lanes (flow, next_at, turn, lane);
