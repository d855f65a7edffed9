-- The third edition. Only additions: nodes of 0.2 run on this schema too.

-- Schedules that are halted or failing; since 0.3 also because of a manual run (trouble 3 and 4).
CREATE INDEX cadences_amiss ON cadences (schedule_id)
  WHERE state = 'paused' OR state = 'disabled' OR state = 'invalid' OR trouble >= 2;
-- How often in a row a delivery was claimed by a process that ended before it sent anything.
ALTER TABLE deliveries ADD COLUMN unsent_claims integer NOT NULL DEFAULT 0;

-- Up to which instant a producer may have run although it lies ahead, because the clock went back.
ALTER TABLE workflow_handlers ADD COLUMN ran_through bigint NOT NULL DEFAULT 0;

-- The times of day of a slot that lie ahead and were served, because the clock went back (JSON).
ALTER TABLE slots ADD COLUMN times_served text;
-- Money: what the reservation of an attempt is based on: `estimate`, `rest` (everything that was left), or `unpriced`
-- (its cost cannot be known: it is not under limits in dollars).
ALTER TABLE charges ADD COLUMN basis TEXT NOT NULL DEFAULT 'estimate';
-- Money: attempts of unknown cost, for what is shown beside the sums.
CREATE INDEX charges_unknown ON charges (at, owner_id, agent, settled_at, held_cost) WHERE cost IS NULL;
-- Money: whether a person allowed a limit that does not hold for agents of unknown cost. Empty: set by 0.2.
ALTER TABLE budget_limits ADD COLUMN unpriced TEXT NOT NULL DEFAULT '';
-- Money: 0.2 charged everything that was left of a day for a run of an agent that reports no cost. Budgets are given it
-- back, or no other agent could run until their period ends.
UPDATE charges SET held_cost = 0 WHERE cost IS NULL AND settled_at IS NOT NULL AND held_cost > 0
  AND agent NOT IN (SELECT agent FROM charges WHERE cost IS NOT NULL AND agent IS NOT NULL);
UPDATE budgets SET spent = (SELECT coalesce(sum(coalesce(cost, held_cost)), 0) FROM charges AS c
  WHERE at >= starts_at AND at < ends_at AND settled_at IS NOT NULL
    AND (scope = 'all' OR scope = 'agent:' || agent OR scope = 'schedule:' || owner_id))
  WHERE unit = 'usd';
-- Money: what schedules spent no longer contains what was assumed for attempts of unknown cost.
UPDATE spending SET
  day_cost = (SELECT coalesce(sum(cost), 0) FROM charges AS c WHERE c.owner_id = spending.owner_id
    AND settled_at IS NOT NULL AND at >= day_starts_at AND at < day_ends_at),
  month_cost = (SELECT coalesce(sum(cost), 0) FROM charges AS c WHERE c.owner_id = spending.owner_id
    AND settled_at IS NOT NULL AND at >= month_starts_at AND at < month_ends_at);

-- Schedules that send headers, found without a walk.
CREATE INDEX schedules_with_headers ON schedules (schedule_id)
  WHERE deleted_at IS NULL AND strpos(definition, '"headers":{') > 0;
-- The release of a node; 0.2 writes none.
ALTER TABLE nodes ADD COLUMN release text;

-- Payloads that several consumers of a topic share; `messages.payload` is empty then. They are under the sequence with
-- which the first of their rows was written. Written after step 13 only: 0.2 reads the payload from each row.
CREATE TABLE payloads (
  workflow_id bigint NOT NULL,
  topic       text COLLATE "C" NOT NULL,
  message_id  text COLLATE "C" NOT NULL,
  seq         bigint NOT NULL,
  payload     text NOT NULL,
  PRIMARY KEY (workflow_id, topic, message_id, seq)
);
ALTER TABLE messages ADD COLUMN payload_seq bigint;

-- Workflows: the processes that loaded a Python workflow, which alone can run its handlers.
CREATE TABLE loaded_workflows (
  workflow  text COLLATE "C" NOT NULL,
  node      text COLLATE "C" NOT NULL,
  host      text COLLATE "C" NOT NULL,
  pid       bigint NOT NULL,
  started   text NOT NULL,
  program   text NOT NULL,
  loaded_at bigint NOT NULL,
  ended_at  bigint,
  PRIMARY KEY (workflow, node, host, pid)
);

-- Workflows: errors of a handler's server in a row, and which consumers publish to which topics through the API.
ALTER TABLE workflow_handlers ADD COLUMN faults bigint NOT NULL DEFAULT 0;
CREATE TABLE workflow_feeds (
  source_id bigint NOT NULL,
  consumer  text COLLATE "C" NOT NULL,
  target_id bigint NOT NULL,
  topic     text COLLATE "C" NOT NULL,
  seen_at   bigint NOT NULL,
  PRIMARY KEY (source_id, consumer, target_id, topic)
);
