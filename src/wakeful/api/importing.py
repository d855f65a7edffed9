"""Import: entries of other schedulers become schedules. The plan says what would happen; applying it writes all of it
in one transaction, through the ordinary commands."""

import asyncio
import json
import os
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from wakeful.api.definition_files import digest_of
from wakeful.api.fitted_entries import SHOWN, Fitted, fit_all, too_often, with_times
from wakeful.api.import_names import Names, names_of, refused_beside
from wakeful.api.origin_rows import Origin, Origins
from wakeful.app.bootstrap import Parts, resolve_zone
from wakeful.app.import_plan import Action, HandoverState, ImportPlan, PlannedEntry, handed
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.schedule.definition_json import encode_definition
from wakeful.core.time.instants import MINUTE, SECOND, Duration, Instant, format_instant
from wakeful.core.time.timing import Once, next_n
from wakeful.core.time.timing_words import describe
from wakeful.features.delivery.commands import send
from wakeful.features.moving.handover import Handovers, next_handover_at
from wakeful.features.moving.handover_rows import Handover, HandoverJournals
from wakeful.features.schedules import commands
from wakeful.features.schedules.checks import Checked, refusal_of
from wakeful.features.schedules.takeover import await_handover, hold_draft, miss_before_import, take_over
from wakeful.integrations.imports.catalogue import entries_of, kinds_of
from wakeful.integrations.imports.entries import Context, Entry, SourceRefused, user_name, user_names
from wakeful.integrations.imports.switches import switches
from wakeful.integrations.system.threads import in_thread
from wakeful.ports.store import Tx

if TYPE_CHECKING:
    from wakeful.api.python import Wakeful
from wakeful.app.bootstrap import agents_of

InThread: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs blocking work."""
Read: TypeAlias = Callable[[Callable[[Tx], Any]], Awaitable[Any]]
"""Asks the store that the schedules would be written to."""
_in_thread: Final = partial(in_thread, name="import")
READ_WITHIN: Final[Duration] = 30 * SECOND
FIT_WITHIN: Final[Duration] = 5 * MINUTE
TIMERS: Final = "systemd"
"""The kind whose entries are lines of one timer."""
_SLOT: Final = "slot:"
"""The prefix of a slot's name in a handover's journal."""
_SLOT_FIELDS: Final = (
    "baseUrl", "interval", "times", "afterReset", "timezone", "poll", "retryWindow", "errorsMax", "backoffCap",
)  # fmt: skip
"""What an import decides about a slot: a field that its source no longer has goes back to its default."""


class Importer:
    """One app's imports."""

    def __init__(self, app: "Wakeful", *, in_thread: InThread = _in_thread, read: Read | None = None) -> None:
        self._app = app
        self._in_thread = in_thread
        self._read: Read = read or self._read_store
        self._handovers: Handovers | None = None

    def plug(self, parts: Parts) -> Handovers:
        """The service that drives handovers."""
        self._handovers = Handovers(
            parts.store,
            parts.clock,
            host=socket.gethostname(),
            switches=switches(self._in_thread, backups=Path(self._app._setup.home or Path.home()) / "imported"),
            activate=self._activate,
            ring_bell=parts.engine.ring_bell,
        )
        return self._handovers

    async def _read_store(self, question: Callable[[Tx], Any]) -> Any:
        return await self._app._store.read(question)

    async def context(self, *, is_adopting: bool = False) -> Context:
        """What reading sources depends on, for this machine."""
        return Context(
            now=self._app._moment().now,
            zone=resolve_zone("local"),
            user=user_name(),
            users=user_names(),
            user_home=Path.home(),
            environ=dict(os.environ),
            is_debian_cron=_is_debian_cron(),
            channels=frozenset(channel.name for channel in (await self._app.people.channels()).channels),
            agents=frozenset(agents_of(self._app._open)),
            is_adopting=is_adopting,
        )

    async def plan(
        self,
        kind: str,
        *,
        content: str | None = None,
        path: Path | None = None,
        context: Context | None = None,
        only: Sequence[str] | None = None,
        leaving: Sequence[str] = (),
    ) -> ImportPlan:
        """Plan an import of all entries, or of those with these slugs; raises `SourceRefused` if a file cannot be read
        as a whole."""
        plugins = self._app._host.plugins
        if kind not in kinds_of(plugins):
            raise Conflict(f"{kind!r} is not a kind of import; there are {', '.join(kinds_of(plugins))}")
        context = context or await self.context()
        entries = await self._entries(
            partial(entries_of, kind, content=content, path=path, context=context, plugins=plugins), context
        )
        names, stored = await self._read(lambda tx: names_of(tx, kind, [entry for entry, _ in entries]))
        planned = [self._planned(entry, fitted, names, stored, context) for entry, fitted in entries]
        planned = [refused_beside(one, planned, names, stored) if kind == TIMERS else one for one in planned]
        plan = ImportPlan(kind, planned).chosen(only, leaving)
        return replace(plan, entries=await self._without_refused(plan.entries, context.now))

    async def _entries(self, read: Callable[[], list[Entry]], context: Context) -> list[tuple[Entry, Fitted]]:
        """The entries, each with the schedule that has its times. A file system may hang, and years of times take a
        while to compare; neither may hold the caller up for ever."""
        is_late = threading.Event()
        try:
            entries: list[Entry] = await asyncio.wait_for(self._in_thread(read), READ_WITHIN / SECOND)
            fit = partial(fit_all, entries, context, is_late)
            fitted: list[Fitted] = await asyncio.wait_for(self._in_thread(fit), FIT_WITHIN / SECOND)
        except TimeoutError:
            is_late.set()
            raise SourceRefused("", "it takes too long to read; name a smaller part of it") from None
        return list(zip(entries, fitted, strict=True))

    async def _without_refused(self, entries: Sequence[PlannedEntry], now: Instant) -> list[PlannedEntry]:
        """Refuse alone what the store would refuse: one such entry must not keep the others from being written."""
        hooks = self._app._open.hooks

        def ask(tx: Tx) -> dict[str, Invalid]:
            refusals = {
                planned.slug or "": refusal_of(tx, Checked(planned.checked), hooks=hooks, now=now)
                for planned in entries
                if planned.action in ("create", "update") and planned.checked is not None
            }
            return {slug: refusal for slug, refusal in refusals.items() if refusal is not None}

        refusals = await self._read(ask)
        new_slots = [one.slug for one in entries if one.action == "create" and one.entry.becomes == "slot"]
        refusals |= await self._slots_without_room(new_slots) if new_slots else {}
        return [
            planned if (refusal := refusals.get(planned.slug or "")) is None else _refused(planned, refusal, now)
            for planned in entries
        ]

    async def _slots_without_room(self, slugs: Sequence[str | None]) -> dict[str, Invalid]:
        """Slots beyond the limit of the settings."""
        room, most = await self._read(self._app._quota().commands.room)
        text = (
            f"quota.slots_max is {most}, and there is room for {room} more; raise it, or leave some out with --except"
        )
        return {slug or "": Invalid(FieldError("", text)) for slug in slugs[room:]}

    async def apply(self, plan: ImportPlan, *, is_handover: bool = False) -> ImportPlan:
        """Write the plan. With `is_handover`, what it writes stays inactive until its source is switched off."""
        if is_handover:
            plan = plan.handed_over()
        write = plan.writable
        taken_over = handed(plan) if is_handover else []
        if not write and not taken_over:
            return replace(plan, is_applied=True)
        if taken_over and self._handovers is None:
            raise Conflict("this process cannot switch a source off; import through the daemon")
        journal = self._journal(plan.kind, taken_over) if taken_over else None

        def then(tx: Tx, now: Instant) -> None:
            for planned in write:
                self._begin(tx, planned, now, is_handed=planned in taken_over)
            for planned in taken_over:
                if planned.entry.becomes == "schedule":
                    await_handover(tx, planned.slug or "", now=now)
            tx[Origins].put_many([_origin(plan.kind, planned, now) for planned in write])
            if journal is not None:
                tx[HandoverJournals].put(journal)

        self._write_files(write)
        schedules = [planned for planned in write if planned.entry.becomes == "schedule"]
        await self._app._put_all({planned.slug or "": planned.definition for planned in schedules}, then=then)
        if journal is not None and self._handovers is not None:
            self._handovers.drive(journal)
        return replace(plan, is_applied=True, handover=None if journal is None else _handover_state(journal))

    def _journal(self, kind: str, handed: Sequence[PlannedEntry]) -> Handover:
        now = self._app._moment().now
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
        if slug is not None and entry.becomes == "slot":
            self._begin_slot(tx, planned, now, is_handed=is_handed)
        if entry.becomes == "delivery" and planned.action == "create":
            self._begin_delivery(tx, planned.definition or {}, now)
        if slug is None or planned.action != "create" or entry.becomes != "schedule":
            return
        if entry.last_run is not None:
            miss_before_import(tx, slug, entry.last_run, now=now)
        if entry.session is not None:
            commands.adopt_session(tx, slug, entry.session)
        if entry.draft is not None:
            hold_draft(tx, slug, entry.draft, now=now)
        elif entry.is_paused:
            commands.pause(tx, slug, hooks=self._app._open.hooks, now=now)

    def _begin_slot(self, tx: Tx, planned: PlannedEntry, now: Instant, *, is_handed: bool) -> None:
        """A new slot is off while its source is on, or if it is off in the source. A changed slot stays on or off."""
        slug, slot, slots = planned.slug or "", planned.definition or {}, self._app._quota().commands
        if planned.action == "create":
            slots.put(tx, slug, {**slot, "enabled": not is_handed and not planned.entry.is_paused}, now=now)
        else:
            slots.patch(tx, slug, {**dict.fromkeys(_SLOT_FIELDS), **slot}, now=now)

    def _begin_delivery(self, tx: Tx, message: Mapping[str, Any], now: Instant) -> None:
        """Queue a message that another program had queued. Its id there is its origin, so it is queued once."""
        delivery = self._app._delivery
        send(
            tx,
            message["text"],
            message["channel"],
            message.get("to"),
            registry=delivery.registry,
            now=now,
            age_max=delivery.limits.age_max,
            ack_token=delivery.ack_token(),
        )

    def _activate(self, tx: Tx, name: str, off_at: Instant, hand_at: Instant, now: Instant) -> None:
        with suppress(NotFound):  # removed meanwhile
            if name.startswith(_SLOT):
                if self._app._host.quota is not None:
                    self._app._quota().commands.patch(tx, name.removeprefix(_SLOT), {"enabled": True}, now=now)
                return
            take_over(tx, name, off_at=off_at, hand_at=hand_at, now=now)

    def _write_files(self, write: Sequence[PlannedEntry]) -> None:
        """Secrets go into files that only their owner can read."""
        for planned in write:
            if planned.entry.key is None:
                continue
            home = self._app._setup.home
            if home is None:
                raise Conflict("this process has no home folder for the secrets of this import")
            path = Path(home) / _key_file(planned.slug or "")
            path.parent.mkdir(mode=0o700, exist_ok=True)
            unborn = path.with_name(f".{path.name}.part")
            with os.fdopen(os.open(unborn, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
                file.write(planned.entry.key + "\n")
            unborn.replace(path)

    def _planned(
        self, entry: Entry, fitted: Fitted, names: Names, stored: Mapping[str, str], context: Context
    ) -> PlannedEntry:
        if entry.refused is not None:
            reason = f"skipped: {entry.refused}" if entry.is_skipped else entry.refused
            return with_times(PlannedEntry(entry, None, "refused", reason=reason), fitted, context)
        slug = names.slug_for(entry)
        if entry.becomes == "slot":
            return self._planned_slot(entry, slug, names)
        if entry.becomes == "delivery":
            is_known = (entry.place, entry.ref) in names.known
            return PlannedEntry(entry, slug, "unchanged" if is_known else "create", entry.action, "a message")
        try:
            if isinstance(fitted, Invalid):
                raise fitted
            schedule, problem = fitted
            written = {"slug": slug, "schedule": schedule, **entry.action, **entry.options}
            definition = self._app._checked(slug, written)
        except Invalid as invalid:
            refused = PlannedEntry(entry, slug, "refused", reason=str(invalid), too_often=too_often(entry, invalid))
            return with_times(refused, fitted, context)
        ours = tuple(next_n(definition.timing, context.now, SHOWN))
        theirs = ours if entry.times is None else tuple(entry.times(context.now, SHOWN))
        shown = PlannedEntry(
            entry, slug, "create", written, describe(definition.timing), theirs, ours, checked=definition
        )
        if problem is None and ours != theirs:
            problem = "the limits of this daemon change its times; see every_min in [limits]"
        if problem is not None and entry.draft is None:
            return replace(shown, action="refused", reason=problem)
        if problem is not None:  # a person looks at a draft before it runs
            shown = replace(shown, entry=replace(entry, notes=(*entry.notes, problem)))
        digest = _digest(written)
        origin = names.known.get((entry.place, entry.ref))
        action: Action = "create"
        if slug in stored and origin is not None:
            is_same = origin.digest == digest or encode_definition(definition) == stored[slug]
            action = "unchanged" if is_same else "update"
        return replace(shown, action=action, digest=digest)

    def _planned_slot(self, entry: Entry, slug: str, names: Names) -> PlannedEntry:
        """A quota slot. Its key is in a file of its own, which is written when the plan is applied."""
        secret = {} if entry.key is None else {"apiKey": {"file": _key_file(slug)}}
        slot = {**entry.action, **secret}
        digest = _digest({**slot, "key": entry.key})  # a new key is a change, too
        shown = PlannedEntry(entry, slug, "create", slot, "a quota slot", digest=digest)
        try:
            self._app._quota().registry.check(slug, {**slot, **(dict.fromkeys(secret, "not read yet"))})
        except (Invalid, Conflict) as refused:
            return replace(shown, action="refused", reason=str(refused))
        origin = names.known.get((entry.place, entry.ref))
        if origin is not None and slug in names.slots:
            return replace(shown, action="unchanged" if origin.digest == shown.digest else "update")
        return shown


def _refused(planned: PlannedEntry, refusal: Invalid, now: Instant) -> PlannedEntry:
    timing = None if planned.checked is None else planned.checked.timing
    at = timing.at if isinstance(timing, Once) else None
    reason = str(refusal) if at is None or at > now else f"its time, {format_instant(at)}, is over"
    return replace(planned, action="refused", reason=reason)


def _key_file(slug: str) -> str:
    """Where the key of an imported slot is, in the home folder: named after the slot, so that no two share a file."""
    return f"imported/{slug}.key"


def _digest(written: Mapping[str, Any]) -> str:
    return digest_of(json.dumps(written, sort_keys=True))


def _handover_state(row: Handover) -> HandoverState:
    return HandoverState(row.handover_id, row.stage, row.hand_at, row.problem)


def _named(planned: PlannedEntry) -> str:
    """The journal's names for what it starts."""
    return f"{_SLOT if planned.entry.becomes == 'slot' else ''}{planned.slug}"


def _is_debian_cron() -> bool:
    return Path("/etc/debian_version").exists() and not Path("/usr/sbin/crond").exists()


def _origin(kind: str, planned: PlannedEntry, now: Instant) -> Origin:
    entry = planned.entry
    return Origin(kind, entry.place, entry.ref, entry.becomes, planned.slug or "", planned.digest, now)
