"""Schedules in the hands of an app: written, changed, paused, taken away."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from wakeful.app.action_forms import action_of
from wakeful.app.definitions import held
from wakeful.app.lifecycle import AppLifecycle
from wakeful.app.merging import definition_options
from wakeful.app.values import Guard, New, WrittenSchedule
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Timing
from wakeful.core.time.timing_builders import as_instant
from wakeful.engine.incidents import end_incident
from wakeful.features.delivery import alerts
from wakeful.features.heartbeat.rules import HEARTBEAT
from wakeful.features.schedules import commands
from wakeful.ports.store import Tx


class Schedules(AppLifecycle):
    """Commands on schedules."""

    async def add(
        self,
        slug: str | None,
        timing: Timing,
        *,
        call: str | Callable[..., Any] | None = None,
        command: Sequence[str] | Mapping[str, Any] | None = None,
        http: str | Mapping[str, Any] | None = None,
        prompt: str | None = None,
        event: str | Mapping[str, Any] | None = None,
        args: Mapping[str, Any] | None = None,
        isolate: str | None = None,
        **options: Any,
    ) -> str:
        """Add a schedule, or update the one of that slug, keeping where it stands; answers the slug.

        Exactly one of call, command, http, prompt and event says what to do; with none of them the `on_due` handler is
        called. Options are those of a definition in snake_case: catch_up, max_lateness, overlap, timeout, on_crash,
        retry, max_consecutive_errors, active_hours, stagger, lane, enabled and so on.

        `retries=3` is short for a `retry` with exponential backoff: again after 10 s (or `retry_delay`), then after
        twice as long each time, an hour at most. `retry_on` and `give_up_on` take types of exceptions of a call.
        """
        given = {"call": call, "command": command, "http": http, "prompt": prompt, "event": event}
        name = slug if slug is not None else f"job-{secrets.token_hex(4)}"
        what = {kind: value for kind, value in given.items() if value is not None}
        action = action_of(self._registry, name, what, args, isolate, options)
        await self._writing.add(New(name, timing, action, definition_options(options)))
        return name

    async def add_many(self, schedules: Sequence[New]) -> list[str]:
        """Add or update many schedules; all are checked before any is written."""
        await self._writing.add_many(schedules)
        return [new.slug for new in schedules]

    async def put(self, slug: str, definition: Mapping[str, Any]) -> commands.Put:
        """Write a definition in its JSON shape."""
        return await self._writing.put(slug, definition)

    async def write(
        self, slug: str, definition: Any, *, guard: Guard | None = None, is_rehearsal: bool = False
    ) -> WrittenSchedule:
        """Write a definition in its JSON shape and read it back, in one transaction; a rehearsal leaves no trace."""
        return await self._writing.write(slug, definition, guard, is_rehearsal)

    async def patch(
        self, slug: str, changes: Mapping[str, Any], *, guard: Guard | None = None, is_rehearsal: bool = False
    ) -> WrittenSchedule:
        """Merge changes into a definition (RFC 7396, by its JSON names) and read it back, in one transaction."""
        return await self._writing.patch(slug, changes, guard, is_rehearsal)

    async def update(self, slug: str, *, if_version: int | None = None, **changes: Any) -> None:
        """Change some of a definition, by its JSON names in snake_case; None takes a field back to what is usual."""
        await self._writing.update(slug, if_version, changes)

    async def remove(self, slug: str, *, guard: Guard | None = None) -> None:
        """Take a schedule away; a run under way ends, and the ledger stays."""

        def remove(tx: Tx, now: Instant) -> None:
            if guard is not None:
                guard(held(tx, slug))
            commands.remove(tx, slug, hooks=self._open.hooks, now=now)

        await self._writing.command(remove)

    async def pause(self, slug: str, until: datetime | str | None = None) -> None:
        """Let nothing of it start until resumed, or until a time. `heartbeat`: no beats; a wake still turns it."""
        ends = None if until is None else as_instant(until, "until")
        if slug == HEARTBEAT:
            await self._beats.pause(ends)
            return
        await self._writing.command(
            lambda tx, now: commands.pause(tx, slug, hooks=self._open.hooks, now=now, until=ends)
        )

    async def resume(self, slug: str) -> None:
        """Let a paused or disabled schedule, or `heartbeat`, go on from now; its errors are counted from zero."""
        if slug == HEARTBEAT:
            await self._beats.resume()
            return
        await self._writing.command(lambda tx, now: commands.resume_schedule(tx, slug, now=now))

    async def acknowledge(self, slug: str) -> None:
        """Its trouble is known: its incident ends without a report, and a one-shot that failed is done."""
        await self._writing.command(lambda tx, now: commands.acknowledge(tx, slug, now=now))

    async def acknowledge_alert(self, alert_id: str) -> None:
        """End an incident by its id; that of a schedule as with `acknowledge`."""
        number = int(alert_id) if alert_id.isascii() and alert_id.isdecimal() and len(alert_id) < 19 else 0

        def acknowledge(tx: Tx, now: Instant) -> None:
            row = alerts.find(tx, number)
            known = {} if row.owner_id is None else tx.schedules.by_ids([row.owner_id])
            if row.owner_id in known and known[row.owner_id].deleted_at is None:
                commands.acknowledge(tx, known[row.owner_id].slug, now=now)
            else:
                end_incident(tx, row.name, now=now)

        await self._writing.command(acknowledge)
