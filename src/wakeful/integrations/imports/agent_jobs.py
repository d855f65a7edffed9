"""The common part of the readers for agents' schedulers: JSON fields with their types, prompts, sessions, delivery."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final

from wakeful.core.errors import Invalid
from wakeful.core.time.instants import HOUR, Instant, format_duration, format_instant, parse_instant
from wakeful.integrations.imports.entries import (
    ENTRIES_MAX,
    Context,
    Entry,
    EntryRefused,
    SourceFile,
    SourceRefused,
    SourceTimes,
    masked_json,
    refuse,
)

SHOWN_MAX: Final = 400


def jobs_of(data: Any, file: SourceFile, key: str = "jobs") -> list[Mapping[str, Any]]:
    """The jobs of a file: a list under a key, a bare list, or a map by id."""
    jobs = data.get(key, data) if isinstance(data, Mapping) else data
    if isinstance(jobs, Mapping):
        jobs = [{"id": name, **job} for name, job in jobs.items() if isinstance(job, Mapping) and name != "updated_at"]
    if not isinstance(jobs, list):
        raise SourceRefused(file.place, f"there is no list of {key}")
    if len(jobs) > ENTRIES_MAX:
        raise SourceRefused(file.place, f"there are {len(jobs)} {key}; at most {ENTRIES_MAX} are imported")
    for number, job in enumerate(jobs, 1):
        if not isinstance(job, Mapping):
            raise SourceRefused(file.place, f"number {number} of {key} is not an object")
    return jobs


def text_of(job: Mapping[str, Any], *names: str) -> str | None:
    """The first of these fields that has text."""
    for name in names:
        value = job.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return None


def object_of(job: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A field that is an object; empty if it is missing."""
    value = job.get(name)
    return value if isinstance(value, Mapping) else {}


def whole_of(job: Mapping[str, Any], name: str) -> int | None:
    """A numeric field as an integer."""
    value = job.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return round(value) if is_number and abs(value) < 1e15 else None  # type: ignore[arg-type]  # is_number


def instant_of(value: Any, zone: str = "UTC") -> Instant | None:
    """An instant: milliseconds, or a string; without an offset it is in the given zone."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        at = round(value) if isfinite(value) else -1
        format_instant(at)  # raises, if it is no instant
        return at
    if isinstance(value, str) and value.strip():
        try:
            return parse_instant(value.strip().replace(" ", "T", 1), zone)
        except ValueError:
            refuse(f"'{value[:80]}' is not a time")
    return None


def once(at: Instant | None) -> tuple[dict[str, Any], SourceTimes]:
    """A single time."""
    if at is None:
        refuse("it has no time")
    return {"type": "once", "at": format_instant(at)}, lambda after, count: [at][: count if at > after else 0]


def every(length: int | None, anchor: Instant | None) -> tuple[dict[str, Any], SourceTimes | None]:
    """An interval from an anchor: anchor + n * interval. Without an anchor it counts from when it is imported first;
    a time of ours would make it another schedule whenever it is imported again."""
    if length is None or length <= 0:
        refuse("it has no interval")
    schedule = {"type": "every", "every": format_duration(length)}
    if anchor is None:
        return schedule, None

    def times(after: Instant, count: int) -> list[Instant]:
        first = 0 if after < anchor else (after - anchor) // length + 1
        return [anchor + (first + number) * length for number in range(count)]

    return {**schedule, "anchor": format_instant(anchor)}, times


def agent_of(context: Context, *names: str | None) -> dict[str, Any]:
    """The first of these agents that is configured; else the default."""
    return next(({"agent": name} for name in names if name is not None and name in context.agents), {})


def addressee(context: Context, channel: str, person: str | None) -> dict[str, Any]:
    """Where a reply goes; refused if there is no such channel: the reply would reach no one."""
    if channel != "last" and channel not in context.channels:
        refuse(f"its result goes to {channel[:80]}: add a channel named {channel[:40]} to wakeful.toml first")
    return {"channel": channel, **({"to": person} if person else {})}


def given(job: Mapping[str, Any], names: Sequence[str], prefix: str = "") -> Iterator[str]:
    """The fields that have a value."""
    return (f"{prefix}{name}" for name in names if job.get(name) not in (None, "", [], {}, False))


def shown(job: Mapping[str, Any]) -> str:
    """A job as one line, without secrets."""
    import json

    text = json.dumps(masked_json(dict(job)), ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def entry_or_refusal(file: SourceFile, ref: str, job: Mapping[str, Any], read: Callable[[], Entry]) -> Entry:
    """The entry that `read` makes of a job. Whatever is wrong with the job refuses it alone."""
    try:
        entry = read()
        if entry.last_run is not None:
            format_instant(entry.last_run)  # raises, if it is no instant
    except (EntryRefused, Invalid) as refused:
        return refused_entry(file, ref, job, str(refused))
    return entry


def refused_entry(
    file: SourceFile, ref: str, job: Mapping[str, Any], reason: str, *, is_skipped: bool = False
) -> Entry:
    """An entry that is not taken over."""
    return Entry(file.place, ref, shown(job), "job", refused=reason, is_skipped=is_skipped)


def seconds(value: int | None) -> dict[str, Any]:
    """A timeout."""
    return {} if value is None or value <= 0 else {"timeout": format_duration(min(value * 1000, 24 * HOUR))}
