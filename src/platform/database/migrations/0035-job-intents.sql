-- What the audit keeps of the work of a job beside the job itself: its outcome is stored with the end of the job, also by the next start.
ALTER TABLE job ADD COLUMN intent TEXT CHECK (intent IS NULL OR json_valid(intent));
