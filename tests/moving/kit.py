"""Imports in tests: a context for a person in a zone, and the oracles."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wakeful.core.time.instants import DAY, parse_instant
from wakeful.core.time.timing import next_after, resolve
from wakeful.core.time.timing_json import read_timing
from wakeful.integrations.imports.catalogue import entries_of
from wakeful.integrations.imports.entries import Context, Entry
from wakeful.integrations.imports.fitting import fit

CORPUS = Path(__file__).parent / "corpus"
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "UTC")
STARTS = tuple(
    parse_instant(text)
    for text in (
        "2026-11-16T18:00:00Z",
        "2026-10-23T12:00:00Z",
        "2026-10-31T12:00:00Z",
        "2027-03-13T00:00:00Z",
        "2027-03-27T00:00:00Z",
        "2027-04-02T00:00:00Z",
        "2027-04-29T00:00:00Z",
    )
)
BASE = Context(STARTS[0], "Europe/Berlin", user="me", user_home=Path("/home/me"))


def read(kind: str, path: Path | None = None, *, content: str | None = None, **changes: Any) -> list[Entry]:
    return entries_of(kind, content=content, path=path, context=replace(BASE, **changes))


def year_of(entry: Entry) -> list[int]:
    """The times of the schedule that an entry becomes, over the year from the first start."""
    assert entry.refused is None, entry.refused
    schedule, problem = dict(entry.schedule), None
    if entry.times is not None:
        schedule, problem = fit(schedule, entry.times, now=STARTS[0])
    assert problem is None, problem
    timing, at, found = resolve(read_timing(schedule), now=STARTS[0], default_zone="UTC"), STARTS[0], []
    while (following := next_after(timing, at)) is not None and following <= STARTS[0] + 365 * DAY:
        found.append(at := following)
    return found


def known_as(times: Sequence[int]) -> dict[str, Any]:
    """A year of times, as the corpus keeps those of a library."""
    return {"count": len(times), "sha256": hashlib.sha256(" ".join(map(str, times)).encode()).hexdigest()}
