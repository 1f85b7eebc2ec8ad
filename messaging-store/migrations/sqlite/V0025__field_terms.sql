-- The words of the field for what had words of our own: contacts are numbered within their workspace, a segment has a
-- mask of what its filter reads, a merged contact has a merge target.
ALTER TABLE audiences RENAME TO workspace_numbers;
ALTER TABLE workspace_numbers RENAME COLUMN interest TO read_mask;
ALTER TABLE contacts RENAME COLUMN audience TO workspace_number;
ALTER TABLE tags RENAME COLUMN audience TO workspace_number;
ALTER TABLE lists RENAME COLUMN audience TO workspace_number;
ALTER TABLE event_names RENAME COLUMN audience TO workspace_number;
ALTER TABLE event_unique_ids RENAME COLUMN audience TO workspace_number;
ALTER TABLE departed_contacts RENAME TO deleted_contacts;
ALTER TABLE deleted_contacts RENAME COLUMN audience TO workspace_number;
ALTER TABLE deleted_contacts RENAME COLUMN heir TO merge_target;
ALTER TABLE segments RENAME COLUMN audience TO workspace_number;
ALTER TABLE segments RENAME COLUMN aspects TO read_mask;
ALTER TABLE changed_contacts RENAME COLUMN aspects TO read_mask;
ALTER TABLE changed_addresses RENAME COLUMN audience TO workspace_number;
