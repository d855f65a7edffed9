"""Attempts seen from outside: as their targets recorded them, without asking the scheduler.

A target writes one JSON line when it begins and one when it ends. A command has all it needs in its environment
(`WAKEFUL_RUN_ID`, `WAKEFUL_ATTEMPT`, …). A line that was cut off by a kill does not count.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from wakeful.core.time.instants import Instant


class Observation(NamedTuple):
    """One attempt, as its target saw it."""

    run_id: int
    attempt: int
    key: str
    began_at: Instant
    ended_at: Instant | None = None  # None: it was never seen to end
    lane: str | None = None


def read_observations(paths: Iterable[Path]) -> list[Observation]:
    """Put together the lines `{"runId", "attempt", "key", "at", "what": "began" | "ended", "lane"?}` of these files."""
    open_ones: dict[tuple[int, int], list[Observation]] = {}
    closed: list[Observation] = []
    for path in paths:
        for line in _whole_lines(path):
            said = json.loads(line)
            key = (int(said["runId"]), int(said["attempt"]))
            if said["what"] == "began":
                began = Observation(*key, str(said["key"]), int(said["at"]), None, said.get("lane"))
                open_ones.setdefault(key, []).append(began)
            elif waiting := open_ones.get(key):
                closed.append(waiting.pop(0)._replace(ended_at=int(said["at"])))
    left = [observation for waiting in open_ones.values() for observation in waiting]
    return sorted(
        closed + left, key=lambda observation: (observation.began_at, observation.run_id, observation.attempt)
    )


def _whole_lines(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    whole, _, _ = text.rpartition("\n")
    yield from (line for line in whole.split("\n") if line)
