-- The order of reports is judged by the monotonic clock within one run: the wall clock time of the command is not used.
ALTER TABLE stand_open DROP COLUMN sent_at;
