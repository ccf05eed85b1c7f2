-- Who had a write accepted is in the audit, and a certificate is known by its fingerprint: nothing read these.
ALTER TABLE write_request DROP COLUMN accepted_by;
ALTER TABLE credential DROP COLUMN serial;
