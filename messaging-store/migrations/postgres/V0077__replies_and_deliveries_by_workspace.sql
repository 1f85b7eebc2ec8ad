-- Whoever removes a workspace finds what is of it without reading the tables: remembered answers by the credential, and those
-- of people by the workspace that the route names.
CREATE INDEX replies_by_credential ON replies (credential);
CREATE INDEX replies_by_workspace ON replies (substring(route FROM 'wsp_[0-9A-Z]{26}'))
    WHERE substring(route FROM 'wsp_[0-9A-Z]{26}') IS NOT NULL;
CREATE INDEX webhook_deliveries_by_workspace ON webhook_deliveries (workspace);
