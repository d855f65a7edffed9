-- Quota slots: where each stands, and its readings for charts. What a column means is in core/slot/slot.py.

CREATE TABLE slots (
  slot_id          INTEGER PRIMARY KEY AUTOINCREMENT,
  name             TEXT NOT NULL UNIQUE,
  definition       TEXT,
  version          INTEGER NOT NULL,
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL,
  key_mark         TEXT,
  modes            TEXT,
  disabled_at      INTEGER,
  wake_disabled_at INTEGER,
  read_at          INTEGER,
  reading          TEXT,
  reset_at         INTEGER,
  last_reset_at    INTEGER,
  exhausted_until  INTEGER,
  steady           INTEGER NOT NULL,
  error            TEXT,
  error_at         INTEGER,
  quota_errors     INTEGER NOT NULL,
  polled_at        INTEGER,
  poll_asked_at    INTEGER,
  poll_until       INTEGER,
  poll_fence       INTEGER NOT NULL,
  stats_at         INTEGER,
  stats            TEXT,
  stats_until      INTEGER,
  is_starting      INTEGER NOT NULL,
  initial_at       INTEGER,
  interval_from    INTEGER NOT NULL,
  times_through    INTEGER NOT NULL,
  reset_served     INTEGER,
  wake_run_id      INTEGER,
  sent_run_id      INTEGER,
  last_row_id      INTEGER,
  woken_at         INTEGER,
  pending_at       INTEGER,
  snapshot_at      INTEGER,
  window_until     INTEGER,
  is_forced        INTEGER NOT NULL,
  wake_errors      INTEGER NOT NULL,
  wake_error       TEXT
) STRICT;

CREATE TABLE slot_readings (
  slot_id INTEGER NOT NULL,
  read_at INTEGER NOT NULL,
  reading TEXT NOT NULL,
  PRIMARY KEY (slot_id, read_at)
) STRICT, WITHOUT ROWID;

-- Schedules that wait for the reset of a slot. Those that only mention the word are few, and looked at in vain.
CREATE INDEX schedules_after_reset ON schedules (schedule_id)
  WHERE deleted_at IS NULL AND instr(definition, '"afterReset"') > 0;
