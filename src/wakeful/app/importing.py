"""Import: entries of other schedulers become schedules. The plan says what would happen; applying it writes all of it
in one transaction, through the ordinary commands."""

import asyncio
import json
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from wakeful.app.bootstrap import Parts, resolve_zone
from wakeful.app.definition_files import digest_of
from wakeful.app.facade import Wakeful
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import shown
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.schedule.definition import RESERVED_SLUGS
from wakeful.core.schedule.definition_json import encode_definition
from wakeful.core.time.instants import Instant, format_instant
from wakeful.core.time.timing import next_n
from wakeful.core.time.timing_words import describe
from wakeful.features.moving.handover import Handovers, next_handover_at
from wakeful.features.quota.feature import Quota
from wakeful.features.schedules import commands
from wakeful.features.schedules.takeover import await_handover, miss_before_import, take_over
from wakeful.integrations.imports.catalogue import KINDS, entries_of
from wakeful.integrations.imports.entries import Context, Entry, masked_json, user_name
from wakeful.integrations.imports.fitting import fit
from wakeful.integrations.imports.switches import switches
from wakeful.ports.moving import Handover, Origin
from wakeful.ports.store import Tx

InThread: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs blocking work."""
Fitted: TypeAlias = tuple[dict[str, Any], str | None] | Invalid
"""A schedule, and how it differs from the source; or why the entry cannot become a schedule."""
Action: TypeAlias = Literal["create", "update", "unchanged", "refused"]
SHOWN: Final = 3
_SLOT: Final = "slot:"
"""The prefix of a slot's name in a handover's journal."""


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

    def to_json(self) -> dict[str, Any]:
        entry = self.entry
        shown: dict[str, Any] = {
            "source": entry.source,
            "place": entry.place,
            "line": entry.line,
            "slug": self.slug,
            "action": self.action,
            "definition": None if self.definition is None else masked_json(self.definition),
            "description": self.words,
            "sourceNext": [format_instant(at) for at in self.source_times],
            "next": [format_instant(at) for at in self.our_times],
            "notCarried": [text.partition(" (")[0] for text in entry.not_carried],
            "notes": [text for text in entry.not_carried if " (" in text],
            "reason": self.reason,
        }
        return shown


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import would do, or did."""

    kind: str
    entries: Sequence[PlannedEntry]
    is_applied: bool = False
    handover: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "applied": self.is_applied,
            "entries": [planned.to_json() for planned in self.entries],
            "handover": self.handover,
        }

    def handed_over(self) -> "ImportPlan":
        """The plan of a handover: entries that cannot be switched off in their source are refused."""
        return replace(self, entries=[_switchable(planned) for planned in self.entries])

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
        return replace(self, entries=kept)

    @property
    def writable(self) -> list[PlannedEntry]:
        return [planned for planned in self.entries if planned.action in ("create", "update")]


@dataclass(slots=True)
class _Names:
    """Slugs that are taken, and those of entries that were imported before."""

    taken: set[str]
    known: dict[tuple[str, str], Origin] = field(default_factory=dict)
    slots: frozenset[str] = frozenset()

    def slug_for(self, entry: Entry) -> str:
        """An entry's slug: its existing one, else a free one."""
        origin = self.known.get((entry.place, entry.ref))
        if origin is not None:
            return origin.name
        slug, number = entry.name, 1
        while slug in self.taken or slug in RESERVED_SLUGS:
            number += 1
            slug = f"{entry.name[:56]}-{number}"
        self.taken.add(slug)
        return slug


class Importer:
    """One app's imports."""

    def __init__(
        self,
        app: Wakeful,
        *,
        home: Path | None = None,
        in_thread: InThread = asyncio.to_thread,
        quota: Callable[[], Quota] | None = None,
    ) -> None:
        self._app = app
        self._quota = quota
        self._home = home
        self._in_thread = in_thread
        self._handovers: Handovers | None = None

    def plug(self, parts: Parts) -> Handovers:
        """The service that drives handovers."""
        self._handovers = Handovers(
            parts.store,
            parts.clock,
            host=socket.gethostname(),
            switches=switches(self._in_thread, backups=(self._home or Path.home()) / "imported"),
            activate=self._activate,
            ring_bell=parts.engine.ring_bell,
        )
        return self._handovers

    async def context(self, *, is_adopting: bool = False) -> Context:
        """What reading sources depends on, for this machine."""
        return Context(
            now=self._app.moment().now,
            zone=resolve_zone("local"),
            user=user_name(),
            user_home=Path.home(),
            environ=dict(os.environ),
            is_debian_cron=_is_debian_cron(),
            channels=frozenset(channel.name for channel in (await self._app.delivering.channels()).channels),
            agents=frozenset(agent.name for agent in await self._app.agents()),
            is_adopting=is_adopting,
        )

    async def plan(
        self, kind: str, *, content: str | None = None, path: Path | None = None, context: Context | None = None
    ) -> ImportPlan:
        """Plan an import; raises `SourceRefused` if a file cannot be read as a whole."""
        if kind not in KINDS:
            raise Conflict(f"{kind!r} is not a kind of import; there are {', '.join(KINDS)}")
        context = context or await self.context()
        read = partial(_read, kind, content=content, path=path, context=context)
        entries: list[tuple[Entry, Fitted]] = await self._in_thread(read)
        names, stored = await self._app.store.read(lambda tx: _names(tx, kind, [entry for entry, _ in entries]))
        planned = [self._planned(entry, fitted, names, stored, context) for entry, fitted in entries]
        return ImportPlan(kind, planned)

    async def apply(self, plan: ImportPlan, *, is_handover: bool = False) -> ImportPlan:
        """Write the plan. With `is_handover`, what it writes stays inactive until its source is switched off."""
        if is_handover:
            plan = plan.handed_over()
        write = plan.writable
        handed = _handed(plan) if is_handover else []
        if not write and not handed:
            return replace(plan, is_applied=True)
        if handed and self._handovers is None:
            raise Conflict("this process cannot switch a source off; import through the daemon")
        journal = self._journal(plan.kind, handed) if handed else None

        def then(tx: Tx, now: Instant) -> None:
            for planned in write:
                self._begin(tx, planned, now, is_handed=planned in handed)
            for planned in handed:
                if planned.entry.becomes == "schedule":
                    await_handover(tx, planned.slug or "", now=now)
            tx.origins.put_many([_origin(plan.kind, planned, now) for planned in write])
            if journal is not None:
                tx.handovers.put(journal)

        self._write_files(write)
        schedules = [planned for planned in write if planned.entry.becomes == "schedule"]
        await self._app.put_all({planned.slug or "": planned.definition for planned in schedules}, then=then)
        if journal is not None and self._handovers is not None:
            self._handovers.drive(journal)
        return replace(plan, is_applied=True, handover=None if journal is None else _handover_json(journal))

    def _journal(self, kind: str, handed: Sequence[PlannedEntry]) -> Handover:
        now = self._app.moment().now
        off = [
            {"kind": planned.entry.off.kind, "what": planned.entry.off.what}
            for planned in handed
            if planned.entry.off is not None
        ]
        body = json.dumps({"slugs": [_named(planned) for planned in handed], "off": off}, ensure_ascii=False)
        journal_id, host = secrets.token_hex(8), socket.gethostname()
        return Handover(journal_id, kind, host, "written", next_handover_at(now), None, body, None, now, now)

    def _begin(self, tx: Tx, planned: PlannedEntry, now: Instant, *, is_handed: bool) -> None:
        slug, entry = planned.slug, planned.entry
        if slug is not None and entry.becomes == "slot" and self._quota is not None:
            self._begin_slot(tx, self._quota(), planned, now, is_handed=is_handed)
        if slug is None or planned.action != "create" or entry.becomes != "schedule":
            return
        if entry.last_run is not None:
            miss_before_import(tx, slug, entry.last_run, now=now)
        if entry.session is not None:
            commands.adopt_session(tx, slug, entry.session)
        if entry.is_paused:
            commands.pause(tx, slug, hooks=self._app.hooks, now=now)

    def _begin_slot(self, tx: Tx, quota: Quota, planned: PlannedEntry, now: Instant, *, is_handed: bool) -> None:
        """A new slot is off while its source is on, or if it is off in the source. A changed slot stays on or off."""
        slug, slot = planned.slug or "", planned.definition or {}
        if planned.action == "create":
            quota.put_within(tx, slug, {**slot, "enabled": not is_handed and not planned.entry.is_paused}, now=now)
        else:
            quota.patch_within(tx, slug, slot, now=now)

    def _activate(self, tx: Tx, name: str, off_at: Instant, hand_at: Instant, now: Instant) -> None:
        with suppress(NotFound):  # removed meanwhile
            if name.startswith(_SLOT):
                if self._quota is not None:
                    self._quota().patch_within(tx, name.removeprefix(_SLOT), {"enabled": True}, now=now)
                return
            take_over(tx, name, off_at=off_at, hand_at=hand_at, now=now)

    def _write_files(self, write: Sequence[PlannedEntry]) -> None:
        """Secrets go into files that only their owner can read."""
        for planned in write:
            for name, text in planned.entry.files.items():
                if self._home is None:
                    raise Conflict("this process has no home folder for the secrets of this import")
                folder = self._home / "imported"
                folder.mkdir(mode=0o700, exist_ok=True)
                unborn = folder / f".{name}.part"
                with os.fdopen(
                    os.open(unborn, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w"
                ) as file:
                    file.write(text)
                unborn.replace(folder / name)

    def _planned(
        self, entry: Entry, fitted: Fitted, names: _Names, stored: Mapping[str, str], context: Context
    ) -> PlannedEntry:
        if entry.refused is not None:
            reason = f"skipped: {entry.refused}" if entry.is_skipped else entry.refused
            return PlannedEntry(entry, None, "refused", reason=reason)
        slug = names.slug_for(entry)
        if entry.becomes == "slot":
            return self._planned_slot(entry, slug, names)
        try:
            if isinstance(fitted, Invalid):
                raise fitted
            schedule, problem = fitted
            written = {"slug": slug, "schedule": schedule, **entry.action, **entry.options}
            definition = self._app.checked(slug, written)
        except Invalid as invalid:
            return PlannedEntry(entry, slug, "refused", reason=str(invalid))
        ours = tuple(next_n(definition.timing, context.now, SHOWN))
        theirs = ours if entry.times is None else tuple(entry.times(context.now, SHOWN))
        shown = PlannedEntry(entry, slug, "create", written, describe(definition.timing), theirs, ours)
        if problem is None and ours != theirs:
            problem = "the limits of this daemon change its times; see every_min in [limits]"
        if problem is not None:
            return replace(shown, action="refused", reason=problem)
        digest = _digest(written)
        origin = names.known.get((entry.place, entry.ref))
        action: Action = "create"
        if slug in stored and origin is not None:
            is_same = origin.digest == digest or encode_definition(definition) == stored[slug]
            action = "unchanged" if is_same else "update"
        return replace(shown, action=action, digest=digest)

    def _planned_slot(self, entry: Entry, slug: str, names: _Names) -> PlannedEntry:
        """A quota slot. Its key is in a file that is written when the plan is applied."""
        slot = dict(entry.action)
        shown = PlannedEntry(entry, slug, "create", slot, "a quota slot", digest=_digest(slot))
        try:
            if self._quota is None:
                raise Conflict("this process has no quota slots")
            self._quota().check(slug, {**slot, **({"apiKey": "not read yet"} if entry.files else {})})
        except (Invalid, Conflict) as refused:
            return replace(shown, action="refused", reason=str(refused))
        origin = names.known.get((entry.place, entry.ref))
        if origin is not None and slug in names.slots:
            return replace(shown, action="unchanged" if origin.digest == shown.digest else "update")
        return shown


def _digest(written: Mapping[str, Any]) -> str:
    return digest_of(json.dumps(written, sort_keys=True))


def _read(kind: str, *, content: str | None, path: Path | None, context: Context) -> list[tuple[Entry, Fitted]]:
    """The entries, each with the schedule that has its times; runs in a thread."""
    entries = entries_of(kind, content=content, path=path, context=context)
    return [(entry, _fitted(entry, context.now)) for entry in entries]


def _fitted(entry: Entry, now: Instant) -> Fitted:
    if entry.refused is not None or entry.times is None:
        return dict(entry.schedule), None
    try:
        return fit(entry.schedule, entry.times, now=now)
    except Invalid as invalid:
        return invalid


def _switchable(planned: PlannedEntry) -> PlannedEntry:
    """Refuse what would run twice: in its source, which cannot be switched off from here, and in Wakeful."""
    entry = planned.entry
    if planned.action == "refused" or entry.off is not None or entry.is_paused:
        return planned
    reason = f"it cannot be switched off from here: import it without --disable-source, and {entry.by_hand}"
    return replace(planned, action="refused", reason=reason)


def _handed(plan: ImportPlan) -> list[PlannedEntry]:
    """The entries that are switched off in their source."""
    taken = (planned for planned in plan.entries if planned.action in ("create", "update", "unchanged"))
    return [planned for planned in taken if planned.entry.off is not None and not planned.entry.is_paused]


def _handover_json(row: Handover) -> dict[str, Any]:
    return {"id": row.handover_id, "stage": row.stage, "handAt": format_instant(row.hand_at), "problem": row.problem}


def _named(planned: PlannedEntry) -> str:
    """The journal's names for what it starts."""
    return f"{_SLOT if planned.entry.becomes == 'slot' else ''}{planned.slug}"


def _is_debian_cron() -> bool:
    return Path("/etc/debian_version").exists() and not Path("/usr/sbin/crond").exists()


def _names(tx: Tx, kind: str, entries: Sequence[Entry]) -> tuple[_Names, dict[str, str]]:
    known = {
        (origin.place, origin.ref): origin
        for place in dict.fromkeys(entry.place for entry in entries)
        for origin in tx.origins.of_place(kind, place)
    }
    wanted = {entry.name for entry in entries}
    candidates = {f"{name[:56]}-{number}" for name in wanted for number in range(2, len(entries) + 12)} | wanted
    candidates |= {origin.name for origin in known.values()}
    stored = {row.slug: row.definition for row in tx.schedules.by_slugs(sorted(candidates)).values()}
    slots = frozenset(slot.name for slot in tx.slots.all())
    return _Names({*stored, *slots, *(origin.name for origin in known.values())}, known, slots), stored


def _origin(kind: str, planned: PlannedEntry, now: Instant) -> Origin:
    entry = planned.entry
    return Origin(kind, entry.place, entry.ref, entry.becomes, planned.slug or "", planned.digest, now)
