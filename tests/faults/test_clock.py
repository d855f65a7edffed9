"""A clock that somebody sets under running processes, and a machine that slept (L3)."""

import signal
import time
from pathlib import Path

import pytest

from faults.kit import Field, steady
from wakeful.core.time.instants import HOUR


def set_clock(file: Path, by: int) -> None:
    """As an administrator does: at once, and for everyone."""
    unborn = file.with_suffix(".new")
    unborn.write_text(str(by))
    unborn.replace(file)


@pytest.mark.parametrize("step", [3 * HOUR, -3 * HOUR])
def test_a_step_by_hours_costs_one_catch_up_and_no_silence(field: Field, step: int) -> None:
    """Runs go on within seconds, nothing is run twice, and the ledger says what was jumped over."""
    field.put(steady(4, every=1_000))
    clock = field.folder / "clock"
    set_clock(clock, 0)
    node = field.start(clock=clock)
    field.until_closed(8)
    set_clock(clock, step)
    stepped = field.closed()
    field.until_closed(stepped + 8)
    set_clock(clock, 0)
    back = field.closed()
    field.until_closed(back + 8)
    field.stop(node)
    rows = field.look(lambda tx: tx.runs.page(limit=100_000))
    seen = field.audit().findings
    assert [one for one in seen if one.kind in ("extra", "overlapping")] == []
    caught_up = [row for row in rows if row.trigger == "catchUp"]
    assert len(caught_up) <= 4, "one for each schedule at most"
    if step > 0:
        assert {row.reason for row in rows if row.outcome == "missed"} <= {"clock"}


def test_a_node_that_stood_still_goes_on(field: Field) -> None:
    """Longer than its lease, as when the lid is closed: on its own machine nobody took anything from it."""
    field.put(steady(4, every=500))
    node = field.start()
    field.until_closed(8)
    node.send_signal(signal.SIGSTOP)
    try:
        stood_at = time.monotonic()
        field.until(lambda: time.monotonic() > stood_at + 6)
    finally:
        node.send_signal(signal.SIGCONT)
    field.until_closed(field.closed() + 12)
    field.stop(node)
    verdict = field.audit()
    assert verdict.is_clean, verdict.in_words()
