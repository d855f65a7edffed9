"""Facts as log lines: text for people in `server.log`, JSON lines for programs.

Lines about schedules carry `SCHEDULER` and the slug, so that the searches people know (`grep SCHEDULER server.log`,
`grep daily-standup server.log`) find them.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wakeful.core.run.runs import ERRORS, Run
from wakeful.core.time.instants import Duration, Instant, format_duration, format_instant
from wakeful.ports import sink
from wakeful.ports.sink import Fact, ScheduleChange, Slugs

Level: TypeAlias = Literal["debug", "info", "warn", "error"]
Phase: TypeAlias = Literal["request", "response", "error", "event"]

SCHEDULER: Final = "SCHEDULER"
TEXT_MAX: Final = 2_000


@lru_cache(maxsize=1024)
def stamp(at: Instant) -> str:
    """The instant as text, cached: the lines of a burst share a few."""
    return format_instant(at)


class Line(NamedTuple):
    """One line of the log."""

    at: Instant
    level: Level
    action: str
    phase: Phase = "event"
    flow_id: str | None = None
    duration_ms: int | None = None
    slug: str | None = None
    slot: str | None = None
    details: Mapping[str, Any] | None = None
    text: str | None = None  # the text in server.log; None if only in the JSON lines

    def to_json(self) -> dict[str, Any]:
        """The fields of the JSON line, without missing ones."""
        out: dict[str, Any] = {
            "ts": stamp(self.at),
            "level": self.level,
            "action": self.action,
            "phase": self.phase,
            "flow_id": self.flow_id,
            "duration_ms": self.duration_ms,
            "slug": self.slug,
            "slot": self.slot,
            "details": self.details,
        }
        return {name: value for name, value in out.items() if value is not None}


def lines_of(facts: Sequence[Fact], slugs: Slugs) -> Iterator[Line]:
    """The lines for these facts, in order."""
    for fact in facts:
        match fact:
            case sink.RunsClaimed(at, runs):
                for run in runs:
                    yield _claimed(at, run, slugs)
            case sink.RunsSettled(at, runs):
                for run in runs:
                    yield _settled(at, run, slugs)
            case sink.RunsWaiting(at, runs):
                for run in runs:
                    yield _waiting(at, run, slugs)
            case sink.InstantsSkipped(at, runs, instants) | sink.InstantsMissed(at, runs, instants):
                for run, count in zip(runs, instants, strict=True):
                    yield _gap(at, run, count, slugs)
            case sink.RunsRescued(at, runs):
                for run in runs:
                    yield _about(at, "warn", "run-rescued", run, slugs, "was taken over from a dead node")
            case sink.SchedulesChanged(at, changes):
                for change in changes:
                    yield _change(at, change, slugs)
            case _:
                yield from _other_lines(fact)


def _other_lines(fact: Fact) -> Iterator[Line]:
    match fact:
        case sink.Alerted(at, incident, text):
            details = {"incident": incident, "text": text}
            yield Line(at, "warn", "alert", details=details, text=f"[{SCHEDULER}] alert {incident}: {_short(text)}")
        case sink.NodeEntered(at, node_id, name, host, pid):
            who: dict[str, Any] = {"nodeId": node_id, "name": name, "host": host, "pid": pid}
            text = f"[{SCHEDULER}] node {node_id} ({name}, pid {pid}) ticks"
            yield Line(at, "info", "node-entered", details=who, text=text)
        case sink.NodeLeft(at, node_ids):
            which = ", ".join(map(str, node_ids))
            text = f"[{SCHEDULER}] node {which} stopped ticking"
            yield Line(at, "info", "node-left", details={"nodeIds": list(node_ids)}, text=text)
        case sink.LeaseLost(at, node_id):
            text = f"[{SCHEDULER}] node {node_id} lost its lease and restarts"
            yield Line(at, "error", "lease-lost", details={"nodeId": node_id}, text=text)
        case sink.ClockJumped(at, by):
            text = f"[{SCHEDULER}] the clock jumped by {_signed(by)}"
            yield Line(at, "warn", "clock-jumped", details={"byMs": by}, text=text)
        case sink.RunsVoided(at, run_ids):
            text = f"[{SCHEDULER}] {len(run_ids)} rows in the future were voided"
            yield Line(at, "warn", "runs-voided", details={"runIds": list(run_ids)}, text=text)
        case sink.RunsClimbed(at, marks):
            for mark in marks:
                yield Line(at, "debug", "run-climbed", details={"runId": mark.run_id, "rung": mark.rung})
        case sink.Reported(at, reports):
            for report in reports:
                action = report.action or f"{report.stream}-{report.what}"
                said = None if report.text is None else f"[{SCHEDULER}] {_short(report.text)}"
                yield Line(at, report.level, action, slug=report.slug, slot=report.slot, details=report.data, text=said)
        case sink.CommitTimed(at, seconds, is_kept) if not is_kept:
            text = f"[{SCHEDULER}] cannot write to the store"
            yield Line(at, "error", "store-unavailable", "error", duration_ms=round(seconds * 1000), text=text)
        case _:
            return


def _about(
    at: Instant,
    level: Level,
    action: str,
    run: Run,
    slugs: Slugs,
    words: str,
    *,
    duration: Duration | None = None,
    phase: Phase = "event",
    **details: Any,
) -> Line:
    slug = slugs.get(run.schedule_id, f"schedule {run.schedule_id}")
    given = {name: value for name, value in details.items() if value is not None}
    return Line(
        at,
        level,
        action,
        phase,
        duration_ms=duration,
        slug=slug,
        details={"runId": run.run_id, "plannedAt": stamp(run.planned_at), "attempt": run.attempt, **given},
        text=f"[{SCHEDULER}] {slug}: run {run.run_id} {words}",
    )


def _claimed(at: Instant, run: Run, slugs: Slugs) -> Line:
    late = max(at - run.due_at, 0)
    words = f"started (planned {stamp(run.planned_at)}, attempt {run.attempt}, {run.trigger})"
    return _about(at, "info", "run-started", run, slugs, words, trigger=run.trigger, latenessMs=late)


def _settled(at: Instant, run: Run, slugs: Slugs) -> Line:
    took = None if run.started_at is None or run.ended_at is None else run.ended_at - run.started_at
    after = "" if took is None else f" after {format_duration(max(took, 0))}"
    is_error = run.outcome in ERRORS
    why = f": {_short(run.error)}" if is_error and run.error else ""
    return _about(
        at,
        "error" if is_error else "info",
        "run-ended",
        run,
        slugs,
        f"{run.outcome}{after}{why}",
        duration=took,
        phase="error" if is_error else "event",
        outcome=run.outcome,
        reason=run.reason,
        rung=run.rung,
        error=_short(run.error) if run.error else None,
    )


def _waiting(at: Instant, run: Run, slugs: Slugs) -> Line:
    until = None if run.next_attempt_at is None else stamp(run.next_attempt_at)
    reason = run.reason or "its turn"
    words = f"waits ({reason})" + ("" if until is None else f" until {until}")
    level: Level = "warn" if run.error else "info"
    error = _short(run.error) if run.error else None
    words += "" if error is None else f": {error}"
    return _about(at, level, "run-waiting", run, slugs, words, reason=reason, until=until, error=error)


def _gap(at: Instant, run: Run, count: int, slugs: Slugs) -> Line:
    slug = slugs.get(run.schedule_id, f"schedule {run.schedule_id}")
    through = run.planned_at if run.planned_until is None else run.planned_until
    times = "1 instant" if count == 1 else f"{count} instants"
    details = {"runId": run.run_id, "count": count, "reason": run.reason, "plannedUntil": stamp(through)}
    text = f"[{SCHEDULER}] {slug}: {run.outcome} {times} ({run.reason}), the last at {stamp(through)}"
    level: Level = "warn" if run.outcome == "missed" else "info"
    return Line(at, level, f"run-{run.outcome}", slug=slug, details=details, text=text)


def _change(at: Instant, change: ScheduleChange, slugs: Slugs) -> Line:
    slug = change.slug or slugs.get(change.schedule_id, f"schedule {change.schedule_id}")
    level: Level = "warn" if change.kind in ("disabled", "invalid") else "info"
    why = "" if change.reason is None else f": {_short(change.reason)}"
    details = {"version": change.version, "reason": change.reason}
    text = f"[{SCHEDULER}] {slug}: {change.kind}{why}"
    return Line(at, level, f"schedule-{change.kind}", slug=slug, details=details, text=text)


def _short(text: str) -> str:
    """One line of bounded length: a traceback in an error must not break the log's lines."""
    words = " ".join(text.split())
    return words if len(words) <= TEXT_MAX else f"{words[:TEXT_MAX]}…"


def _signed(by: Duration) -> str:
    return f"{'-' if by < 0 else ''}{format_duration(abs(by))}"
