"""Names, cursors, times and tags that come from outside."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound
from wakeful.core.slug import SLUG_PATTERN
from wakeful.core.time.instants import (
    MINUTE,
    Duration,
    Instant,
    format_duration,
    format_instant,
    parse_duration,
    parse_instant,
)
from wakeful.core.time.timing_builders import as_instant

_RUN_ID: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
# A + not written as %2B arrives as a space; in a time, it can only be the sign of the offset.
_LOST_PLUS: Final = re.compile(r" (\d\d:\d\d)$", re.ASCII)
SLUGS_MAX: Final = 100
OWNERS: Final = ("slot", "workflow")
OWNER_PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_SECONDS: Final = re.compile(r"\d{1,6}", re.ASCII)
GIVE_TIME: Final = "give a time such as 2026-01-30T09:00:00Z"
SLUG_SCHEMA: Final = {"type": "string", "pattern": f"^{SLUG_PATTERN.pattern}$", "examples": ["daily-standup"]}
OWNER_SCHEMA: Final = {
    **SLUG_SCHEMA,
    "pattern": f"^({SLUG_PATTERN.pattern}|(slot|workflow):{OWNER_PATTERN.pattern})$",
}


def NEW_SLUG(slug: str) -> str:  # noqa: N802
    """Any name: it is checked with the definition."""
    return slug


def known_slug(slug: str) -> str:
    """A valid slug; 404 for any other text."""
    if not SLUG_PATTERN.fullmatch(slug):
        raise NotFound(f"there is no schedule {shown(slug)}")
    return slug


def known_owner(name: str) -> str:
    """The owner of runs: a slug, `slot:NAME` or `workflow:ID`; 404 for any other text."""
    prefix, colon, rest = name.partition(":")
    if colon and prefix in OWNERS and OWNER_PATTERN.fullmatch(rest):
        return name
    return known_slug(name)


def run_id_of(text: str) -> int:
    """A run id; 404 for any other text."""
    if not _RUN_ID.fullmatch(text):
        raise NotFound(f"there is no run {shown(text)}")
    return int(text)


def slug_cursor(cursor: str | None) -> str | None:
    """The cursor of a list of schedules."""
    if cursor is not None and not SLUG_PATTERN.fullmatch(cursor):
        refuse("cursor", f"{shown(cursor)} is not a cursor; send `next` of the previous page, or leave it out")
    return cursor


def slugs_of(text: str | None) -> list[str] | None:
    """Slugs separated by commas."""
    if text is None:
        return None
    slugs = [slug for slug in (part.strip() for part in text.split(",")) if slug]
    if not slugs or len(slugs) > SLUGS_MAX:
        refuse("slugs", f"has {len(slugs)} slugs; write 1 to {SLUGS_MAX}, separated by commas, or leave it out for all")
    wrong = [slug for slug in slugs if not SLUG_PATTERN.fullmatch(slug)]
    if wrong:
        refuse("slugs", f"{shown(wrong[0])} is not a slug")
    return slugs


def run_cursor(cursor: str | None) -> int | None:
    """The cursor of a list of runs."""
    if cursor is not None and not _RUN_ID.fullmatch(cursor):
        refuse("cursor", f"{shown(cursor)} is not a cursor; send `next` of the previous page, or leave it out")
    return None if cursor is None else int(cursor)


def instant_of(text: str, field: str) -> Instant:
    """A time in the query."""
    return parse_instant(_LOST_PLUS.sub(r"+\1", text), field=field)


def duration_of(text: str, field: str, *, most: Duration, most_text: str) -> Duration:
    """A duration in the query, such as 30s, or a number of seconds."""
    length = parse_duration(f"{text}s" if _SECONDS.fullmatch(text) else text, field)
    if length > most:
        refuse(field, f"{shown(text)} is too long; give at most {most_text}")
    return length


def patience(text: str) -> str:
    """How long a request waits, at most a minute."""
    return format_duration(duration_of(text, "timeout", most=MINUTE, most_text="60s"))


def is_mapping(data: Any) -> Any:
    if not isinstance(data, Mapping):
        refuse("", "a patch is a JSON object; write {…}")
    return data


def time_of(field: str) -> Callable[[Any], str]:
    """Reads a time."""
    return lambda text: format_instant(instant_of(text, field))


def end_of_pause(until: Any, now: Instant) -> Instant | None:
    """When a pause ends by itself; a time in the past is refused."""
    ends = None if until is None else as_instant(until, "until")
    if ends is not None and ends <= now:
        refuse("until", f"is in the past (now is {format_instant(now)}); give a later time")
    return ends


def given_time(field: str) -> Callable[[Any], str]:
    """Reads a time in a body that must be given."""
    read = read_text(field)

    def given(value: Any) -> str:
        if value is None:
            refuse(field, f"is missing; {GIVE_TIME}")
        return read(value)

    return given


def read_text(field: str) -> Callable[[Any], str]:
    """Reads a time in a body, which may be any JSON."""

    def read(value: Any) -> str:
        if not isinstance(value, str):
            refuse(field, f"{shown(value)} is not a string; put it in quotes")
        return format_instant(instant_of(value, field))

    return read
