-- What must hold for the properties of events that enter contacts, as JSON, behind the revision that it belongs to.
ALTER TABLE automations ADD COLUMN conditions TEXT;

-- A run that waits where it began keeps no row of steps: that it entered, and waits from `arrived` until `due_at`, stands
-- in its own row. The row of steps is written when it goes on.
ALTER TABLE automation_runs ADD COLUMN untold INTEGER NOT NULL DEFAULT 0;
