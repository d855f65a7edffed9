"""The heartbeat as an inhabitant: people and hooks that wake it, and an agent that remembers what it was told."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from wakeful.app.bootstrap import FeatureContext
from wakeful.app.features import plug_heartbeat
from wakeful.core.heartbeat.conversations import is_conversation
from wakeful.core.heartbeat.heartbeat import BeatRules, Heartbeat, timing_of
from wakeful.core.run.results import Done, Result
from wakeful.core.run.runs import NOT_RUN, Run, RungName
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.pre_check import NOTHING_TO_DO
from wakeful.core.time.active_hours import ActiveHours
from wakeful.core.time.instants import MINUTE, Duration, Instant
from wakeful.features.heartbeat.commands import REASONS, request_wake
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.heartbeat.rules import TURN, HeartbeatTerms
from wakeful.ports.action import Action, Fire, Ladder
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.heartbeats import Heartbeats, WaitingEvents
from wakeful.ports.store import ALARM_HEARTBEAT, SystemEvent, Tx
from worlds import heartbeat_laws as laws
from worlds.conversations import Conversations
from worlds.inhabitants import Act, Boot, Surroundings, Touch, draw_times
from worlds.performers import reply_of
from worlds.system import is_event

NAME: Final = "heartbeat"
EVENT: Final = "event"
_TOLD: Final = re.compile(r"^> (e\d+|call-s\d+)$", re.MULTILINE)


class SimAgent:
    """The agent on one boot: it takes prompts as the machine's requests are taken, and remembers what they said."""

    is_local = False

    def __init__(self, beating: "Beating", boot: Boot, requests: Action) -> None:
        self._beating = beating
        self._boot = boot
        self._requests = requests

    def proves(self, spec: Prompt) -> RungName:
        return "finished"

    def check(self, spec: Prompt) -> str | None:
        return None

    async def perform(self, spec: Prompt, fire: Fire, ladder: Ladder) -> Result:
        if is_conversation(fire.slug):
            return await self._beating.conversations.answer(fire, self._boot)
        told = frozenset(_TOLD.findall(spec.text))
        self._beating.told(fire, told, self._boot)
        result = await self._requests.perform(spec, fire, ladder)
        if not isinstance(result, Done):
            return result
        self._beating.answered(fire, told)
        return Done(reply=self._beating.draw_reply(fire))

    async def close(self) -> None:
        """Nothing is held."""


class Beating:
    """The heartbeat of a world: what was asked for, what the agent was told, and which turns there were."""

    name = NAME
    touches: Sequence[Touch] = (
        Touch("system_events", EVENT, "event_id"),
        Touch("heartbeats", ALARM_HEARTBEAT, "owner_id"),
    )

    def __init__(
        self,
        rng: random.Random,
        world: Surroundings,
        conversations: Conversations,
        *,
        days: float,
        per_day: float,
        pace: Duration,
        nodes: int,
    ) -> None:
        self._rng = rng
        self.conversations = conversations
        self._world = world
        self._days = days
        self._per_day = per_day
        self._is_alone = nodes == 1  # several nodes have one settings file, and read it at their own time
        self._pace = pace
        hours = ActiveHours("08:00", "17:30", "America/New_York") if rng.random() < 0.3 else None
        beats = BeatRules(hours=hours, turns_per_hour_max=rng.choice((2, 5, 60)))
        every = self._draw_every()
        self.terms = HeartbeatTerms(enabled=rng.random() < 0.8, every=every, beats=beats, timeout=10 * MINUTE)
        self._file = random.Random(repr(self.terms))
        self._events: dict[int, SystemEvent] = {}
        self._heartbeat: Heartbeat | None = None
        self._due_at: Instant | None = None
        self._told: dict[int, frozenset[str]] = {}  # by run: what an attempt that was answered had told
        self._heard: set[str] = set()
        self._heard_of: set[int] = set()  # runs of schedules whose event was heard
        self._turns: set[int] = set()
        self._births: list[Instant] = []  # of turns, since the wall was last moved
        self._last_born: int | None = None
        self._counted_since = -1
        self._named = 0

    # -- life ---------------------------------------------------------------------------------------------------------

    def move_in(self, boot: Boot) -> "HeartbeatTenant":
        return HeartbeatTenant(self, boot)

    def actions(self, boot: Boot, requests: Action) -> Mapping[type[Any], Action]:
        return {Prompt: SimAgent(self, boot, requests)}

    def draw_acts(self, near: Sequence[int]) -> list[Act]:
        acts = []
        for at in draw_times(self._rng, per_day=self._per_day, days=self._days, near=near):
            (what,) = self._rng.choices(("wake", "event", "storm", "settings"), (4, 8, 2, 1))
            if what != "settings" or self._is_alone:
                acts.append(Act(at, NAME, what, self._rng.random()))
        return acts

    def figures(self) -> Mapping[str, int]:
        heard = {"events heard": len(self._heard), "scheduled events heard": len(self._heard_of)}
        return {"turns": len(self._turns), "events raised": self._named, **heard}

    def next_text(self) -> str:
        """What an event says: different each time."""
        self._named += 1
        return f"e{self._named}"

    def draw_reply(self, fire: Fire) -> str | None:
        """What the agent says in the end."""
        return self._rng.choice(("HEARTBEAT_OK", "", reply_of(fire.run_id), None))

    async def read_notes(self) -> str | None:
        """HEARTBEAT.md, which people fill, empty and remove."""
        return self._file.choice((None, "- look around", "# Nothing so far", ""))

    def draw_terms(self) -> HeartbeatTerms:
        """Other settings."""
        self.terms = replace(self.terms, enabled=self._rng.random() < 0.8, every=self._draw_every())
        return self.terms

    def _draw_every(self) -> Duration:
        return self._rng.choice((self._pace, 2 * self._pace, 3 * self._pace + MINUTE))

    # -- what the agent sees ------------------------------------------------------------------------------------------

    def told(self, fire: Fire, texts: frozenset[str], boot: Boot) -> None:
        """A turn begins, and says this."""
        self._world.say(lambda: f"{boot.name}: turn {fire.run_id} tells {sorted(texts)}")
        if boot.disturbed_at < self._world.loop.now_ms:  # else it stood still between its claim and this
            for text in sorted(text for text in texts if text[0] == "e"):  # a schedule says the same each time
                self._world.report(list(laws.is_told_once(text, self._heard)))

    def answered(self, fire: Fire, texts: frozenset[str]) -> None:
        """The agent has taken it in."""
        self._told[fire.run_id] = texts

    # -- what the store says ------------------------------------------------------------------------------------------

    def look(
        self, touched: Mapping[str, frozenset[int]], runs: Mapping[int, Run], *, now: Instant, pruned_before: Instant
    ) -> Iterator[str]:
        tx = self._world.seen_tx
        if EVENT in touched:
            yield from self._judge_events(tx, touched[EVENT])
        yield from self._judge_event_runs(tx, runs)
        for owner_id in touched.get(ALARM_HEARTBEAT, ()):
            yield from self._judge_standing(tx, owner_id, now)

    def _judge_events(self, tx: Tx, touched: frozenset[int]) -> Iterator[str]:
        known, self._events = self._events, {event.event_id: event for event in tx[WaitingEvents].all()}
        for event_id, before in known.items():
            after = self._events.get(event_id)
            if after is not None:
                yield from laws.is_replaced_by_its_own(before, after)
                continue
            run = None if before.run_id is None else tx.runs.lock([before.run_id]).get(before.run_id)
            if run is not None and laws.is_cancelled(run):
                yield from laws.cancelled_means_untold(before, run)
                continue
            turn = None if before.carried_by is None else tx.runs.lock([before.carried_by]).get(before.carried_by)
            told = frozenset() if turn is None else self._told.get(turn.run_id, frozenset())
            yield from laws.leaves_when_heard(before, turn, told, waiting=len(known.keys() | touched))
            is_heard = laws.was_heard(before, turn, told)
            if before.run_id is not None:
                if is_heard:
                    self._heard_of.add(before.run_id)
                yield from laws.ends_with_its_event(before, run, is_heard=is_heard)
            elif is_heard:
                self._heard.add(before.text)

    def _judge_event_runs(self, tx: Tx, runs: Mapping[int, Run]) -> Iterator[str]:
        """A schedule's event is green only when the agent has heard it, and withdrawn if its run is cancelled."""
        for run in runs.values():
            if laws.is_cancelled(run):
                yield from laws.cancelled_is_withdrawn(run, tx[WaitingEvents].of_run(run.run_id))
            if run.kind == "schedule" and run.outcome == "succeeded" and run.run_id not in self._heard_of:
                schedule = tx.schedules.by_ids([run.schedule_id]).get(run.schedule_id)
                if schedule is not None and is_event(schedule.slug):
                    yield from laws.green_means_heard(run)

    def _judge_standing(self, tx: Tx, owner_id: int, now: Instant) -> Iterator[str]:
        after = tx[Heartbeats].lock([owner_id]).get(owner_id)
        cadence = tx.cadences.lock([owner_id]).get(owner_id)
        if after is None or cadence is None:
            return
        self._forget_if_skipped(tx)
        born = list(self._born(tx, owner_id, cadence.open_run_id))
        for turn in born:
            if self._world.stepped_at != self._counted_since:  # what lies on another clock is not of the same hour
                self._counted_since, self._births = self._world.stepped_at, []
            self._births.append(now)
            self._last_born = turn.run_id
            yield from laws.is_within_budget(self._births, self.terms.beats.turns_per_hour_max, now=now)
            yield from laws.window_is_waited_for(turn, now=now)
        if self._heartbeat is not None:
            yield from laws.wakes_become_turns(self._heartbeat, after, born)
        alarm = tx.alarms.by_refs(ALARM_HEARTBEAT, [owner_id]).get(owner_id)
        yield from laws.has_its_alarm(after, cadence, alarm, self.terms.beats)
        yield from laws.is_forward(cadence, timing_of(after), self.terms.beats.hours)
        self._heartbeat = after
        self._due_at = None if alarm is None or alarm.due_at is None else max(alarm.due_at, now)

    def _forget_if_skipped(self, tx: Tx) -> None:
        """A beat for which nobody was asked uses up nothing of the budget."""
        turn = None if self._last_born is None else tx.runs.lock([self._last_born]).get(self._last_born)
        if turn is not None and not turn.is_open:
            self._last_born = None
            if turn.reason == NOTHING_TO_DO and self._births:
                self._births.pop()

    def _born(self, tx: Tx, owner_id: int, open_run_id: int | None) -> Iterator[Run]:
        """The turn that this commit brought forth: there is one at most."""
        if open_run_id is None or open_run_id in self._turns:
            return
        self._turns.add(open_run_id)
        turn = tx.runs.lock([open_run_id]).get(open_run_id)
        if turn is not None and turn.kind == TURN and turn.schedule_id == owner_id and turn.outcome not in NOT_RUN:
            yield turn

    def ticked(self, *, now: Instant, is_asleep: bool, ahead_max: Duration) -> Iterator[str]:
        if self._due_at is not None and self._heartbeat is not None:
            every = self._heartbeat.every
            yield from laws.is_not_silent(self._due_at, every, now=now, is_asleep=is_asleep, ahead_max=ahead_max)

    def last_look(self) -> Iterator[str]:
        there = {event.event_id: event for event in self._world.seen_tx[WaitingEvents].all()}
        if there != self._events:
            yield f"L7 heartbeat: its events changed unnoticed: {self._events} are now {there}"


class HeartbeatTenant:
    """The real heartbeat on one boot."""

    def __init__(self, beating: Beating, boot: Boot) -> None:
        self._beating = beating
        self._boot = boot
        self._feature = HeartbeatFeature(beating.terms, notes=beating.read_notes)
        self._context: FeatureContext | None = None

    async def plug(self, context: FeatureContext) -> FeatureHooks:
        self._context = context
        self._feature.terms = self._beating.terms
        return await plug_heartbeat(self._feature, context)

    async def act(self, act: Act) -> None:
        match act.what:
            case "wake":
                await self._wake(act.draw, None)
            case "event":
                await self._wake(act.draw, self._beating.next_text())
            case "storm":
                for _ in range(5):
                    await self._wake(act.draw, self._beating.next_text())
                    await self._boot.clock.sleep(int(act.draw * 400))
            case "settings":
                await self._feature.follow(self._beating.draw_terms())

    async def _wake(self, draw: float, text: str | None) -> None:
        context = self._context
        assert context is not None
        now = context.clock.read().now
        reason = REASONS[int(draw * 997) % len(REASONS)]
        key = None if draw < 0.6 else f"key-{int(draw * 7919) % 3}"
        is_own = int(draw * 101) % 3 == 0
        await context.store.write(
            lambda tx: request_wake(
                tx, reason, now=now, apply=context.apply, text=text, context_key=text and key, is_own=is_own
            )
        )
        context.ring_bell()
