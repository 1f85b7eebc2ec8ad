-- Where the bytes of a blob are: `s3://bucket/prefix`, or nothing when they are in `blob_pieces`.
ALTER TABLE blobs ADD COLUMN bucket text;
