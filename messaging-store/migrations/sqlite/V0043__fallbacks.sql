-- Which message a fallback stands for: the first of its chain; and whether another follows should a message not arrive.
ALTER TABLE messages ADD COLUMN fallback_of BLOB;
ALTER TABLE messages ADD COLUMN has_fallback INTEGER;
