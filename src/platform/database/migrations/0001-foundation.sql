-- The tables of the main job: encoders, their credentials, write requests, events, tokens, audit.
-- Times are epoch milliseconds of the wall clock. JSON columns hold what the schema.ts of the slice describes.

CREATE TABLE system (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  system_id TEXT NOT NULL,
  -- Tells a restored or copied database from the one a client has seen.
  database_id TEXT NOT NULL,
  -- Grows with each start of the gateway; every down message carries it (docs/encoder-protocol.md, Messages).
  epoch INTEGER NOT NULL,
  -- A digest by the vault's key, which tells whether the key is still the same.
  vault_check TEXT NOT NULL,
  -- SHA-256 of the site CA's root, as node:crypto writes it; NULL until there is one.
  root_fingerprint TEXT,
  -- The newest time at which the wall clock could be trusted; 0 when it never could.
  trusted_at INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE encoder (
  id TEXT PRIMARY KEY,
  name TEXT,
  metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
  -- Version of what is wanted (name, metadata): the ETag.
  revision INTEGER NOT NULL DEFAULT 1,
  -- Credential generation: the `version` of the registration answer.
  generation INTEGER NOT NULL,
  ip_address TEXT,
  connected INTEGER NOT NULL DEFAULT 0 CHECK (connected IN (0, 1)),
  connected_changed_at INTEGER NOT NULL,
  alarm_raised INTEGER NOT NULL DEFAULT 0 CHECK (alarm_raised IN (0, 1)),
  alarm_changed_at INTEGER NOT NULL,
  apps TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(apps)),
  platform TEXT CHECK (platform IS NULL OR json_valid(platform)),
  versions TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(versions)),
  upgrade_job_info TEXT CHECK (upgrade_job_info IS NULL OR json_valid(upgrade_job_info)),
  -- The encoder's journal at its last birth.
  journal TEXT,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL
) STRICT;

CREATE TABLE credential (
  encoder_id TEXT NOT NULL REFERENCES encoder (id),
  generation INTEGER NOT NULL,
  -- SHA-256 of the issued certificate, as node:crypto writes it.
  fingerprint TEXT NOT NULL UNIQUE,
  serial TEXT NOT NULL,
  -- Hex SHA-256 of the operational key's SPKI DER.
  spki_sha256 TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'superseded', 'revoked')),
  not_after INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (encoder_id, generation)
) STRICT;
CREATE INDEX credential_by_key ON credential (spki_sha256);

-- Up messages stored once each (docs/encoder-protocol.md, Rules 8): all up to `acked`, and those stored ahead of a hole.
CREATE TABLE up_cursor (
  encoder_id TEXT NOT NULL,
  boot TEXT NOT NULL,
  acked INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (encoder_id, boot)
) STRICT;
CREATE TABLE up_ahead (
  encoder_id TEXT NOT NULL,
  boot TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (encoder_id, boot, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE write_request (
  -- The order of acceptance, which the wall clock cannot tell: it may jump.
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id TEXT NOT NULL UNIQUE,
  encoder_id TEXT NOT NULL REFERENCES encoder (id),
  request_id TEXT NOT NULL,
  description TEXT,
  -- Keyed digest of the request's content: tells a repeat from a reuse without keeping the blocks.
  digest TEXT NOT NULL,
  -- Follows from the entries; kept for the filter of the list.
  status TEXT NOT NULL,
  accepted_at INTEGER NOT NULL,
  accepted_by TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  -- The journal the encoder had when the job was first sent; NULL until then.
  sent_journal TEXT,
  sent_at INTEGER,
  cancel_requested_at INTEGER,
  finished_at INTEGER
) STRICT;
CREATE INDEX write_request_by_request ON write_request (encoder_id, request_id, seq);
CREATE INDEX write_request_by_encoder ON write_request (encoder_id, seq);
CREATE INDEX write_request_open ON write_request (encoder_id, seq) WHERE finished_at IS NULL;
CREATE INDEX write_request_finished ON write_request (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE write_entry (
  job_id TEXT NOT NULL REFERENCES write_request (job_id) ON DELETE CASCADE,
  entry_index INTEGER NOT NULL,
  key_id TEXT NOT NULL,
  -- AES-256-GCM under a key that no backup holds; NULL from the terminal status on.
  sealed_blocks BLOB,
  status TEXT NOT NULL,
  error_code TEXT,
  error_message TEXT,
  late_outcome TEXT CHECK (late_outcome IS NULL OR json_valid(late_outcome)),
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (job_id, entry_index),
  UNIQUE (job_id, key_id)
) STRICT;

-- The log of events: forwarded upstream by cursor, kept for live readers until pruned.
CREATE TABLE event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  topic TEXT NOT NULL,
  type TEXT NOT NULL,
  encoder_id TEXT NOT NULL,
  -- Per encoder, from 1. NULL: a gap record, which is never dropped.
  sequence INTEGER,
  recorded_at INTEGER NOT NULL,
  -- Whether the wall clock could be trusted then: an age is believed only between two trusted times.
  clock_synchronised INTEGER NOT NULL CHECK (clock_synchronised IN (0, 1)),
  bytes INTEGER NOT NULL,
  -- CloudEvents 1.0 in structured JSON, without `replayed`, which is decided at each send.
  body TEXT NOT NULL CHECK (json_valid(body))
) STRICT;
CREATE TABLE event_sequence (
  encoder_id TEXT PRIMARY KEY,
  last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE forward_cursor (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  -- Everything up to here is acknowledged upstream or dead-lettered; what was dropped before its turn is deleted.
  acked_seq INTEGER NOT NULL DEFAULT 0,
  -- Everything up to here may have been sent. While a connection is open: 2^53 - 1, for it is not counted on the disk.
  sent_seq INTEGER NOT NULL DEFAULT 0,
  -- The events beyond acked_seq that are not dead-lettered.
  waiting INTEGER NOT NULL DEFAULT 0,
  waiting_bytes INTEGER NOT NULL DEFAULT 0,
  -- The message at which the last connections broke, and how often in a row.
  suspect_seq INTEGER NOT NULL DEFAULT 0,
  suspect_failures INTEGER NOT NULL DEFAULT 0,
  -- Dead letters in a row without an acknowledgement in between.
  buried_in_a_row INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO forward_cursor (id) VALUES (1);
CREATE TABLE dead_letter (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  topic TEXT NOT NULL,
  body TEXT NOT NULL,
  reason TEXT NOT NULL,
  dead_at INTEGER NOT NULL
) STRICT;
-- Which sequence numbers of an encoder were not delivered; seq is the event that says so upstream.
CREATE TABLE gap (
  seq INTEGER PRIMARY KEY,
  encoder_id TEXT NOT NULL,
  first_sequence INTEGER NOT NULL,
  last_sequence INTEGER NOT NULL,
  reason TEXT NOT NULL,
  recorded_at INTEGER NOT NULL
) STRICT;
CREATE INDEX gap_by_encoder ON gap (encoder_id, seq);

CREATE TABLE token (
  -- 12 hex digits, the public part of the token.
  id TEXT PRIMARY KEY,
  principal_id TEXT NOT NULL UNIQUE,
  label TEXT NOT NULL,
  roles TEXT NOT NULL CHECK (json_valid(roles)),
  secret_sha256 BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  -- When it was first offered after its time: a clock set back does not revive it.
  expired_at INTEGER,
  last_used_at INTEGER,
  revoked_at INTEGER
) STRICT;

-- Append-only, chained by HMAC: each row's mac covers its content and the mac before it.
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  actor_id TEXT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  object TEXT NOT NULL,
  outcome TEXT NOT NULL,
  detail TEXT NOT NULL CHECK (json_valid(detail)),
  correlation_id TEXT NOT NULL,
  mac BLOB NOT NULL
) STRICT;
CREATE TRIGGER audit_is_append_only_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_is_append_only_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
