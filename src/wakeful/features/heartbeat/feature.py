"""The heartbeat feature: what it plugs in, and how it applies changed settings."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from wakeful.core.run.effects import RaiseEvent, RequestWake, TakeMessage
from wakeful.core.schedule.actions import Event, Prompt
from wakeful.core.schedule.pre_check import CheckSpec
from wakeful.core.time.instants import Instant
from wakeful.features.heartbeat.action import HeartbeatAction, HeartbeatTurn, Notes, notes_in
from wakeful.features.heartbeat.agent_runs import BudgetNote, no_note
from wakeful.features.heartbeat.alarms import HeartbeatAlarms
from wakeful.features.heartbeat.commands import wake
from wakeful.features.heartbeat.events import Apply, EventAction, raise_event
from wakeful.features.heartbeat.messages import MessageRuns, message
from wakeful.features.heartbeat.planning import follow, forgo_all
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.features.heartbeat.runs import TurnRuns
from wakeful.features.heartbeat.state import hold
from wakeful.ports.action import Action
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.store import Store, Tx


class HeartbeatFeature:
    """The heartbeat of one process. `home` is the folder of HEARTBEAT.md; `notes` reads it from elsewhere."""

    def __init__(
        self,
        terms: HeartbeatTerms | None = None,
        *,
        home: Path | None = None,
        read: Callable[[Any], HeartbeatTerms] | None = None,
        notes: Notes | None = None,
    ) -> None:
        self.terms = terms or HeartbeatTerms()
        self._notes = notes or notes_in(home)
        self._read = read  # reads the terms from changed settings
        self._store: Store | None = None
        self._clock: Clock | None = None
        self._ring_bell: Callable[[], None] = lambda: None

    async def plug(
        self,
        *,
        store: Store,
        clock: Clock,
        store_id: str,
        actions: Mapping[type[Any], Action],
        receipt_url: Callable[[int], str | None],
        ring_bell: Callable[[], None],
        apply: Apply,
        node: str | None = None,
        budget_note: BudgetNote = no_note,
    ) -> FeatureHooks:
        """Apply the settings and register the hooks."""
        self._store, self._clock, self._ring_bell = store, clock, ring_bell
        await self.follow(self.terms)
        turns = actions.get(Prompt)

        def read_terms() -> HeartbeatTerms:
            return self.terms

        def raised(tx: Tx, event: RaiseEvent, now: Instant) -> None:
            hold(tx)
            raise_event(tx, event, now, apply=apply)

        def woken(tx: Tx, request: RequestWake, now: Instant) -> None:
            wake(tx, request.reason, now=now)

        def said(tx: Tx, heard: TakeMessage, now: Instant) -> None:
            message(tx, channel=heard.channel, to=heard.to, text=heard.text, terms=self.terms, now=now)

        own: dict[type[Any], Action] = {Event: EventAction(store)}
        if turns is not None:
            own[HeartbeatTurn] = HeartbeatAction(turns, self._notes, actions.get(CheckSpec))
        return FeatureHooks(
            alarms=[HeartbeatAlarms(read_terms)],
            keepers=[
                keeper(read_terms, store_id, receipt_url, node, has_agents=turns is not None, budget_note=budget_note)
                for keeper in (TurnRuns, MessageRuns)
            ],
            actions=own,
            appliers={RaiseEvent: raised, RequestWake: woken, TakeMessage: said},
            on_settings=[] if self._read is None else [self._changed],
            forgo=[partial(self.forgo, apply=apply)],
        )

    async def follow(self, terms: HeartbeatTerms) -> None:
        """Apply these settings from now on; a running turn finishes under the old ones."""
        self.terms = terms
        if self._store is not None and self._clock is not None:
            now = self._clock.read().now
            await self._store.write(lambda tx: follow(tx, terms, now=now))
            self._ring_bell()

    def forgo(self, tx: Tx, now: Instant, *, apply: Apply) -> int:
        """This store is a restored backup: which turns and messages happened since the backup is unknown."""
        return forgo_all(tx, self.terms, now=now, apply=apply)

    async def _changed(self, _old: Any, new: Any) -> None:
        if self._read is not None and (terms := self._read(new)) != self.terms:
            await self.follow(terms)
