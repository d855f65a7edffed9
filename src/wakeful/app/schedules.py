"""Commands on schedules: add, pause, resume, acknowledge, remove."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from wakeful.app.action_forms import action_of
from wakeful.app.definitions import Definitions, locked
from wakeful.app.merging import definition_options
from wakeful.app.values import Guard, New
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Timing
from wakeful.core.time.timing_builders import as_instant
from wakeful.engine.incidents import end_incident
from wakeful.features.delivery import alerts
from wakeful.features.heartbeat import planning
from wakeful.features.heartbeat.rules import HEARTBEAT
from wakeful.features.heartbeat.state import find
from wakeful.features.schedules import commands, owned_stops, pausing_all
from wakeful.ports.store import Tx


class Schedules(Definitions):
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
        dispatch: Mapping[str, Any] | None = None,
        args: Mapping[str, Any] | None = None,
        isolate: str | None = None,
        **options: Any,
    ) -> str:
        """Add a schedule, or update the one with that slug, keeping its state; returns the slug.

        Exactly one of call, command, http, prompt, dispatch and event says what to do; with none of them the `on_due`
        handler is called. Options are those of a definition in snake_case: catch_up, max_lateness, overlap, timeout,
        on_crash, retry, max_consecutive_errors, active_hours, stagger, lane, enabled and so on.

        `retries=3` is short for a `retry` with exponential backoff: after 10 s (or `retry_delay`), then twice as long
        each time, at most an hour. `retry_on` and `give_up_on` take exception types raised by a call.
        """
        given = {
            **{"call": call, "command": command, "http": http, "prompt": prompt, "event": event},
            "dispatch": dispatch,
        }
        name = slug if slug is not None else f"job-{secrets.token_hex(4)}"
        what = {kind: value for kind, value in given.items() if value is not None}
        action = action_of(self._registry, name, what, args, isolate, options)
        await self._add(New(name, timing, action, definition_options(options)))
        return name

    async def remove(self, slug: str, *, guard: Guard | None = None) -> None:
        """Remove a schedule; a run in progress may finish, and past runs are kept."""

        def remove(tx: Tx, now: Instant) -> None:
            owned_stops.remember_removal(tx, slug, now=now)
            if guard is not None:
                guard(locked(tx, slug))
            commands.remove(tx, slug, hooks=self._open.hooks, now=now)

        await self._command(remove)

    async def pause(self, slug: str, until: datetime | str | None = None) -> None:
        """Start nothing until the schedule is resumed, or until `until`. `heartbeat`: no beats; a wake still causes a
        turn."""
        ends = None if until is None else as_instant(until, "until")
        if slug == HEARTBEAT:
            await self._command(lambda tx, now: planning.pause(tx, self._heartbeat.terms, now=now, until=ends))
            return
        await self._command(lambda tx, now: commands.pause(tx, slug, hooks=self._open.hooks, now=now, until=ends))

    async def resume(self, slug: str) -> None:
        """Resume a paused or disabled schedule, or `heartbeat`, from now on; its error count is reset."""
        if slug == HEARTBEAT:
            await self._command(lambda tx, now: planning.resume(tx, self._heartbeat.terms, now=now))
            return
        await self._command(lambda tx, now: commands.resume_schedule(tx, slug, now=now))

    async def pause_all(self, until: datetime | str | None = None, *, by: str = "") -> list[str]:
        """Pause all active schedules, and the beats of the heartbeat, in one commit; returns what was paused."""
        ends = None if until is None else as_instant(until, "until")

        def pause(tx: Tx, now: Instant) -> list[str]:
            paused = pausing_all.pause_all(tx, hooks=self._open.hooks, now=now, until=ends, by=by)
            heartbeat = find(tx)
            if heartbeat is not None and heartbeat.cadence.state == "active":
                terms = self._heartbeat.terms
                planning.pause(tx, terms, now=now, until=ends, reason=pausing_all.WITH_ALL)
                paused.append(HEARTBEAT)
            return paused

        return await self._command(pause)

    async def resume_all(self, *, by: str = "") -> list[str]:
        """Resume what `pause_all` paused, and nothing else; returns what was resumed."""

        def resume(tx: Tx, now: Instant) -> list[str]:
            resumed = pausing_all.resume_all(tx, now=now, by=by)
            heartbeat = find(tx)
            if heartbeat is not None and pausing_all.is_paused_with_all(heartbeat.cadence):
                planning.resume(tx, self._heartbeat.terms, now=now)
                resumed.append(HEARTBEAT)
            return resumed

        return await self._command(resume)

    async def acknowledge(self, slug: str) -> None:
        """Acknowledge a schedule's failure: its incident ends without a message, and a one-shot that failed is done."""
        await self._command(lambda tx, now: commands.acknowledge(tx, slug, now=now))

    async def acknowledge_alert(self, alert_id: str) -> None:
        """End an incident by its id; a schedule's incident ends as with `acknowledge`."""
        number = int(alert_id) if alert_id.isascii() and alert_id.isdecimal() and len(alert_id) < 19 else 0

        def acknowledge(tx: Tx, now: Instant) -> None:
            row = alerts.find(tx, number)
            known = {} if row.owner_id is None else tx.schedules.by_ids([row.owner_id])
            if row.owner_id in known and known[row.owner_id].deleted_at is None:
                commands.acknowledge(tx, known[row.owner_id].slug, now=now)
            else:
                end_incident(tx, row.name, now=now)

        await self._command(acknowledge)
