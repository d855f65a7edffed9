"""People who write to the agent on a channel, what the agent said, and what they were told in the end."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from wakeful.core.run.results import Busy, Done, Failed, Result
from wakeful.core.run.runs import Run
from wakeful.core.time.instants import HOUR, SECOND, Duration
from wakeful.features.delivery.listening import NO_AGENT
from wakeful.features.heartbeat.messages import MESSAGE
from wakeful.ports.action import Fire
from wakeful.ports.channel import IncomingMessage, MessageReceiver
from wakeful.ports.meta import Meta
from wakeful.ports.outbox import Deliveries, Delivery
from wakeful.ports.store import Tx
from worlds import conversation_laws as laws
from worlds.inhabitants import Boot, Surroundings
from worlds.performers import reply_of

CHANNEL: Final = "phone"
SPEAKERS: Final = ("ann", "bob")
MARK: Final = f"heard:{CHANNEL}"
PATIENCE: Final[Duration] = 4 * HOUR
"""Three tries of ten minutes, waits for a busy agent, and other turns in the agent's lane."""


class Spoken(NamedTuple):
    """What a person wrote."""

    number: int
    to: str
    text: str


class Conversations:
    """Everything that people wrote, in the order in which the service has it."""

    def __init__(self, rng: random.Random, world: Surroundings, *, lease: Duration) -> None:
        self._rng = rng
        self._world = world
        self._patience = PATIENCE + 3 * lease
        self._spoken: list[Spoken] = []
        self._bells: list[tuple[Boot, asyncio.Event]] = []
        self._runs: dict[str, Run] = {}  # by text
        self._open: dict[int, int] = {}  # open runs, and since when in true time
        self._closed: set[int] = set()
        self._stuck: set[int] = set()  # runs of any kind: they keep their lanes, and their part of the capacity
        self._stuck_until = -1  # true time
        self._refused: Counter[str] = Counter()  # by person: told that no agent is here
        self._replies: dict[int, set[str | None]] = {}  # by run: what the agent said
        self._boots: list[Boot] = []

    # -- outside ------------------------------------------------------------------------------------------------------

    def move_in(self, boot: Boot) -> None:
        self._boots = [one for one in self._boots if one.is_alive] + [boot]

    def say(self, draw: float) -> None:
        """A person writes something."""
        number = len(self._spoken) + 1
        self._spoken.append(Spoken(number, SPEAKERS[int(draw * 997) % 2], f"message {number}"))
        self._bells = [(boot, bell) for boot, bell in self._bells if boot.is_alive]
        for _, bell in self._bells:
            bell.set()

    async def listen(self, mark: str | None, ear: MessageReceiver, boot: Boot) -> None:
        """The service: gives everything after the mark, in order."""
        bell = asyncio.Event()
        self._bells.append((boot, bell))
        number = int(mark or 0)
        while True:
            bell.clear()
            while number < len(self._spoken):
                one = self._spoken[number]
                await ear.hear(IncomingMessage(str(one.number), one.to, one.text))
                number += 1
            await bell.wait()

    async def answer(self, fire: Fire, boot: Boot) -> Result:
        """The agent takes its turn for a message."""
        await boot.clock.sleep(self._rng.randrange(20 * SECOND))
        chance = self._rng.random()
        if chance < 0.1:
            return Failed("the agent failed")
        if chance < 0.2:
            return Busy("the agent is busy")
        if chance < 0.25:
            await boot.clock.sleep(HOUR)  # longer than it may
        reply = self._rng.choice((reply_of(fire.run_id), reply_of(fire.run_id), "", None))
        self._replies.setdefault(fire.run_id, set()).add(reply)
        return Done(reply=reply)

    def figures(self) -> dict[str, int]:
        """What it came to."""
        return {"messages heard": len(self._runs) + self._refused.total(), "messages answered": len(self._closed)}

    # -- what the store says ------------------------------------------------------------------------------------------

    def look(self, tx: Tx, runs: Mapping[int, Run], letters: Sequence[Delivery]) -> Iterator[str]:
        """Runs and letters were written."""
        for run in runs.values():
            if run.stuck:
                self._stuck.add(run.run_id)
            elif run.run_id in self._stuck:
                self._stuck.remove(run.run_id)
                self._stuck_until = self._world.loop.now_ms
        messages = [run for run in runs.values() if run.kind == MESSAGE]
        for run in messages:
            yield from self._look_at_run(tx, run)
        for row in letters:
            if row.run_id in self._closed:
                yield from self._judge_answer(tx, row.run_id)
            if row.run_id is None and row.purpose == "note" and NO_AGENT in row.text and row.recipient is not None:
                self._refused[row.recipient] += 1
        if messages or any(NO_AGENT in row.text for row in letters):
            heard = int(tx[Meta].value(MARK) or 0)
            yield from laws.each_is_taken_once(heard, len(self._runs) + self._refused.total())

    def _look_at_run(self, tx: Tx, run: Run) -> Iterator[str]:
        said = json.loads(run.definition or "{}")
        text = str(said.get("text"))
        known = self._runs.setdefault(text, run)
        yield from laws.has_one_run(text, known, run)
        yield from laws.is_of_its_speaker(said, {(one.to, one.text) for one in self._spoken})
        if run.is_open:
            self._open.setdefault(run.run_id, self._world.loop.now_ms)
        else:
            self._open.pop(run.run_id, None)
            self._closed.add(run.run_id)
            yield from self._judge_answer(tx, run.run_id)

    def _judge_answer(self, tx: Tx, run_id: int) -> Iterator[str]:
        run = tx.runs.lock([run_id]).get(run_id)
        if run is not None:
            to = json.loads(run.definition or "{}").get("to")
            rows = tx[Deliveries].of_runs([run_id]).get(run_id, ())
            yield from laws.is_answered_once(run, CHANNEL, to, rows, self._replies.get(run_id, set()))

    def ticked(self) -> Iterator[str]:
        """A node has looked at its clock."""
        if self._stuck:
            return
        calm = [max(boot.began_at, boot.disturbed_at) for boot in self._boots if boot.is_alive and not boot.is_still]
        since = max([self._world.stepped_at, self._stuck_until, *calm])
        for run_id, open_since in self._open.items():
            waits_for = self._world.loop.now_ms - max(since, open_since)
            yield from laws.is_answered_in_the_end(run_id, waits_for, self._patience)

    def last_look(self) -> Iterator[str]:
        """The world ends: what was heard of is there."""
        heard = int(self._world.seen_tx[Meta].value(MARK) or 0)
        yield from laws.each_is_taken_once(heard, len(self._runs) + self._refused.total())
