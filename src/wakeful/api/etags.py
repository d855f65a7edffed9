"""`ETag`, `If-Match`, `If-None-Match`: prevent lost updates.

The tag identifies the version of a definition and its schedule: one that was removed and created again under the same
slug has another tag. Pausing, resuming and running do not change the definition, and so not the tag.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Protocol, TypeAlias

from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.refusals import Stale
from wakeful.features.schedules.views import ScheduleView

_TAGS: Final = re.compile(r'\s*(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"\s*(?:,\s*(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"\s*)*')
_TAG: Final = re.compile(r'(W/)?("[^"]*")')
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Stored(Protocol):
    """A stored definition: a schedule or a workflow."""

    @property
    def slug(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def created_at(self) -> int: ...


Guard: TypeAlias = Callable[[Stored | None], None]
"""Checks the stored definition inside the transaction before it is written; raises to refuse."""


def etag_of(view: ScheduleView) -> str:
    """The tag of a view."""
    return tag_of(view.version, round((view.created_at - _EPOCH).total_seconds() * 1000))


def if_match(header: str | None, what: str = "schedule") -> Guard | None:
    """Allows a write if the stored definition has one of these tags; `*`: if any exists."""
    if header is None:
        return None
    tags = _tags(header, "If-Match")

    def guard(stored: Stored | None) -> None:
        if stored is None:
            raise Stale(f"there is no such {what}, and If-Match requires one")
        tag = tag_of(stored.version, stored.created_at)
        if tags is not None and tag not in tags:
            text = f"{stored.slug} has changed since it was read: its ETag is now {tag}; read it again, then write"
            raise Stale(text, tag)

    return guard


def if_match_existing(header: str | None, what: str = "schedule") -> Guard | None:
    """Like `if_match`, but 404 if nothing is stored."""
    guard = if_match(header, what)
    return None if guard is None else lambda stored: None if stored is None else guard(stored)


def if_none_match(header: str | None) -> Guard | None:
    """Allows a write with `*` only if nothing is stored."""
    if header is None:
        return None
    tags = _tags(header, "If-None-Match")

    def guard(stored: Stored | None) -> None:
        if stored is not None and (tags is None or tag_of(stored.version, stored.created_at) in tags):
            raise Stale(f"{stored.slug} already exists, and If-None-Match requires that it does not")

    return guard


def tag_of(version: int, created_at: int) -> str:
    """The tag of a version of a definition."""
    return f'"{version}-{created_at:x}"'


def _tags(header: str, name: str) -> frozenset[str] | None:
    """The strong tags in a header; a weak one never matches. None for `*`."""
    if header.strip() == "*":
        return None
    if not _TAGS.fullmatch(header):
        refuse(name, f'{shown(header)} is not an entity tag; send the ETag with its quotes, or "*"')
    return frozenset(tag for weak, tag in _TAG.findall(header) if not weak)
