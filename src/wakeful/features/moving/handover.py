"""The handover from another scheduler: no run lost or duplicated, whatever happens during it.

Theory of operation: a time H is chosen, a full minute at least 60 s ahead. Instants before H belong to the source,
those from H on to Wakeful. Our schedules are written inactive, with a journal row, in one transaction. The source is
switched off shortly before H, after the instants of the last minute have started in it, and at the latest 5 s before
H. Then our schedules become active, planned from H on. Each step is recorded before it is taken:

- `written`: nothing has happened to the source. If H comes too close, a later one is chosen.
- `switching`: the source is being switched off; it was on when that began (`off_at`). After a failure or a restart it
is checked: if it is still on, a later H is chosen; if it is off, our schedules become active, and what was due since H
is due now. If switching it off took until after H, the source ran on until then, and H moves to that time.
- `done`.

So a process that dies at any point leaves either the source running, or a journal that the next start completes.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from wakeful.core.time.instants import MINUTE, SECOND, Duration, Instant, format_instant
from wakeful.features.moving.handover_rows import Handover, HandoverJournals
from wakeful.ports.clock import Clock
from wakeful.ports.moving import SourceSwitch, SwitchFailed
from wakeful.ports.store import Store, Tx

log = logging.getLogger("wakeful.moving")

LEAD: Final[Duration] = MINUTE
MARGIN: Final[Duration] = 5 * SECOND
WINDOW: Final[Duration] = 30 * SECOND
TRY_AGAIN: Final[Duration] = 10 * SECOND
TRIES_MAX: Final = 60


Activate: TypeAlias = Callable[[Tx, str, Instant, Instant, Instant], None]
"""Makes a schedule active: slug, when the source ended, the handover, now."""


def next_handover_at(now: Instant) -> Instant:
    """The next time for a handover: a full minute at least `LEAD` ahead."""
    return -(-(now + LEAD) // MINUTE) * MINUTE


class Handovers:
    """Drives the open handovers of this machine. A background service."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        host: str,
        switches: Mapping[str, SourceSwitch],
        activate: Activate,
        ring_bell: Callable[[], None],
        sleep: Callable[[Duration], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._host = host
        self._switches = switches
        self._activate = activate
        self._ring_bell = ring_bell
        self._sleep = sleep or clock.sleep
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Continue what an earlier process began."""
        for row in await self._store.read(lambda tx: tx[HandoverJournals].open()):
            self.drive(row)

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def drive(self, row: Handover) -> None:
        """Carry a journal out in the background."""
        if row.host != self._host or row.handover_id in self._tasks:
            return
        task = asyncio.create_task(self._drive(row), name=f"wakeful-handover-{row.handover_id}")
        self._tasks[row.handover_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(row.handover_id, None))

    async def _drive(self, row: Handover) -> None:
        for _ in range(TRIES_MAX):
            try:
                while row.stage in ("written", "switching"):
                    row = await self._step(row)
                return
            except SwitchFailed as failed:
                log.warning("the source of an import (%s) cannot be switched off: %s", row.source, failed)
                # It may be off all the same, so nothing is forgotten; it is checked before anything else happens.
                row = await self._save(self._after_switching(row)._replace(problem=str(failed)))
                await self._sleep(TRY_AGAIN)
        log.error(
            "giving up the handover from %s: the source keeps running, and the imported schedules stay off", row.source
        )
        await self._save(row._replace(stage="abandoned"))

    async def _step(self, row: Handover) -> Handover:
        now = self._clock.read().now
        latest = row.hand_at - MARGIN
        if row.stage == "written":
            if now >= latest:
                return await self._later(row, None)
            if now < row.hand_at - WINDOW:
                await self._sleep(row.hand_at - WINDOW - now)
                return row
            return await self._save(row._replace(stage="switching", off_at=now))
        if not await self._is_off(row):
            if self._clock.read().now >= latest:
                return await self._later(row, row.problem)
            row = await self._save(row._replace(off_at=now))  # it was on when it was checked
            await self._switch_off(row, within=latest - now)
            row = self._after_switching(row)
            if not await self._is_off(row):
                raise SwitchFailed("it is still on")
        return await self._finish(row, self._clock.read().now)

    def _after_switching(self, row: Handover) -> Handover:
        """If the switch was slow or the machine slept, the source may have run instants after H."""
        return row._replace(hand_at=max(row.hand_at, self._clock.read().now + 1))

    async def _later(self, row: Handover, problem: str | None) -> Handover:
        """Choose a later handover time; the source keeps running until then."""
        hand_at = next_handover_at(self._clock.read().now)
        log.info("the handover from %s is postponed until %s", row.source, format_instant(hand_at))
        return await self._save(row._replace(stage="written", hand_at=hand_at, off_at=None, problem=problem))

    async def _finish(self, row: Handover, now: Instant) -> Handover:
        """Make our schedules active, in the transaction that closes the journal."""
        off_at = now if row.off_at is None else row.off_at
        done = row._replace(stage="done", problem=None, updated_at=now)
        slugs = json.loads(row.body)["slugs"]

        def finish(tx: Tx) -> None:
            for slug in slugs:
                self._activate(tx, slug, off_at, row.hand_at, now)
            tx[HandoverJournals].put(done)

        await self._store.write(finish)
        self._ring_bell()
        log.info("taken over from %s: %d schedules, from %s on", row.source, len(slugs), format_instant(row.hand_at))
        return done

    async def _save(self, row: Handover) -> Handover:
        saved = row._replace(updated_at=self._clock.read().now)
        await self._store.write(lambda tx: tx[HandoverJournals].put(saved))
        return saved

    async def _is_off(self, row: Handover) -> bool:
        return all([await self._switch(kind).is_off(what) for kind, what in _by_kind(row).items()])

    async def _switch_off(self, row: Handover, *, within: Duration) -> None:
        for kind, what in _by_kind(row).items():
            await self._switch(kind).switch_off(what, within=within)

    def _switch(self, kind: str) -> SourceSwitch:
        if kind not in self._switches:
            raise SwitchFailed(f"this version cannot switch {kind} off")
        return self._switches[kind]


def _by_kind(row: Handover) -> dict[str, list[Mapping[str, Any]]]:
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for off in json.loads(row.body)["off"]:
        by_kind.setdefault(off["kind"], []).append(off["what"])
    return by_kind
