"""System events: messages for the agent's next turn."""

from collections.abc import Callable
from typing import Final, TypeAlias

from wakeful.core.errors import refuse
from wakeful.core.run.effects import Effect, Prove, RaiseEvent, RequestWake
from wakeful.core.run.results import Done, HandedOver, Result, Unconfirmed
from wakeful.core.run.runs import RungName, unplanned
from wakeful.core.run.transitions import planned
from wakeful.core.schedule.actions import Event
from wakeful.core.time.instants import Instant
from wakeful.features.heartbeat.rules import HEARTBEAT, TURN
from wakeful.ports import event_data, events
from wakeful.ports.action import Fire, Ladder
from wakeful.ports.heartbeats import WaitingEvents
from wakeful.ports.owners import Owners
from wakeful.ports.store import NewEvent, Report, Store, SystemEvent, Tx

EVENTS_MAX: Final = 50
TEXT_MAX: Final = 8_000
KEY_MAX: Final = 200

Apply: TypeAlias = Callable[[Tx, Effect, Instant], bool]
"""Applies an effect through the feature that handles it."""


class EventAction:
    """Performs `Event`: queues the event in the transaction that settles the attempt; the run then waits."""

    is_local = False

    def __init__(self, store: Store) -> None:
        self._store = store

    def proves(self, spec: Event) -> RungName:
        return "finished"

    def check(self, spec: Event) -> str | None:
        return wrong_with(spec.text, spec.context_key)

    async def perform(self, spec: Event, fire: Fire, ladder: Ladder) -> Result:
        if fire.attempt > 1 and (known := await self._store.read(lambda tx: _fate(tx, fire.run_id))) is not None:
            return known
        key = f"cron:{fire.slug}" if spec.context_key is None else spec.context_key
        return HandedOver((RequestWake("cron"), RaiseEvent(spec.text, key, "cron", fire.slug, fire.run_id)))

    async def close(self) -> None: ...


def _fate(tx: Tx, run_id: int) -> Result | None:
    """The fate of an event that an earlier attempt queued; None if none did. A run that waits is ended when its event
    is dropped; one that asks finds the reason in its row. If an earlier attempt to ask was interrupted, that reason may
    be lost, so a missing event proves nothing."""
    attempts = tx.runs.attempts([run_id]).get(run_id, [])
    if not any(attempt.outcome == "accepted" for attempt in attempts):
        return None
    if tx[WaitingEvents].of_run(run_id) is not None:
        return Unconfirmed("its event is queued, but no turn that carried it has succeeded yet; see: wakeful heartbeat")
    run = tx.runs.lock([run_id])[run_id]
    if run.reason is not None:
        return Unconfirmed(run.error or "its event was replaced by a newer one before a turn that carried it succeeded")
    if attempts[-1].outcome != "accepted":
        return Unconfirmed("its event is gone, but nothing shows that a turn that carried it has succeeded")
    return Done()


def wrong_with(text: str, context_key: str | None) -> str | None:
    """Why this is not a valid event, and the cure; None if it is."""
    if not text.strip():
        return "the text is empty; say what the agent should know"
    if len(text) > TEXT_MAX:
        return f"the text has {len(text)} characters; write at most {TEXT_MAX}"
    if context_key is not None and not 0 < len(context_key) <= KEY_MAX:
        return f"the context key has {len(context_key)} characters; write 1 to {KEY_MAX}"
    return None


def check_event(text: str, context_key: str | None) -> None:
    """Refuse an invalid event."""
    wrong = wrong_with(text, context_key)
    if wrong is not None:
        refuse("contextKey" if wrong.startswith("the context key") else "text", wrong)


def raise_event(tx: Tx, event: RaiseEvent, now: Instant, *, apply: Apply) -> list[SystemEvent]:
    """Queue an event, and return the ones evicted because too many wait. The caller holds the heartbeat's lock."""
    new = NewEvent(event.context_key, event.source, event.text, now, event.slug, event.run_id)
    row, replaced = tx[WaitingEvents].add_or_replace(new)
    data = event_data.Raised(row.event_id, row.context_key, row.source, row.revision)
    tx.report(Report(events.EVENT_RAISED, data, slug=row.slug))
    if replaced is not None and replaced.run_id is not None and replaced.run_id != event.run_id:
        apply(tx, Prove(replaced.run_id, dropped="replaced"), now)
    waiting = tx[WaitingEvents].all()
    evicted = waiting[: max(len(waiting) - EVENTS_MAX, 0)]
    for oldest in evicted:
        _evict(tx, oldest, now, apply)
    return evicted


def forget_all(tx: Tx, *, now: Instant, apply: Apply) -> None:
    """The store is a restored backup: its waiting events may have been delivered since the backup, so drop them."""
    for event in tx[WaitingEvents].all():
        why = "the store was restored from a backup, and it may have been delivered since"
        said = f"a system event from {event.source} was dropped: {why}"
        _drop(tx, event, "restored", said, now, apply)


def _evict(tx: Tx, event: SystemEvent, now: Instant, apply: Apply) -> None:
    said = f"a system event from {event.source} was evicted: more than {EVENTS_MAX} waited for a turn"
    _drop(tx, event, "event evicted", said, now, apply)


def _drop(tx: Tx, event: SystemEvent, reason: str, said: str, now: Instant, apply: Apply) -> None:
    """Drop an event visibly: its run fails, or it leaves a separate row."""
    tx[WaitingEvents].remove_many([event.event_id])
    about = event.text[:200]
    data = event_data.Evicted(event.event_id, event.context_key, event.source, about)
    tx.report(Report(events.EVENT_EVICTED, data, said, "warn", slug=event.slug))
    if event.run_id is not None:
        apply(tx, Prove(event.run_id, error=f"{said}; check why turns fail, or raise fewer events"), now)
        return
    run_id = tx.runs.reserve_ids(1)[0]
    run = planned(
        run_id=run_id,
        kind=TURN,
        schedule_id=tx[Owners].named(HEARTBEAT),
        version=1,
        planned_at=event.raised_at,
        due_at=event.raised_at,
        trigger="wake",
        lane=None,
    )
    row = run._replace(
        occurrence=unplanned(run_id, event.raised_at), outcome="skipped", reason=reason, error=f"{said}: {about}"
    )
    tx.runs.add_many([row._replace(ended_at=now, next_attempt_at=None)])
