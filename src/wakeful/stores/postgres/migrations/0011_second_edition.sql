-- The second edition adds to what there is; a node of 0.1 goes on working on it, but for workflows.

-- Quota slots: wakes that did not arrive, and since when the provider cannot be reached.
ALTER TABLE slots ADD COLUMN unsent bigint NOT NULL DEFAULT 0;
ALTER TABLE slots ADD COLUMN unreachable_since bigint;
-- Schedules that name a slot are found without a walk, so that one that is gone is noticed.
CREATE INDEX schedules_naming_slot ON schedules (schedule_id)
  WHERE deleted_at IS NULL AND strpos(definition, '"slot":"') > 0;
ALTER TABLE slots ADD COLUMN wake_errors_before bigint NOT NULL DEFAULT 0;

-- Workflows: several consumers on a topic. Each message has a row per consumer, with its own status; how far a consumer
-- has looked is kept per topic and consumer. What was there belongs to the one consumer its topic had.
CREATE TABLE subscriptions (
  workflow_id bigint NOT NULL,
  topic       text COLLATE "C" NOT NULL,
  consumer    text COLLATE "C" NOT NULL,
  published   bigint NOT NULL,
  seen        bigint NOT NULL,
  is_active   bigint NOT NULL,
  PRIMARY KEY (workflow_id, topic, consumer)
);

INSERT INTO subscriptions (workflow_id, topic, consumer, published, seen, is_active)
SELECT workflow_id, name, coalesce(consumer, ''), published, seen, CASE WHEN consumer IS NULL THEN 0 ELSE 1 END
FROM topics
WHERE consumer IS NOT NULL OR EXISTS (
  SELECT 1 FROM messages
  WHERE messages.workflow_id = topics.workflow_id AND messages.topic = topics.name AND messages.status = 'pending'
);

ALTER TABLE messages ADD COLUMN consumer text COLLATE "C" NOT NULL DEFAULT '';
UPDATE messages SET consumer = topics.consumer FROM topics
WHERE topics.workflow_id = messages.workflow_id AND topics.name = messages.topic AND topics.consumer IS NOT NULL;
ALTER TABLE messages ALTER COLUMN consumer DROP DEFAULT;
ALTER TABLE messages DROP CONSTRAINT messages_workflow_id_topic_message_id_key;
ALTER TABLE messages ADD UNIQUE (workflow_id, topic, message_id, consumer);

-- How many of each status a consumer has, and what is pending in its order: counted and walked in the index alone.
DROP INDEX messages_status;
CREATE INDEX messages_status ON messages (workflow_id, topic, consumer, status, place);

ALTER TABLE topics DROP COLUMN consumer;
ALTER TABLE topics DROP COLUMN seen;

-- Workflows: handlers that cannot be reached are held off; consumers are shown one page of a long topic after another.
ALTER TABLE workflow_handlers ADD COLUMN tries bigint NOT NULL DEFAULT 0;
ALTER TABLE workflow_handlers ADD COLUMN held_until bigint;
ALTER TABLE workflow_handlers ADD COLUMN last_error text;
ALTER TABLE workflow_handlers ADD COLUMN turn_topic text COLLATE "C";
ALTER TABLE workflow_handlers ADD COLUMN turn_place bigint NOT NULL DEFAULT 0;
ALTER TABLE workflow_handlers ADD COLUMN lap_topic text COLLATE "C";
ALTER TABLE workflow_handlers ADD COLUMN lap_place bigint NOT NULL DEFAULT 0;

-- Workflows: which version passed its dry prepare, and the rate limit of consumers that publish to themselves.
ALTER TABLE workflows ADD COLUMN tried_version bigint NOT NULL DEFAULT 0;
ALTER TABLE workflows ADD COLUMN window_at bigint;
ALTER TABLE workflows ADD COLUMN window_runs bigint NOT NULL DEFAULT 0;
ALTER TABLE workflows ADD COLUMN limited_until bigint;
UPDATE workflows SET tried_version = version WHERE status <> 'draft';

-- Alerts: how a cadence stands (0: well, 1: recovering, 2: bad), and the schedules that are failing or halted, found
-- without a walk. A run that succeeds touches neither. This replaces the earlier index.
ALTER TABLE cadences ADD COLUMN trouble bigint NOT NULL DEFAULT 0;
UPDATE cadences SET trouble = 2 WHERE consecutive_errors > 0 AND state <> 'done';
DROP INDEX cadences_amiss;
CREATE INDEX cadences_troubled ON cadences (schedule_id)
  WHERE state = 'paused' OR state = 'disabled' OR state = 'invalid' OR trouble = 2;

-- Alerts: an incident is watched before it is reported, rings when it is to be reported, and counts until it is over.
ALTER TABLE incidents ADD COLUMN stage text NOT NULL DEFAULT 'reported';
ALTER TABLE incidents ADD COLUMN owner_id bigint;
ALTER TABLE incidents ADD COLUMN run_id bigint;
ALTER TABLE incidents ADD COLUMN bad bigint NOT NULL DEFAULT 0;
ALTER TABLE incidents ADD COLUMN good bigint NOT NULL DEFAULT 0;
ALTER TABLE incidents ADD COLUMN look_at bigint;
ALTER TABLE incidents ADD COLUMN told_at bigint;
ALTER TABLE incidents ADD COLUMN quiet_until bigint;
ALTER TABLE incidents ADD COLUMN channel text;
ALTER TABLE incidents ADD COLUMN reopened bigint NOT NULL DEFAULT 0;
-- What 0.1 told under several names is one incident for each schedule now.
UPDATE incidents SET closed_at = last_at WHERE closed_at IS NULL AND (
  name LIKE 'disabled:%' OR name LIKE 'failing:%' OR name LIKE 'invalid:%' OR name LIKE 'stuck:%'
  OR name LIKE 'unconfirmed:%' OR name LIKE 'unknown:%' OR name = 'heartbeat:failing'
);
-- The last one of a name that is over.
CREATE INDEX incidents_over ON incidents (name, closed_at) WHERE closed_at IS NOT NULL;

-- Alerts: which `[alerts]` and `[budgets]` a node works by, as a hash.
ALTER TABLE nodes ADD COLUMN terms text NOT NULL DEFAULT '';

-- Page logins: one-time codes and sessions, as digests; the secrets themselves are not stored.
CREATE TABLE logins (
  digest       text COLLATE "C" PRIMARY KEY,
  kind         text NOT NULL,
  role         text NOT NULL,
  name         text NOT NULL,
  token_digest text NOT NULL,
  created_at   bigint NOT NULL,
  expires_at   bigint NOT NULL
);

-- Agents: the node that began the session of a schedule; a command-line agent keeps its sessions on that node's disk.
ALTER TABLE cadences ADD COLUMN session_node text;

-- Moving in: where definitions came from, and the journals of takeovers from other schedulers.
CREATE TABLE origins (
  source text COLLATE "C" NOT NULL,
  place  text COLLATE "C" NOT NULL,
  ref    text COLLATE "C" NOT NULL,
  kind   text COLLATE "C" NOT NULL,
  name   text COLLATE "C" NOT NULL,
  digest text NOT NULL,
  at     bigint NOT NULL,
  PRIMARY KEY (source, place, ref)
);
CREATE INDEX origins_name ON origins (kind, name);
CREATE TABLE handovers (
  handover_id text COLLATE "C" PRIMARY KEY,
  source      text NOT NULL,
  host        text NOT NULL,
  stage       text NOT NULL,
  hand_at     bigint NOT NULL,
  off_at      bigint,
  body        text NOT NULL,
  problem     text,
  created_at  bigint NOT NULL,
  updated_at  bigint NOT NULL
);
-- Money: what each attempt of an agent's turn used and cost, in billionths of a dollar. A row is open from the claim of
-- the attempt until it ends. `cost` and `tokens` are unknown if nothing was reported; `held_` is what budgets count then.
CREATE TABLE charges (
  run_id       bigint NOT NULL,
  attempt      bigint NOT NULL,
  owner_id     bigint NOT NULL,
  agent        text COLLATE "C",
  model        text COLLATE "C",
  at           bigint NOT NULL,
  settled_at   bigint,
  input        bigint,
  cached_input bigint,
  output       bigint,
  reasoning    bigint,
  tokens       bigint,
  cost         bigint,
  priced       text COLLATE "C" NOT NULL,
  held_cost    bigint NOT NULL,
  held_tokens  bigint NOT NULL,
  PRIMARY KEY (run_id, attempt)
);
CREATE INDEX charges_at ON charges (at);
CREATE INDEX charges_of_owner ON charges (owner_id, at);
CREATE INDEX charges_of_agent ON charges (agent, at) WHERE agent IS NOT NULL;

-- Money: one budget in one period: the lock under which runs reserve, and the sums. Limits are settings, or set by a
-- person (`budget_limits`), or in a definition.
CREATE TABLE budgets (
  budget_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope     text COLLATE "C" NOT NULL,
  unit      text COLLATE "C" NOT NULL,
  period    text COLLATE "C" NOT NULL,
  starts_at bigint NOT NULL,
  ends_at   bigint NOT NULL,
  zone      text COLLATE "C" NOT NULL,
  spent     bigint NOT NULL,
  reserved  bigint NOT NULL,
  UNIQUE (scope, unit, period, starts_at, ends_at)
);
CREATE INDEX budgets_ended ON budgets (ends_at);

-- Money: what an open attempt has reserved in a budget.
CREATE TABLE reservations (
  run_id    bigint NOT NULL,
  attempt   bigint NOT NULL,
  budget_id bigint NOT NULL,
  amount    bigint NOT NULL,
  PRIMARY KEY (run_id, attempt, budget_id)
);

-- Money: limits that a person set; they replace those of the settings. Agents that were stopped because of their cost.
CREATE TABLE budget_limits (
  scope  text COLLATE "C" NOT NULL,
  unit   text COLLATE "C" NOT NULL,
  period text COLLATE "C" NOT NULL,
  amount bigint NOT NULL,
  set_at bigint NOT NULL,
  PRIMARY KEY (scope, unit, period)
);
CREATE TABLE brakes (
  agent text COLLATE "C" PRIMARY KEY,
  at    bigint NOT NULL,
  text  text COLLATE "C" NOT NULL
);

-- Money: what each owner of runs has spent in its current day and month, for lists of schedules.
CREATE TABLE spending (
  owner_id        bigint PRIMARY KEY,
  day_starts_at   bigint NOT NULL,
  day_ends_at     bigint NOT NULL,
  day_cost        bigint NOT NULL,
  month_starts_at bigint NOT NULL,
  month_ends_at   bigint NOT NULL,
  month_cost      bigint NOT NULL,
  last_run_id     bigint NOT NULL,
  last_cost       bigint
);
CREATE INDEX spending_ended ON spending (month_ends_at);

-- Pre-checks: instants at which a check found nothing are one row; the ids of the rows that were merged still resolve.
CREATE TABLE merged_runs (
  run_id  bigint PRIMARY KEY,
  into_id bigint NOT NULL
);
CREATE INDEX merged_runs_into ON merged_runs (into_id);

-- Schedules with a budget, found without a walk.
CREATE INDEX schedules_with_budget ON schedules (schedule_id)
  WHERE deleted_at IS NULL AND strpos(definition, '"budget":{') > 0;

-- Schedules that name a calendar file, found without a walk.
CREATE INDEX schedules_with_calendar ON schedules (schedule_id)
  WHERE deleted_at IS NULL AND strpos(definition, '"calendar":"') > 0;

-- Agents that schedule themselves: who owns a schedule that an agent made, and the run that made it.
CREATE TABLE ownerships (
  schedule_id bigint PRIMARY KEY,
  owner       text NOT NULL,
  kind        text NOT NULL,
  run_id      bigint,
  run_slug    text,
  depth       bigint NOT NULL,
  approval    text,
  created_at  bigint NOT NULL
);
CREATE INDEX ownerships_owner ON ownerships (owner, created_at);

-- Agents that schedule themselves: what waits for a person, and what was decided. Codes are kept as digests.
CREATE TABLE proposals (
  proposal_id  text COLLATE "C" PRIMARY KEY,
  owner        text NOT NULL,
  slug         text COLLATE "C" NOT NULL,
  kind         text NOT NULL,
  definition   text NOT NULL,
  schedule_id  bigint,
  base_version bigint,
  note         text,
  run_id       bigint,
  run_slug     text,
  depth        bigint NOT NULL,
  status       text NOT NULL,
  asked_at     bigint NOT NULL,
  expires_at   bigint NOT NULL,
  decided_at   bigint,
  decided_by   text,
  code_digest  text
);
CREATE INDEX proposals_pending ON proposals (status, owner, slug);
CREATE INDEX proposals_slug ON proposals (slug, asked_at);

-- Cancel: which runs people asked to cancel. The node that owns the run ends it.
CREATE TABLE cancels (
  run_id       bigint PRIMARY KEY,
  requested_at bigint NOT NULL,
  requested_by text NOT NULL
);

-- Statistics: sums over the ledger by schedule and outcome, so that they need not read all of it. Rows up to the counter
-- are in `run_totals`, but for those in `runs_to_total`, which were open. Cost is in billionths of a dollar.
CREATE TABLE run_totals (
  schedule_id bigint NOT NULL,
  outcome     text NOT NULL,
  instants    bigint NOT NULL,
  tokens      bigint,
  cost        bigint
);
CREATE INDEX run_totals_of_schedule ON run_totals (schedule_id);
CREATE INDEX run_totals_taken_back ON run_totals (schedule_id) WHERE instants < 0;
CREATE TABLE runs_to_total (
  schedule_id bigint NOT NULL,
  run_id      bigint NOT NULL,
  PRIMARY KEY (schedule_id, run_id)
);
INSERT INTO counters VALUES ('totalled_through', 0);

-- What a run used, from its result; null if it is no number that can be added up.
CREATE FUNCTION used_tokens(result text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN found ~ '^[0-9]{1,15}$' THEN found::bigint END
  FROM (SELECT coalesce(result::json #>> '{usage,total}', result::json #>> '{usage,totalTokens}') AS found) AS usage
$$;
CREATE FUNCTION used_cost(result text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN found ~ '^[0-9]{1,6}([.][0-9]+)?(e-[0-9]{1,3})?$' THEN round(found::numeric * 1000000000)::bigint END
  FROM (SELECT result::json #>> '{usage,cost}' AS found) AS usage
$$;

-- A closed row that changes is taken out of the sums, and summed up again later; so is one that is deleted. Every
-- statement that can change one writes `result`; the one that closes plain runs does not.
CREATE FUNCTION take_back_total() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.run_id <= (SELECT value FROM counters WHERE name = 'totalled_through') AND NOT EXISTS (
    SELECT 1 FROM runs_to_total WHERE schedule_id = OLD.schedule_id AND run_id = OLD.run_id
  ) THEN
    INSERT INTO run_totals VALUES (
      OLD.schedule_id, OLD.outcome, -OLD.instants,
      -used_tokens(OLD.result), -used_cost(OLD.result)
    );
    IF TG_OP = 'UPDATE' THEN
      INSERT INTO runs_to_total VALUES (OLD.schedule_id, OLD.run_id) ON CONFLICT DO NOTHING;
    END IF;
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER runs_total_changed AFTER UPDATE OF result ON runs
  FOR EACH ROW WHEN (OLD.outcome <> 'running' AND OLD.outcome <> 'waiting') EXECUTE FUNCTION take_back_total();
CREATE TRIGGER runs_total_deleted AFTER DELETE ON runs FOR EACH ROW EXECUTE FUNCTION take_back_total();

-- How many deliveries are pending or dead on each channel: counted in the index alone.
CREATE INDEX deliveries_open ON deliveries (channel, status) WHERE status = 'pending' OR status = 'dead';

-- Backfill and replay: past instants that are run on request, one after another, and the runs made for them.
CREATE TABLE backfills (
  backfill_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  schedule_id  bigint NOT NULL,
  trigger      text NOT NULL,
  instants     text NOT NULL,
  cursor       bigint NOT NULL,
  open_run_id  bigint,
  state        text NOT NULL,
  requested_by text NOT NULL,
  created_at   bigint NOT NULL,
  ended_at     bigint
);
CREATE INDEX backfills_active ON backfills (schedule_id) WHERE state = 'active';
CREATE TABLE backfilled_runs (
  run_id      bigint PRIMARY KEY,
  schedule_id bigint NOT NULL,
  planned_at  bigint NOT NULL,
  replay_of   bigint
);
CREATE INDEX backfilled_runs_instant ON backfilled_runs (schedule_id, planned_at);

-- Labels: which nodes may ring an alarm or begin a run, and the labels of each node. An alarm that needs a label has
-- `parked` 2, or 3 while it waits for its lane, so a query for 0 or 1 (also of a node of 0.1) does not find it.
ALTER TABLE alarms ADD COLUMN run_on text;
ALTER TABLE runs ADD COLUMN run_on text;
ALTER TABLE nodes ADD COLUMN labels text NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN labels_at bigint NOT NULL DEFAULT 0;
CREATE INDEX alarms_labelled ON alarms (run_on, kind, priority, due_at, ref) WHERE parked = 2 AND due_at IS NOT NULL;
CREATE INDEX alarms_parked_labelled ON alarms (lane, run_on, priority, due_at, ref)
  WHERE parked = 3 AND kind = 'run' AND due_at IS NOT NULL;
-- Forecasts: one a day, to be compared with what happened.
CREATE TABLE forecasts (
  date    text COLLATE "C" PRIMARY KEY,
  made_at bigint NOT NULL,
  ends_at bigint NOT NULL,
  body    text NOT NULL
);
