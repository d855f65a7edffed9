-- The second edition adds to what there is; a node of 0.1 goes on working on it.

-- Quota slots: wakes that did not arrive, and since when the provider cannot be reached.
ALTER TABLE slots ADD COLUMN unsent bigint NOT NULL DEFAULT 0;
ALTER TABLE slots ADD COLUMN unreachable_since bigint;
ALTER TABLE slots ADD COLUMN wake_errors_before bigint NOT NULL DEFAULT 0;
