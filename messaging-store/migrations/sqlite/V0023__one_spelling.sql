-- Email addresses have one spelling: ASCII lower case and A-labels. normalized_email() is a function of the
-- program that applies this; it matters only where an address is not ASCII. Channel 0 is email.

-- Two people whose addresses become one stay two: the one that is looked up by the new spelling keeps it, the
-- other keeps the old one.
UPDATE OR IGNORE contacts SET email = normalized_email(email), revision = revision + 1
WHERE email GLOB '*[^ -~]*' AND email <> normalized_email(email);

UPDATE OR IGNORE users
SET email = normalized_email(email), doc = json_set(doc, '$.email', normalized_email(email)), revision = revision + 1
WHERE email GLOB '*[^ -~]*' AND email <> normalized_email(email);

-- Of two records of one address the one with the stronger reason stays.
DELETE FROM suppressions WHERE (workspace, channel, address) IN (
    SELECT held.workspace, held.channel, held.address
    FROM suppressions AS other
    JOIN suppressions AS held ON held.workspace = other.workspace AND held.channel = other.channel
        AND held.address = normalized_email(other.address)
    WHERE other.channel = 0 AND other.address GLOB '*[^ -~]*' AND held.address <> other.address
        AND instr('unsubscribe manual invalid bounce complaint', other.doc ->> '$.reason')
            > instr('unsubscribe manual invalid bounce complaint', held.doc ->> '$.reason')
);
UPDATE OR IGNORE suppressions
SET address = normalized_email(address), doc = json_set(doc, '$.address', normalized_email(address)),
    revision = revision + 1
WHERE channel = 0 AND address GLOB '*[^ -~]*' AND address <> normalized_email(address);
DELETE FROM suppressions
WHERE channel = 0 AND address GLOB '*[^ -~]*' AND address <> normalized_email(address);

UPDATE OR IGNORE soft_bounces SET address = normalized_email(address)
WHERE channel = 0 AND address GLOB '*[^ -~]*' AND address <> normalized_email(address);
DELETE FROM soft_bounces
WHERE channel = 0 AND address GLOB '*[^ -~]*' AND address <> normalized_email(address);
