"""`wakeful doctor --drill`: run a drill, show its progress, its counts and its verdict."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import click

from wakeful.cli.errors import FAILED, Ended
from wakeful.cli.home import store_of_settings
from wakeful.cli.invocation import Invocation, end
from wakeful.cli.render import json_out, note, say

if TYPE_CHECKING:
    from wakeful.drill.drill import Asked, Report, Tried

SHOWN_MAX: Final = 20
SIGNALLED: Final = 128
POSTGRES: Final = ("postgresql://", "postgres://")


def run_drill(invocation: Invocation, minutes: float, store: str | None) -> None:
    """Run a drill and exit with 0 only if it passed."""
    from wakeful.drill.drill import Asked
    from wakeful.drill.scratch import CannotDrill

    home = invocation.home
    server = store or store_of_settings(home, hint="correct the settings, or name a store with --store")
    if not server.startswith(POSTGRES):
        home, server = home if store is None else _folder_of(store), ""
    try:
        report = asyncio.run(_interruptible(Asked(home, minutes * 60, server or None)))
    except CannotDrill as error:
        raise Ended(str(error), hint=error.cure) from error
    if invocation.is_json:
        json_out(as_json(report))
    else:
        show(report)
    if not report.is_passed:
        end(FAILED)


async def _interruptible(asked: Asked) -> Report:
    """Run the drill so that Ctrl-C and kill end it in order."""
    from wakeful.drill.drill import drill

    task = asyncio.ensure_future(drill(asked, _Progress().tell))
    caught: list[int] = []

    def stop(number: int) -> None:
        caught.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not caught:
            raise
        stopped = Ended("the drill was interrupted", hint="everything it created was removed")
        stopped.code = SIGNALLED + caught[0]
        raise stopped from None


class _Progress:
    """Lines on standard error, each with the time that has passed."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def tell(self, words: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        click.echo(f"{minutes}:{seconds:02}  {words}", err=True)


def _folder_of(store: str) -> Any:
    from wakeful.cli.invocation import full_path

    return full_path(store.removeprefix("sqlite:///")).parent


def as_json(report: Report) -> dict[str, Any]:
    """The report as JSON."""
    counted = report.counted
    return {
        "verdict": "passed" if report.is_passed else "failed",
        "store": report.store,
        "seconds": round(report.seconds, 1),
        "planned": counted.planned,
        "ran": counted.ran,
        "excused": counted.excused,
        "reasons": dict(counted.reasons),
        "lost": counted.lost,
        "doubled": counted.doubled,
        "late": counted.late,
        "lateMaxMs": counted.late_max,
        "repeated": counted.repeated,
        "findings": list(report.findings),
        "faults": [
            {
                "kind": fault.kind,
                "what": fault.words,
                "recoveredMs": None if fault.recovered_in is None else round(fault.recovered_in * 1000),
                "note": fault.note,
            }
            for fault in report.tried
        ],
        "machine": report.machine,
    }


def show(report: Report) -> None:
    """Tables of the faults, the counts and the machine, and the verdict."""
    from wakeful.cli.tables import Column, facts, paragraph, table

    rows = [_fault_row(kind, list(tried)) for kind, tried in groupby(sorted(report.tried, key=_kind), key=_kind)]
    table([Column("FAULT"), Column("TIMES"), Column("SLOWEST RECOVERY"), Column("NOT TRIED")], rows)
    say("")
    facts(_counts(report))
    say("")
    facts([(name, _words(known)) for name, known in _named(report.machine)])
    say("")
    for finding in report.findings[:SHOWN_MAX]:
        paragraph(finding, label="wrong   ")
    if len(report.findings) > SHOWN_MAX:
        say(f"        and {len(report.findings) - SHOWN_MAX} more; all of them: -o json")
    click.echo(_verdict(report))
    if any(fault.recovered_in is None for fault in report.tried):
        note("There was not enough time for all faults; allow more with --minutes. To see which are missing: -o json")


def _kind(tried: Tried) -> str:
    return tried.kind


def _fault_row(kind: str, tried: Sequence[Tried]) -> tuple[str, str, str, str]:
    recovered = [fault.recovered_in for fault in tried if fault.recovered_in is not None]
    missing = len(tried) - len(recovered)
    slowest = f"{max(recovered):.1f} s" if recovered else ""
    return _FAULTS.get(kind, kind), str(len(recovered)), slowest, str(missing) if missing else ""


_FAULTS: Final = {
    "clock": "clock stepped",
    "cut": "cut off from the server",
    "disk": "disk full",
    "freeze": "frozen",
    "kill": "killed (kill -9)",
    "lock": "database locked",
    "restart": "restarted",
}


def _counts(report: Report) -> list[tuple[str, object]]:
    counted = report.counted
    return [
        ("planned", f"{counted.planned:,} instants"),
        ("ran", f"{counted.ran:,}, of which {counted.repeated:,} were tried again after a crash, with the same key"),
        ("excused", f"{counted.excused:,} did not run, and the ledger says why{_reasons(counted.reasons)}"),
        ("lost", f"{counted.lost:,}"),
        ("duplicate", f"{counted.doubled:,}"),
        ("late", f"{counted.late:,} by more than a second, the latest by {counted.late_max / 1000:.1f} s"),
    ]


def _reasons(reasons: Mapping[str, int]) -> str:
    named = sorted(reasons.items(), key=lambda pair: -pair[1])
    return ": " + ", ".join(f"{number:,} {reason}" for reason, number in named) if named else ""


_MACHINE: Final = {"fileSystem": "file system"}


def _named(machine: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(_MACHINE.get(name, name), known) for name, known in machine.items()]


def _words(known: Any) -> str:
    if isinstance(known, str):
        return known
    mark = {"ok": "", "warning": "warning: ", "unknown": ""}[known["state"]]
    return f"{mark}{known['words']}"


def _verdict(report: Report) -> str:
    took = f"{report.store}, {report.seconds:.0f} s"
    if report.is_passed:
        return click.style(f"passed: no lost runs, no duplicate runs ({took})", fg="green")
    counted = report.counted
    what = f"{counted.lost:,} lost, {counted.doubled:,} duplicate"
    return click.style(f"failed: {what}, {len(report.findings):,} findings ({took})", fg="red")
