"""The plan of an import: what each entry would become, and which can be switched off in their source."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, TypeAlias

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import shown
from wakeful.core.returned import At
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import Duration, Instant, format_duration
from wakeful.integrations.imports.entries import Entry, masked_json

AGENT_INTERVAL: Final = "limits.agent_interval_min"
"""The setting that refuses what prompts an agent too often."""
Action: TypeAlias = Literal["create", "update", "unchanged", "refused"]


@dataclass(frozen=True, slots=True)
class ImportEntry:
    """One entry of the source, and what it becomes."""

    source: Annotated[str, "its own text, without secrets"]
    place: Annotated[str, "the file or system it is from"]
    line: int | None
    slug: str | None
    action: Action
    definition: Annotated[Mapping[str, Any] | None, "without secrets"]
    description: Annotated[str | None, "when it runs, in words"]
    source_next: Annotated[Sequence[At], "its next times by the rules of the source"]
    next: Annotated[Sequence[At], "its next times here"]
    not_carried: Annotated[Sequence[str], "names of what is not carried over"]
    notes: Annotated[Sequence[str], "what means something else here, and what to do about it, a sentence each"]
    draft: Annotated[str | None, "why it is created disabled: what to do before it can run"]
    settings: Annotated[str | None, "lines for wakeful.toml, for what is a setting here"]
    reason: Annotated[str | None, "why it is refused"]


@dataclass(frozen=True, slots=True)
class ImportLimit:
    """A limit of the settings that refuses entries."""

    setting: Annotated[str, "such as `limits.agent_interval_min`"]
    refused: Annotated[int, "how many entries it refuses"]
    needed: Annotated[str, "with this value, none"]


@dataclass(frozen=True, slots=True)
class HandoverState:
    """A takeover: when it happens, and how far it is."""

    id: str
    stage: Literal["written", "switching", "done", "abandoned"]
    hand_at: Annotated[At, "earlier times belong to the source"]
    problem: str | None


@dataclass(frozen=True, slots=True)
class Imported:
    """The plan of an import, or what it did."""

    kind: str
    applied: bool
    entries: Sequence[ImportEntry]
    handover: HandoverState | None
    limits: Annotated[Sequence[ImportLimit], "that refuse entries; lowered, the entries can be imported"]


@dataclass(frozen=True, slots=True)
class PlannedEntry:
    """The plan for one entry."""

    entry: Entry
    slug: str | None
    action: Action
    definition: Mapping[str, Any] | None = None
    words: str | None = None
    source_times: tuple[Instant, ...] = ()
    our_times: tuple[Instant, ...] = ()
    reason: str | None = None
    digest: str = ""
    checked: Definition | None = None  # of a schedule that can be written
    too_often: Duration | None = None  # its interval, if that is why it is refused

    def view(self) -> ImportEntry:
        entry = self.entry
        return ImportEntry(
            source=entry.source,
            place=entry.place,
            line=entry.line,
            slug=self.slug,
            action=self.action,
            definition=None if self.definition is None else masked_json(self.definition),
            description=self.words,
            source_next=self.source_times,
            next=self.our_times,
            not_carried=[text.partition(" (")[0] for text in entry.not_carried],
            notes=[*entry.notes, *(text for text in entry.not_carried if " (" in text)],
            draft=entry.draft,
            settings=entry.settings,
            reason=self.reason,
        )


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import would do, or did."""

    kind: str
    entries: Sequence[PlannedEntry]
    is_applied: bool = False
    handover: HandoverState | None = None
    left: Sequence[PlannedEntry] = ()  # entries that were not chosen

    def view(self) -> Imported:
        gaps = [planned.too_often for planned in self.entries if planned.too_often is not None]
        limits = [ImportLimit(AGENT_INTERVAL, len(gaps), format_duration(min(gaps)))] if gaps else []
        return Imported(self.kind, self.is_applied, [planned.view() for planned in self.entries], self.handover, limits)

    def handed_over(self) -> "ImportPlan":
        """The plan of a handover: entries that cannot be switched off in their source, or only together with others
        that would go on there, are refused."""
        entries = [_switchable(planned) for planned in self.entries]
        staying = {_off_of(one): one for one in (*entries, *self.left) if one in self.left or one.action == "refused"}
        return replace(self, entries=[_switchable_alone(planned, staying) for planned in entries])

    def chosen(self, only: Sequence[str] | None, leaving: Sequence[str] = ()) -> "ImportPlan":
        """The plan restricted to these entries, by slug, or without the excluded ones. Raises `Invalid`."""
        known = [planned.slug for planned in self.entries if planned.slug is not None]
        for name, slugs in (("only", only or ()), ("except", leaving)):
            for slug in slugs:
                if slug not in known:
                    there = f"; there are {', '.join(known[:20])}" if known else ""
                    raise Invalid(FieldError(name, f"there is no entry {shown(slug)} in this source{there}"))
        wanted = (set(known) if only is None else set(only)) - set(leaving)
        is_whole = only is None  # then what has no slug is shown too, with the reason why it is refused
        kept = [entry for entry in self.entries if entry.slug in wanted or (entry.slug is None and is_whole)]
        return replace(self, entries=kept, left=[entry for entry in self.entries if entry not in kept])

    @property
    def writable(self) -> list[PlannedEntry]:
        return [planned for planned in self.entries if planned.action in ("create", "update")]


def _switchable(planned: PlannedEntry) -> PlannedEntry:
    """Refuse what would run twice: in its source, which cannot be switched off from here, and in Wakeful."""
    entry = planned.entry
    is_safe = entry.draft is None and (entry.off is not None or entry.is_paused)
    if planned.action == "refused" or is_safe:
        return planned
    if entry.draft is not None:
        reason = f"it would be a draft here ({entry.draft}), so its source stays on: import it without --disable-source"
        return replace(planned, action="refused", reason=reason)
    reason = f"it cannot be switched off from here: import it without --disable-source, and {entry.by_hand}"
    return replace(planned, action="refused", reason=reason)


def _off_of(planned: PlannedEntry) -> str | None:
    """What switches an entry off in its source, if it is on there."""
    off = planned.entry.off
    is_on = not planned.entry.is_paused and not planned.entry.is_skipped
    return json.dumps([off.kind, off.what], sort_keys=True) if off is not None and is_on else None


def _switchable_alone(planned: PlannedEntry, staying: Mapping[str | None, PlannedEntry]) -> PlannedEntry:
    """Refuse what can only be switched off together with an entry that is not taken over: that one would be lost."""
    off = _off_of(planned)
    other = None if off is None or planned.action == "refused" else staying.get(off)
    if other is None:
        return planned
    why = f": {other.reason}" if other.reason else ""
    reason = f"it can only be switched off together with {other.entry.source[:200]!r}, which is not imported{why}"
    return replace(planned, action="refused", reason=reason)


def handed(plan: ImportPlan) -> list[PlannedEntry]:
    """The entries that are switched off in their source."""
    taken = (planned for planned in plan.entries if planned.action in ("create", "update", "unchanged"))
    return [planned for planned in taken if planned.entry.off is not None and not planned.entry.is_paused]
