"""The common part of the readers for agents' schedulers: JSON fields with their types, prompts, sessions, delivery."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from wakeful.core.time.instants import HOUR, Instant, format_duration, format_instant, parse_instant
from wakeful.integrations.imports.entries import (
    ENTRIES_MAX,
    Context,
    Entry,
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
        return round(value)
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


def every(length: int | None, anchor: Instant) -> tuple[dict[str, Any], SourceTimes]:
    """An interval from an anchor: anchor + n * interval."""
    if length is None or length <= 0:
        refuse("it has no interval")

    def times(after: Instant, count: int) -> list[Instant]:
        first = 0 if after < anchor else (after - anchor) // length + 1
        return [anchor + (first + number) * length for number in range(count)]

    return {"type": "every", "every": format_duration(length), "anchor": format_instant(anchor)}, times


def agent_of(context: Context, *names: str | None) -> dict[str, Any]:
    """The first of these agents that is configured; else the default."""
    return next(({"agent": name} for name in names if name is not None and name in context.agents), {})


def given(job: Mapping[str, Any], names: Sequence[str], prefix: str = "") -> Iterator[str]:
    """The fields that have a value."""
    return (f"{prefix}{name}" for name in names if job.get(name) not in (None, "", [], {}, False))


def shown(job: Mapping[str, Any]) -> str:
    """A job as one line, without secrets."""
    import json

    text = json.dumps(masked_json(dict(job)), ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def refused_entry(
    file: SourceFile, ref: str, job: Mapping[str, Any], reason: str, *, is_skipped: bool = False
) -> Entry:
    """An entry that is not taken over."""
    return Entry(file.place, ref, shown(job), "job", refused=reason, is_skipped=is_skipped)


def seconds(value: int | None) -> dict[str, Any]:
    """A timeout."""
    return {} if value is None or value <= 0 else {"timeout": format_duration(min(value * 1000, 24 * HOUR))}
