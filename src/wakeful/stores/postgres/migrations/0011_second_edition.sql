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
