-- The ids of the secret keys that a process holds, by commas, the one that it seals under first. NULL: it has not said so.
ALTER TABLE nodes ADD COLUMN keys text COLLATE "C";
