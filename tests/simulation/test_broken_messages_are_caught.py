"""Messages from people, events and prompts of schedules, channels that are missing: each protection is taken away once,
and within a few worlds the judge must say which law was broken."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampling import sampled
from simulation.breaking import caught, is_sound
from wakeful.core.run.effects import Deliver
from wakeful.core.run.results import Done
from wakeful.core.time.instants import DAY, HOUR, MINUTE, Instant
from wakeful.features.delivery import listening as hearing
from wakeful.features.delivery.attempts import Attempts
from wakeful.features.delivery.listening import ChannelReceiver
from wakeful.features.heartbeat import events as heartbeat_events
from wakeful.features.heartbeat.events import EventAction
from wakeful.features.heartbeat.messages import MessageRuns
from wakeful.features.schedules import replies
from wakeful.ports.channel import IncomingMessage
from wakeful.ports.heartbeats import WaitingEvents
from wakeful.ports.meta import Meta
from wakeful.ports.outbox import Delivery
from wakeful.ports.store import SystemEvent, Tx
from worlds import heartbeat_laws
from worlds.faults import Climate

Patch = pytest.MonkeyPatch
SEEDS = range(6)

TALK = Climate(
    days=1, outages_per_day=2, steps_per_day=2, deeds_per_day=40, crash_per_commit=0.02, outage_max=DAY // 4,
    schedules=8, pace=2 * HOUR, inhabitants=frozenset({"outbox", "heartbeat"}),
)  # fmt: skip
CROWDED = replace(TALK, deeds_per_day=150, schedules=12, pace=20 * MINUTE)
CRASHING = replace(TALK, crash_per_commit=0.1)
PAGED = replace(TALK, outages_per_day=0, crash_per_commit=0, inhabitants=frozenset({"outbox"}))


def marks_are_set_before_messages_are_kept(patch: Patch) -> None:
    """How far a channel was listened to is written first: a death in between loses the message."""
    take = ChannelReceiver.hear

    async def hear(self: ChannelReceiver, heard: IncomingMessage) -> None:
        await self._store.write(lambda tx: tx[Meta].set(hearing._mark(self._name), heard.mark))
        self.mark = heard.mark
        await take(self, heard)

    patch.setattr(ChannelReceiver, "hear", hear)


def nothing_is_said_without_a_reply(patch: Patch) -> None:
    """A person whose message got no reply is told nothing."""
    answer = MessageRuns._answer

    def silent(self: MessageRuns, *given: Any) -> Any:
        close, effects = answer(self, *given)
        return close, tuple(one for one in effects if not (isinstance(one, Deliver) and one.is_note))

    patch.setattr(MessageRuns, "_answer", silent)


def replies_go_to_the_wrong_person(patch: Patch) -> None:
    """Whoever asked, the other one is answered."""
    answer = MessageRuns._answer

    def crossed(self: MessageRuns, *given: Any) -> Any:
        close, effects = answer(self, *given)
        return close, tuple(one if not isinstance(one, Deliver) else replace(one, to="bob") for one in effects)

    patch.setattr(MessageRuns, "_answer", crossed)


def events_are_green_at_once(patch: Patch) -> None:
    """A schedule's event counts as done when it is queued."""
    perform = EventAction.perform

    async def green(self: EventAction, *given: Any) -> Any:
        entrusted = await perform(self, *given)
        return Done(effects=entrusted.effects) if hasattr(entrusted, "effects") else entrusted

    patch.setattr(EventAction, "perform", green)


def evicted_events_leave_no_trace(patch: Patch) -> None:
    """There is no room for an event any more, and the run that raised it is not told."""

    def forget(tx: Tx, event: SystemEvent, *_: Any) -> None:
        tx[WaitingEvents].remove_many([event.event_id])

    patch.setattr(heartbeat_events, "_drop", forget)


def missing_channels_are_not_reported(patch: Patch) -> None:
    """What is for a channel that is not there waits in silence."""
    miss = Attempts._miss

    def silent(self: Attempts, tx: Tx, head: Delivery, now: Instant) -> Instant:
        patch.setattr(self, "_apply", lambda *_: None)
        return miss(self, tx, head, now)

    patch.setattr(Attempts, "_miss", silent)


def missing_channels_end_their_letters(patch: Patch) -> None:
    """What is for a channel that is not there is given up at once."""

    def give_up(self: Attempts, tx: Tx, head: Delivery, now: Instant) -> Instant:
        self._dead_letter(tx, head, "there is no such channel", now)
        return now

    patch.setattr(Attempts, "_miss", give_up)


def prompts_without_a_reply_say_nothing(patch: Patch) -> None:
    """A schedule with `deliver` whose turn gave no reply does not say so."""
    patch.setattr(replies, "_no_reply", lambda *_: replies.Reply(suppressed=replies.NO_REPLY))


@pytest.fixture(autouse=True)
def little_room(monkeypatch: Patch) -> None:
    """Few events may wait, so that some are evicted."""
    monkeypatch.setattr(heartbeat_events, "EVENTS_MAX", 3)
    monkeypatch.setattr(heartbeat_laws, "EVENTS_MAX", 3)


@pytest.mark.parametrize("climate", sampled([TALK, CROWDED, PAGED], every=3))
def test_the_worlds_are_sound_before_they_are_broken(climate: Climate, tmp_path: Path) -> None:
    """Else what is found below would prove nothing."""
    assert is_sound(climate, tmp_path, SEEDS[:1])


@pytest.mark.parametrize(
    ("sabotage", "law", "climate"),
    sampled(
        [
            pytest.param(marks_are_set_before_messages_are_kept, "L7 messages", CRASHING, id="marks before messages"),
            pytest.param(nothing_is_said_without_a_reply, "L8 messages", TALK, id="no reply, nothing said"),
            pytest.param(replies_go_to_the_wrong_person, "L8 messages", TALK, id="replies to the wrong person"),
            pytest.param(events_are_green_at_once, "L8 heartbeat", TALK, id="events green at once"),
            pytest.param(evicted_events_leave_no_trace, "L8 heartbeat", CROWDED, id="evicted events leave no trace"),
            pytest.param(missing_channels_are_not_reported, "L9 outbox", PAGED, id="missing channels not reported"),
            pytest.param(missing_channels_end_their_letters, "L7 outbox", PAGED, id="missing channels end letters"),
            pytest.param(prompts_without_a_reply_say_nothing, "L8 outbox", TALK, id="prompts without a reply"),
        ],
        every=8,
        offset=1,
    ),
)
def test_a_broken_law_is_caught_and_named(
    sabotage: Callable[[Patch], None], law: str, climate: Climate, monkeypatch: Patch, tmp_path: Path
) -> None:
    """Within a few seeds, and by its number."""
    found = caught(sabotage, climate, tmp_path, SEEDS, monkeypatch)
    assert found is not None, f"a few worlds, and nothing was noticed: {sabotage.__doc__}"
    assert f"  {law}" in found, found
