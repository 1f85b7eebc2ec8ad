-- What a message shows of its provider is found by the message. Email has no rows here.
CREATE INDEX provider_links_by_message ON provider_links (message);
