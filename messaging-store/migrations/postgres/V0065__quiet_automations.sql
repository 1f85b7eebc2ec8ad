-- What must hold for the properties of events that enter contacts, as JSON, behind the revision that it belongs to: older
-- nodes change automations without it.
ALTER TABLE automations ADD COLUMN conditions text;
