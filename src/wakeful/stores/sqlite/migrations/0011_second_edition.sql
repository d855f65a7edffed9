-- The second edition adds to what there is; a node of 0.1 goes on working on it, but for workflows.

-- Quota slots: wakes that did not arrive, and since when the provider cannot be reached.
ALTER TABLE slots ADD COLUMN unsent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE slots ADD COLUMN unreachable_since INTEGER;
-- Schedules that name a slot are found without a walk, so that one that is gone is noticed.
CREATE INDEX schedules_naming_slot ON schedules (schedule_id)
  WHERE deleted_at IS NULL AND instr(definition, '"slot":"') > 0;
ALTER TABLE slots ADD COLUMN wake_errors_before INTEGER NOT NULL DEFAULT 0;

-- Workflows: several consumers on a topic. Each message has a row per consumer, with its own status; how far a consumer
-- has looked is kept per topic and consumer. What was there belongs to the one consumer its topic had.
CREATE TABLE subscriptions (
  workflow_id INTEGER NOT NULL,
  topic       TEXT NOT NULL,
  consumer    TEXT NOT NULL,
  published   INTEGER NOT NULL,
  seen        INTEGER NOT NULL,
  is_active   INTEGER NOT NULL,
  PRIMARY KEY (workflow_id, topic, consumer)
) STRICT, WITHOUT ROWID;

INSERT INTO subscriptions (workflow_id, topic, consumer, published, seen, is_active)
SELECT workflow_id, name, coalesce(consumer, ''), published, seen, consumer IS NOT NULL FROM topics
WHERE consumer IS NOT NULL OR EXISTS (
  SELECT 1 FROM messages
  WHERE messages.workflow_id = topics.workflow_id AND messages.topic = topics.name AND messages.status = 'pending'
);

DROP INDEX messages_status;
DROP INDEX messages_of_run;
ALTER TABLE messages RENAME TO messages_of_one_consumer;

CREATE TABLE messages (
  workflow_id  INTEGER NOT NULL,
  topic        TEXT NOT NULL,
  consumer     TEXT NOT NULL,
  message_id   TEXT NOT NULL,
  place        INTEGER NOT NULL,
  seq          INTEGER NOT NULL,
  payload      TEXT NOT NULL,
  status       TEXT NOT NULL,
  attempt      INTEGER NOT NULL,
  run_id       INTEGER,
  published_by INTEGER,
  published_at INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  UNIQUE (workflow_id, topic, message_id, consumer)
) STRICT;

INSERT INTO messages
SELECT messages.workflow_id, messages.topic, coalesce(topics.consumer, ''), message_id, place, seq, payload, status,
  attempt, run_id, published_by, published_at, updated_at
FROM messages_of_one_consumer AS messages
LEFT JOIN topics ON topics.workflow_id = messages.workflow_id AND topics.name = messages.topic;

DROP TABLE messages_of_one_consumer;

-- How many of each status a consumer has, and what is pending in its order: counted and walked in the index alone.
CREATE INDEX messages_status ON messages (workflow_id, topic, consumer, status, place);

-- What a run holds, and what is to be forgotten with it.
CREATE INDEX messages_of_run ON messages (run_id) WHERE run_id IS NOT NULL;

ALTER TABLE topics DROP COLUMN consumer;
ALTER TABLE topics DROP COLUMN seen;

-- Workflows: handlers that cannot be reached are held off; consumers are shown one page of a long topic after another.
ALTER TABLE workflow_handlers ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workflow_handlers ADD COLUMN held_until INTEGER;
ALTER TABLE workflow_handlers ADD COLUMN last_error TEXT;
ALTER TABLE workflow_handlers ADD COLUMN turn_topic TEXT;
ALTER TABLE workflow_handlers ADD COLUMN turn_place INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workflow_handlers ADD COLUMN lap_topic TEXT;
ALTER TABLE workflow_handlers ADD COLUMN lap_place INTEGER NOT NULL DEFAULT 0;

-- Workflows: which version passed its dry prepare, and the rate limit of consumers that publish to themselves.
ALTER TABLE workflows ADD COLUMN tried_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workflows ADD COLUMN window_at INTEGER;
ALTER TABLE workflows ADD COLUMN window_runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workflows ADD COLUMN limited_until INTEGER;
UPDATE workflows SET tried_version = version WHERE status <> 'draft';

-- Alerts: how a cadence stands (0: well, 1: recovering, 2: bad), and the schedules that are failing or halted, found
-- without a walk. A run that succeeds touches neither. Written without IN: SQLite would build a table of the three
-- names several times for each row whose state is written. This replaces the earlier index.
ALTER TABLE cadences ADD COLUMN trouble INTEGER NOT NULL DEFAULT 0;
UPDATE cadences SET trouble = 2 WHERE consecutive_errors > 0 AND state <> 'done';
DROP INDEX cadences_amiss;
CREATE INDEX cadences_troubled ON cadences (schedule_id)
  WHERE state = 'paused' OR state = 'disabled' OR state = 'invalid' OR trouble = 2;

-- Alerts: an incident is watched before it is reported, rings when it is to be reported, and counts until it is over.
ALTER TABLE incidents ADD COLUMN stage TEXT NOT NULL DEFAULT 'reported';
ALTER TABLE incidents ADD COLUMN owner_id INTEGER;
ALTER TABLE incidents ADD COLUMN run_id INTEGER;
ALTER TABLE incidents ADD COLUMN bad INTEGER NOT NULL DEFAULT 0;
ALTER TABLE incidents ADD COLUMN good INTEGER NOT NULL DEFAULT 0;
ALTER TABLE incidents ADD COLUMN look_at INTEGER;
ALTER TABLE incidents ADD COLUMN told_at INTEGER;
ALTER TABLE incidents ADD COLUMN quiet_until INTEGER;
ALTER TABLE incidents ADD COLUMN channel TEXT;
ALTER TABLE incidents ADD COLUMN reopened INTEGER NOT NULL DEFAULT 0;
-- What 0.1 told under several names is one incident for each schedule now.
UPDATE incidents SET closed_at = last_at WHERE closed_at IS NULL AND (
  name LIKE 'disabled:%' OR name LIKE 'failing:%' OR name LIKE 'invalid:%' OR name LIKE 'stuck:%'
  OR name LIKE 'unconfirmed:%' OR name LIKE 'unknown:%' OR name = 'heartbeat:failing'
);
-- The last one of a name that is over.
CREATE INDEX incidents_over ON incidents (name, closed_at) WHERE closed_at IS NOT NULL;

-- Alerts: which `[alerts]` and `[budgets]` a node works by, as a hash.
ALTER TABLE nodes ADD COLUMN terms TEXT NOT NULL DEFAULT '';

-- Page logins: one-time codes and sessions, as digests; the secrets themselves are not stored.
CREATE TABLE logins (
  digest       TEXT PRIMARY KEY,
  kind         TEXT NOT NULL,
  role         TEXT NOT NULL,
  name         TEXT NOT NULL,
  token_digest TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Agents: the node that began the session of a schedule; a command-line agent keeps its sessions on that node's disk.
ALTER TABLE cadences ADD COLUMN session_node TEXT;

-- Moving in: where definitions came from, and the journals of takeovers from other schedulers.
CREATE TABLE origins (
  source TEXT NOT NULL,
  place  TEXT NOT NULL,
  ref    TEXT NOT NULL,
  kind   TEXT NOT NULL,
  name   TEXT NOT NULL,
  digest TEXT NOT NULL,
  at     INTEGER NOT NULL,
  PRIMARY KEY (source, place, ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX origins_name ON origins (kind, name);
CREATE TABLE handovers (
  handover_id TEXT PRIMARY KEY,
  source      TEXT NOT NULL,
  host        TEXT NOT NULL,
  stage       TEXT NOT NULL,
  hand_at     INTEGER NOT NULL,
  off_at      INTEGER,
  body        TEXT NOT NULL,
  problem     TEXT,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- Money: what each attempt of an agent's turn used and cost, in billionths of a dollar. A row is open from the claim of
-- the attempt until it ends. `cost` and `tokens` are unknown if nothing was reported; `held_` is what budgets count then.
CREATE TABLE charges (
  run_id       INTEGER NOT NULL,
  attempt      INTEGER NOT NULL,
  owner_id     INTEGER NOT NULL,
  agent        TEXT,
  model        TEXT,
  at           INTEGER NOT NULL,
  settled_at   INTEGER,
  input        INTEGER,
  cached_input INTEGER,
  output       INTEGER,
  reasoning    INTEGER,
  tokens       INTEGER,
  cost         INTEGER,
  priced       TEXT NOT NULL,
  held_cost    INTEGER NOT NULL,
  held_tokens  INTEGER NOT NULL,
  PRIMARY KEY (run_id, attempt)
) STRICT, WITHOUT ROWID;
CREATE INDEX charges_at ON charges (at);
CREATE INDEX charges_of_owner ON charges (owner_id, at);
CREATE INDEX charges_of_agent ON charges (agent, at) WHERE agent IS NOT NULL;

-- Money: one budget in one period: the lock under which runs reserve, and the sums. Limits are settings, or set by a
-- person (`budget_limits`), or in a definition.
-- AUTOINCREMENT: an open attempt may still refer to a budget that was removed, which must never become another one.
CREATE TABLE budgets (
  budget_id INTEGER PRIMARY KEY AUTOINCREMENT,
  scope     TEXT NOT NULL,
  unit      TEXT NOT NULL,
  period    TEXT NOT NULL,
  starts_at INTEGER NOT NULL,
  ends_at   INTEGER NOT NULL,
  zone      TEXT NOT NULL,
  spent     INTEGER NOT NULL,
  reserved  INTEGER NOT NULL,
  UNIQUE (scope, unit, period, starts_at, ends_at)
) STRICT;
CREATE INDEX budgets_ended ON budgets (ends_at);

-- Money: what an open attempt has reserved in a budget.
CREATE TABLE reservations (
  run_id    INTEGER NOT NULL,
  attempt   INTEGER NOT NULL,
  budget_id INTEGER NOT NULL,
  amount    INTEGER NOT NULL,
  PRIMARY KEY (run_id, attempt, budget_id)
) STRICT, WITHOUT ROWID;

-- Money: limits that a person set; they replace those of the settings. Agents that were stopped because of their cost.
CREATE TABLE budget_limits (
  scope  TEXT NOT NULL,
  unit   TEXT NOT NULL,
  period TEXT NOT NULL,
  amount INTEGER NOT NULL,
  set_at INTEGER NOT NULL,
  PRIMARY KEY (scope, unit, period)
) STRICT, WITHOUT ROWID;
CREATE TABLE brakes (
  agent TEXT PRIMARY KEY,
  at    INTEGER NOT NULL,
  text  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Money: what each owner of runs has spent in its current day and month, for lists of schedules.
CREATE TABLE spending (
  owner_id        INTEGER PRIMARY KEY,
  day_starts_at   INTEGER NOT NULL,
  day_ends_at     INTEGER NOT NULL,
  day_cost        INTEGER NOT NULL,
  month_starts_at INTEGER NOT NULL,
  month_ends_at   INTEGER NOT NULL,
  month_cost      INTEGER NOT NULL,
  last_run_id     INTEGER NOT NULL,
  last_cost       INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX spending_ended ON spending (month_ends_at);

-- Pre-checks: instants at which a check found nothing are one row; the ids of the rows that were merged still resolve.
CREATE TABLE merged_runs (
  run_id  INTEGER PRIMARY KEY,
  into_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX merged_runs_into ON merged_runs (into_id);

-- Schedules with a budget, found without a walk.
CREATE INDEX schedules_with_budget ON schedules (schedule_id)
  WHERE deleted_at IS NULL AND instr(definition, '"budget":{') > 0;

-- Schedules that name a calendar file, found without a walk.
CREATE INDEX schedules_with_calendar ON schedules (schedule_id)
  WHERE deleted_at IS NULL AND instr(definition, '"calendar":"') > 0;

-- Agents that schedule themselves: who owns a schedule that an agent made, and the run that made it.
CREATE TABLE ownerships (
  schedule_id INTEGER PRIMARY KEY,
  owner       TEXT NOT NULL,
  kind        TEXT NOT NULL,
  run_id      INTEGER,
  run_slug    TEXT,
  depth       INTEGER NOT NULL,
  approval    TEXT,
  created_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX ownerships_owner ON ownerships (owner, created_at);

-- Agents that schedule themselves: what waits for a person, and what was decided. Codes are kept as digests.
CREATE TABLE proposals (
  proposal_id  TEXT PRIMARY KEY,
  owner        TEXT NOT NULL,
  slug         TEXT NOT NULL,
  kind         TEXT NOT NULL,
  definition   TEXT NOT NULL,
  schedule_id  INTEGER,
  base_version INTEGER,
  note         TEXT,
  run_id       INTEGER,
  run_slug     TEXT,
  depth        INTEGER NOT NULL,
  status       TEXT NOT NULL,
  asked_at     INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  decided_at   INTEGER,
  decided_by   TEXT,
  code_digest  TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX proposals_pending ON proposals (status, owner, slug);
CREATE INDEX proposals_slug ON proposals (slug, asked_at);

-- Cancel: which runs people asked to cancel. The node that owns the run ends it.
CREATE TABLE cancels (
  run_id       INTEGER PRIMARY KEY,
  requested_at INTEGER NOT NULL,
  requested_by TEXT NOT NULL
) STRICT;

-- Statistics: sums over the ledger by schedule and outcome, so that they need not read all of it. Rows up to the counter
-- are in `run_totals`, but for those in `runs_to_total`, which were open. Cost is in billionths of a dollar.
CREATE TABLE run_totals (
  schedule_id INTEGER NOT NULL,
  outcome     TEXT NOT NULL,
  instants    INTEGER NOT NULL,
  tokens      INTEGER,
  cost        INTEGER
) STRICT;
CREATE INDEX run_totals_of_schedule ON run_totals (schedule_id);
CREATE INDEX run_totals_taken_back ON run_totals (schedule_id) WHERE instants < 0;
CREATE TABLE runs_to_total (
  schedule_id INTEGER NOT NULL,
  run_id      INTEGER NOT NULL,
  PRIMARY KEY (schedule_id, run_id)
) STRICT, WITHOUT ROWID;
INSERT INTO counters VALUES ('totalled_through', 0);

-- A closed row that changes is taken out of the sums, and summed up again later. Every statement that can change one
-- writes `result`; the one that closes plain runs does not, and pays nothing for this.
CREATE TRIGGER runs_total_changed AFTER UPDATE OF result ON runs
WHEN OLD.outcome <> 'running' AND OLD.outcome <> 'waiting'
  AND OLD.run_id <= (SELECT value FROM counters WHERE name = 'totalled_through')
  AND NOT EXISTS (SELECT 1 FROM runs_to_total WHERE schedule_id = OLD.schedule_id AND run_id = OLD.run_id)
BEGIN
  INSERT INTO run_totals SELECT
    OLD.schedule_id, OLD.outcome, -OLD.instants,
    CASE WHEN typeof(tokens) = 'integer' AND tokens BETWEEN 0 AND 1e15 THEN -tokens END,
    CASE WHEN typeof(cost) IN ('integer', 'real') AND cost BETWEEN 0 AND 1e6 THEN CAST(-round(cost * 1e9) AS INTEGER) END
  FROM (
    SELECT coalesce(json_extract(OLD.result, '$.usage.total'), json_extract(OLD.result, '$.usage.totalTokens')) AS tokens,
      json_extract(OLD.result, '$.usage.cost') AS cost
  );
  INSERT INTO runs_to_total VALUES (OLD.schedule_id, OLD.run_id);
END;

-- So is one that is deleted.
CREATE TRIGGER runs_total_deleted AFTER DELETE ON runs
WHEN OLD.run_id <= (SELECT value FROM counters WHERE name = 'totalled_through')
  AND NOT EXISTS (SELECT 1 FROM runs_to_total WHERE schedule_id = OLD.schedule_id AND run_id = OLD.run_id)
BEGIN
  INSERT INTO run_totals SELECT
    OLD.schedule_id, OLD.outcome, -OLD.instants,
    CASE WHEN typeof(tokens) = 'integer' AND tokens BETWEEN 0 AND 1e15 THEN -tokens END,
    CASE WHEN typeof(cost) IN ('integer', 'real') AND cost BETWEEN 0 AND 1e6 THEN CAST(-round(cost * 1e9) AS INTEGER) END
  FROM (
    SELECT coalesce(json_extract(OLD.result, '$.usage.total'), json_extract(OLD.result, '$.usage.totalTokens')) AS tokens,
      json_extract(OLD.result, '$.usage.cost') AS cost
  );
END;

-- How many deliveries are pending or dead on each channel: counted in the index alone.
CREATE INDEX deliveries_open ON deliveries (channel, status) WHERE status = 'pending' OR status = 'dead';

-- Backfill and replay: past instants that are run on request, one after another, and the runs made for them.
CREATE TABLE backfills (
  backfill_id  INTEGER PRIMARY KEY,
  schedule_id  INTEGER NOT NULL,
  trigger      TEXT NOT NULL,
  instants     TEXT NOT NULL,
  cursor       INTEGER NOT NULL,
  open_run_id  INTEGER,
  state        TEXT NOT NULL,
  requested_by TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  ended_at     INTEGER
) STRICT;
CREATE INDEX backfills_active ON backfills (schedule_id) WHERE state = 'active';
CREATE TABLE backfilled_runs (
  run_id      INTEGER PRIMARY KEY,
  schedule_id INTEGER NOT NULL,
  planned_at  INTEGER NOT NULL,
  replay_of   INTEGER
) STRICT;
CREATE INDEX backfilled_runs_instant ON backfilled_runs (schedule_id, planned_at);

-- Labels: which nodes may ring an alarm or begin a run, and the labels of each node. An alarm that needs a label has
-- `parked` 2, or 3 while it waits for its lane, so a query for 0 or 1 (also of a node of 0.1) does not find it.
ALTER TABLE alarms ADD COLUMN run_on TEXT;
ALTER TABLE runs ADD COLUMN run_on TEXT;
ALTER TABLE nodes ADD COLUMN labels TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN labels_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX alarms_labelled ON alarms (run_on, kind, priority, due_at, ref) WHERE parked = 2 AND due_at IS NOT NULL;
CREATE INDEX alarms_parked_labelled ON alarms (lane, run_on, priority, due_at, ref)
  WHERE parked = 3 AND kind = 'run' AND due_at IS NOT NULL;
-- Forecasts: one a day, to be compared with what happened.
CREATE TABLE forecasts (
  date    TEXT PRIMARY KEY,
  made_at INTEGER NOT NULL,
  ends_at INTEGER NOT NULL,
  body    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
