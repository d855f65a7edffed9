"""docs/events.md is made from the descriptions of the events (a test of the settings compares it). Here: each event is
described once, and is really told."""

import re
from pathlib import Path
from typing import Final, get_args

from docs.blocks import ROOT
from wakeful.ports import event_data, events
from wakeful.ports.event import EventKind
from wakeful.ports.sink import ScheduleChangeKind

SOURCES: Final = ROOT / "src" / "wakeful"
TABLE: Final = Path(str(events.__file__))


def words_of_the_source() -> set[str]:
    """Of all files but the table."""
    files = [file for file in SOURCES.rglob("*.py") if file != TABLE]
    return {word for file in files for word in re.findall(r"\b[A-Z_]{4,}\b", file.read_text(encoding="utf-8"))}


def test_every_event_is_told() -> None:
    """The changes of schedules are told by their kind, all others by their name in the table."""
    named = {name: kind for name, kind in vars(events).items() if isinstance(kind, EventKind)}
    assert set(events.SCHEDULE_CHANGES) == set(get_args(ScheduleChangeKind))
    silent = named.keys() - words_of_the_source()
    assert silent == {name for name, kind in named.items() if kind in events.SCHEDULE_CHANGES.values()}
    assert {*named.values()} == {kind for stream in events.STREAMS.values() for kind in stream.kinds}


def test_no_event_has_two_descriptions() -> None:
    """Its name is unique in its stream."""
    for name, stream in events.STREAMS.items():
        whats = [kind.what for kind in stream.kinds]
        assert len(whats) == len(set(whats))
        assert {kind.stream for kind in stream.kinds} == {name}


def test_a_field_that_does_not_apply_is_left_out() -> None:
    """And comes with its name in JSON if it does."""
    assert events.RUN_VOIDED.json(event_data.RunNamed(7)) == {"runId": "7"}
    suppressed = event_data.Suppressed("phone", None, "daily")
    assert events.DELIVERY_SUPPRESSED.json(suppressed) == {"channel": "phone", "runId": None, "slug": "daily"}
    stopped = event_data.WorkflowChanged("inbox", error="no key")
    assert events.WORKFLOW_STOPPED.json(stopped) == {"workflow": "inbox", "error": "no key"}
