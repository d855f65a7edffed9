-- Quota slots: where each stands, and its readings for charts. What a column means is in core/slot/slot.py.

CREATE TABLE slots (
  slot_id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name             text COLLATE "C" NOT NULL UNIQUE,
  definition       text,
  version          bigint NOT NULL,
  created_at       bigint NOT NULL,
  updated_at       bigint NOT NULL,
  key_mark         text,
  modes            text,
  disabled_at      bigint,
  wake_disabled_at bigint,
  read_at          bigint,
  reading          text,
  reset_at         bigint,
  last_reset_at    bigint,
  exhausted_until  bigint,
  steady           bigint NOT NULL,
  error            text,
  error_at         bigint,
  quota_errors     bigint NOT NULL,
  polled_at        bigint,
  poll_asked_at    bigint,
  poll_until       bigint,
  poll_fence       bigint NOT NULL,
  stats_at         bigint,
  stats            text,
  stats_until      bigint,
  is_starting      bigint NOT NULL,
  initial_at       bigint,
  interval_from    bigint NOT NULL,
  times_through    bigint NOT NULL,
  reset_served     bigint,
  wake_run_id      bigint,
  sent_run_id      bigint,
  last_row_id      bigint,
  woken_at         bigint,
  pending_at       bigint,
  snapshot_at      bigint,
  window_until     bigint,
  is_forced        bigint NOT NULL,
  wake_errors      bigint NOT NULL,
  wake_error       text
);

CREATE TABLE slot_readings (
  slot_id bigint NOT NULL,
  read_at bigint NOT NULL,
  reading text NOT NULL,
  PRIMARY KEY (slot_id, read_at)
);

-- Schedules that wait for the reset of a slot. Those that only mention the word are few, and looked at in vain.
CREATE INDEX schedules_after_reset ON schedules (schedule_id)
  WHERE deleted_at IS NULL AND strpos(definition, '"afterReset"') > 0;
