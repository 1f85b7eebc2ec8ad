-- The deliveries of one message. Tests have none.
CREATE INDEX webhook_deliveries_by_message ON webhook_deliveries (message, id) WHERE message IS NOT NULL;
