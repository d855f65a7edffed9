-- Who has runs besides schedules: the heartbeat, workflows, quota slots. In the ledger their ids are below zero.

CREATE TABLE owners (
  owner_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name     text COLLATE "C" NOT NULL UNIQUE
);
