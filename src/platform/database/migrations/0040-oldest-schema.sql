-- The oldest schema whose programs run on this database (migrate.ts): an update can be taken back without its data.
CREATE TABLE schema_support (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  oldest INTEGER NOT NULL
) STRICT;
INSERT INTO schema_support (id, oldest) VALUES (1, 40);
