-- Whoever removes a workspace finds what is of it without reading the tables: remembered answers by the credential, and those
-- of people by the workspace that the route names.
CREATE INDEX replies_by_credential ON replies (credential);
CREATE INDEX replies_by_workspace ON replies (substr(route, instr(route, 'wsp_'), 30)) WHERE instr(route, 'wsp_') > 0;
CREATE INDEX webhook_deliveries_by_workspace ON webhook_deliveries (workspace);
