"""Whether the rows of a store that refer to one another exist. The schema has no foreign keys: the rows are written in
an order that they would forbid, and checking them would cost every fire."""

from collections.abc import Iterator
from typing import Final

from wakeful.core.run.settlement import BACKFILLED
from wakeful.ports.store import Tx

# Runs of past instants that are run on request: they are beside the plan, and hold no lane.
_BESIDE = f"trigger IN {tuple(sorted(BACKFILLED))}"
_SCHEDULES = "SELECT schedule_id FROM schedules WHERE deleted_at IS NULL"

BROKEN: Final = {
    # Of schedules that are not removed.
    "schedule {} has no plan": f"{_SCHEDULES} AND schedule_id NOT IN (SELECT schedule_id FROM cadences)",
    "the plan of schedule {} belongs to no schedule": """
SELECT schedule_id FROM cadences WHERE schedule_id > 0 AND schedule_id NOT IN (SELECT schedule_id FROM schedules)
""",
    "schedule {} is planned, and has no alarm": f"""
SELECT schedule_id FROM cadences WHERE state = 'active' AND next_at IS NOT NULL AND schedule_id IN ({_SCHEDULES})
  AND NOT EXISTS (SELECT 1 FROM alarms WHERE kind = 'schedule' AND ref = schedule_id)
""",
    "schedule {} refers to an open run that is not open": """
SELECT schedule_id FROM cadences WHERE open_run_id IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM runs WHERE run_id = open_run_id AND runs.schedule_id = cadences.schedule_id
    AND (outcome IN ('running', 'waiting') OR stuck = 1)
)
""",
    "schedule {} refers to a queued run that does not wait": """
SELECT schedule_id FROM cadences WHERE queued_run_id IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM runs WHERE run_id = queued_run_id AND runs.schedule_id = cadences.schedule_id AND outcome = 'waiting'
)
""",
    "run {} is open, and its schedule does not refer to it": f"""
SELECT run_id FROM runs WHERE kind = 'schedule' AND NOT {_BESIDE} AND outcome IN ('running', 'waiting')
  AND NOT EXISTS (
    SELECT 1 FROM cadences WHERE cadences.schedule_id = runs.schedule_id AND run_id IN (open_run_id, queued_run_id)
  )
""",
    "run {} waits, and has no alarm": """
SELECT run_id FROM runs WHERE outcome = 'waiting'
  AND NOT EXISTS (SELECT 1 FROM alarms WHERE alarms.kind = 'run' AND ref = run_id)
""",
    "run {} is running on a node that does not exist": """
SELECT run_id FROM runs WHERE outcome = 'running' AND NOT EXISTS (SELECT 1 FROM nodes WHERE node_id = owner)
""",
    "run {} is in a lane that another run holds": f"""
SELECT run_id FROM runs JOIN lanes ON lanes.lane = runs.lane AND holder <> run_id
WHERE (outcome = 'running' OR stuck = 1) AND NOT {_BESIDE}
""",
    "run {} holds a lane, and is not running": """
SELECT holder FROM lanes WHERE holder IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM runs WHERE run_id = holder AND (outcome = 'running' OR stuck = 1)
)
""",
    "an alarm refers to run {}, which does not wait": """
SELECT ref FROM alarms WHERE kind = 'run' AND NOT EXISTS (SELECT 1 FROM runs WHERE run_id = ref AND outcome = 'waiting')
""",
    "an alarm refers to schedule {}, which has no plan": """
SELECT ref FROM alarms WHERE kind = 'schedule' AND NOT EXISTS (SELECT 1 FROM cadences WHERE schedule_id = ref)
""",
    "an attempt refers to run {}, which does not exist": """
SELECT DISTINCT run_id FROM attempts WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = attempts.run_id)
""",
}
"""What may be wrong, with the query that finds the ids."""


def dangling(tx: Tx) -> Iterator[str]:
    """What refers to something that is not there, or is not referred to although it must be."""
    for sentence, query in BROKEN.items():
        for (found,) in tx.db.rows(query):
            yield sentence.format(found)
