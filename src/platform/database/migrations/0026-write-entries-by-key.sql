-- A write request is found by the key that it writes, without a look at each request of the encoder.
CREATE INDEX write_entry_by_key ON write_entry (key_id);
