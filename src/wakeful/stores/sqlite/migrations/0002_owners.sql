-- Who has runs besides schedules: the heartbeat, workflows, quota slots. In the ledger their ids are below zero.

CREATE TABLE owners (
  owner_id INTEGER PRIMARY KEY AUTOINCREMENT,
  name     TEXT NOT NULL UNIQUE
) STRICT;
