-- Answers that are given again to whoever asks again under the same key, and schedules that were removed, by their slug.

CREATE TABLE answers (
  key         text COLLATE "C" PRIMARY KEY,
  fingerprint text NOT NULL,
  answer      text NOT NULL,
  size        bigint NOT NULL,
  answered_at bigint NOT NULL
);

-- The newest first, with their sizes: what is over the limits is found without reading a single answer.
CREATE INDEX answers_age ON answers (answered_at, size);

-- Removed schedules by slug. Written when one is removed, never on a fire.
CREATE INDEX schedules_removed ON schedules (slug, schedule_id) WHERE deleted_at IS NOT NULL;
