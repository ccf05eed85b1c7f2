-- Every secret of a renewed token keeps its end, also when the token is renewed again (src/auth/renewal.ts): a JSON array
-- of {sha256: hex, until: epoch milliseconds}, the newest first.
ALTER TABLE token ADD COLUMN former_secrets TEXT NOT NULL DEFAULT '[]';
UPDATE token SET former_secrets = json_array(json_object('sha256', lower(hex(previous_sha256)), 'until', previous_until))
  WHERE previous_sha256 IS NOT NULL;
ALTER TABLE token DROP COLUMN previous_sha256;
ALTER TABLE token DROP COLUMN previous_until;
