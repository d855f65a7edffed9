"""The outbox as an inhabitant: people who send, receivers that fail, hang and lie, and what really arrived."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from wakeful.app.bootstrap import FeatureContext
from wakeful.core.delivery.retries import DeliveryLimits
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.run.runs import Run
from wakeful.core.time.instants import DAY, HOUR, SECOND, Duration, Instant
from wakeful.features.delivery import commands
from wakeful.features.delivery.feature import plug
from wakeful.features.delivery.registry import LAST, ChannelRegistry
from wakeful.features.schedules.replies import NO_REPLY
from wakeful.integrations.channels.inbox import InboxChannel
from wakeful.ports.action import Action
from wakeful.ports.channel import MessageReceiver, Outcome, OutgoingMessage, Refused, Sent, Unsent
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.live import Live
from wakeful.ports.outbox import ALARM_DELIVERY, ALARM_INCIDENT, Addressees, Deliveries, Delivery
from wakeful.ports.store import Tx
from worlds import mark_laws
from worlds import outbox_laws as laws
from worlds.conversations import CHANNEL, Conversations
from worlds.inhabitants import Act, Boot, Surroundings, Touch, draw_times
from worlds.outbox_laws import ASKED_MAX, Answer, Sending
from worlds.pager import PAGED_MAX, Pager
from worlds.performers import output_of, reply_of
from worlds.system import PAGER, addressees_for, is_turn
from worlds.trouble import TOUCH as TROUBLE
from worlds.trouble import Troubles

T = TypeVar("T")

NAME: Final = "outbox"
CHANNELS: Final = (CHANNEL, "mail")
PEOPLE: Final = (None, "ann", "bob")
LETTER: Final = "letter"
ACK_TOKEN: Final = "HEARTBEAT_OK"

Manner: TypeAlias = Literal["sent", "unsent", "raises", "refused", "asks", "lies", "hangs", "hangs after it"]


class Reception(NamedTuple):
    """How a receiver takes one letter."""

    manner: Manner
    takes: Duration


def draw_reception(rng: random.Random) -> Reception:
    """Most letters arrive; the rest is every kind of trouble."""
    dice = rng.random()
    takes = rng.choice((0, 10, SECOND)) + rng.randrange(200)
    if dice < 0.66:
        return Reception("sent", takes if dice < 0.5 else rng.randrange(5 * SECOND, 49 * SECOND))
    manners: tuple[Manner, ...] = ("unsent", "raises", "refused", "asks", "lies", "hangs", "hangs after it")
    return Reception(rng.choices(manners, (5, 2, 1, 2, 2, 1, 2))[0], takes)


class SimChannel:
    """A channel on one boot; everybody behind it is the world's."""

    kind = "simulated"
    address = ""
    to: str | None = None

    def __init__(self, outbox: "Outbox", boot: Boot, inbox: InboxChannel | None = None) -> None:
        self._outbox = outbox
        self._boot = boot
        self._inbox = inbox  # the real one, only watched

    async def send(self, letter: OutgoingMessage) -> Outcome:
        outbox = self._outbox
        sending = outbox.began(letter, self._boot)
        answer: Answer = "cut off"
        try:
            if self._inbox is not None:
                outcome, answer = await self._inbox.send(letter), "sent"
                outbox.arrived(sending)
                return outcome
            manner, takes = draw_reception(outbox.rng)
            await self._boot.clock.sleep(takes)
            if manner in ("sent", "lies", "hangs after it"):
                outbox.arrived(sending)
            outcome, answer = await self._answer(manner)
            return outcome
        except OSError:
            answer = "raised"
            raise
        finally:
            outbox.answered(sending, answer)

    async def _answer(self, manner: Manner) -> tuple[Outcome, Answer]:
        match manner:
            case "sent":
                return Sent(), "sent"
            case "refused":
                return Refused("it is not wanted"), "refused"
            case "raises":
                raise OSError("the line broke")
            case "asks":
                now = self._boot.clock.read().now
                return Unsent("later", now + self._outbox.rng.randrange(ASKED_MAX)), "unsent"
            case "hangs" | "hangs after it":
                await asyncio.Event().wait()
        return Unsent("it did not work"), "unsent"  # a lie, if it arrived

    async def close(self) -> None:
        """Nothing is held."""


class SimPhone(SimChannel):
    """A channel on which people write, too."""

    async def listen(self, mark: str | None, ear: MessageReceiver) -> None:
        await self._outbox.conversations.listen(mark, ear, self._boot)

    def is_allowed(self, sender: str) -> bool:
        return True


class _Entry:
    """What is known of one delivery."""

    __slots__ = ("begun", "marks", "row", "sendings", "was_dead")

    def __init__(self, row: Delivery) -> None:
        self.row: Delivery | None = row
        self.sendings: list[Sending] = []
        self.begun = 0  # attempts since a person last took it up
        self.marks = 0  # commits that marked it, since then
        self.was_dead = False


class Outbox:
    """The outbox of a world: what was accepted, what went out, what arrived."""

    name = NAME
    touches: Sequence[Touch] = (
        Touch("deliveries", LETTER, "delivery_id"),
        Touch("addressees", ALARM_DELIVERY, "addressee_id"),
        TROUBLE,
    )

    def __init__(
        self,
        rng: random.Random,
        world: Surroundings,
        troubles: Troubles,
        conversations: Conversations,
        *,
        days: float,
        per_day: float,
        is_heard: bool = True,
    ) -> None:
        self.rng = rng
        self.limits = DeliveryLimits(
            retries_max=rng.choice((1, 3, 5)),
            recovery_budget=rng.choice((0, 60 * SECOND)),
            age_max=rng.choice((HOUR, DAY)),
        )
        self.troubles = troubles
        self.conversations = conversations
        self.pager = Pager(world)
        self.is_heard = is_heard  # whether people write on a channel
        self.asked: set[int] = set()  # deliveries that a person is about to retry or discard
        self._arrivals = 0
        self._world = world
        self._days = days
        self._per_day = per_day
        self._entries: dict[int, _Entry] = {}
        self._newest: dict[tuple[str, str | None], int] = {}  # the newest that arrived, by addressee
        self._under_way: dict[tuple[str, str | None], list[Sending]] = {}
        self._fences: dict[int, int] = {}  # of each addressee, as last seen
        self._told: set[int] = set()  # runs that succeeded and were held against what they should have said
        self._due: dict[int, tuple[Delivery, Instant]] = {}  # what is first in line, by addressee, and its alarm

    # -- life ---------------------------------------------------------------------------------------------------------

    def move_in(self, boot: Boot) -> "OutboxTenant":
        self.troubles.move_in(boot)
        self.conversations.move_in(boot)
        tenant = OutboxTenant(self, boot)
        self.pager.move_in(boot, tenant.configure)
        return tenant

    def actions(self, _: Boot, __: Action) -> Mapping[type[Any], Action]:
        return {}

    def draw_acts(self, near: Sequence[int]) -> list[Act]:
        acts = []
        for at in draw_times(self.rng, per_day=self._per_day, days=self._days, near=near):
            (what,) = self.rng.choices(("send", "burst", "retry", "discard"), (10, 3, 2, 1))
            acts.append(Act(at, NAME, what, self.rng.random()))
        more = {"say": self.is_heard, "pager": self.is_heard and self._days <= PAGED_MAX}
        for what in (what for what, is_drawn in more.items() if is_drawn):
            times = draw_times(self.rng, per_day=self._per_day / 3, days=self._days, near=near)
            acts += [Act(at, NAME, what, self.rng.random()) for at in times]
        return acts

    def figures(self) -> dict[str, int]:
        """What it came to."""
        sent = sum(len(entry.sendings) for entry in self._entries.values())
        letters = {"deliveries": len(self._entries), "letters sent": sent, "letters arrived": self._arrivals}
        return {**letters, **self.troubles.figures(), **self.conversations.figures(), **self.pager.figures()}

    def pick(self, draw: float) -> int | None:
        """A delivery that a person might take up: one that is dead or waits."""
        open_ids = [number for number, entry in self._entries.items() if entry.row and entry.row.status != "delivered"]
        return open_ids[int(draw * len(open_ids))] if open_ids else None

    # -- what really happens ------------------------------------------------------------------------------------------

    def accepted(self, row: Delivery) -> None:
        """A person was told that it will be delivered."""
        if row.delivery_id not in self._entries:
            self._world.report([f"L7 outbox: {laws.describe(row)} was accepted, and is not there"])

    def began(self, letter: OutgoingMessage, boot: Boot) -> Sending:
        """A letter goes out."""
        sending = Sending(letter, boot, self._world.loop.now_ms)
        self._world.say(lambda: f"{boot.name}: {_number(letter)} goes out to {letter.channel}:{letter.to or ''}")
        self._world.report(list(self._judge_sending(sending)))
        return sending

    def arrived(self, sending: Sending) -> None:
        """It is there."""
        self._arrivals += 1
        sending.has_arrived = True
        letter, number = sending.letter, _number(sending.letter)
        place = (letter.channel, letter.to)
        entry = self._entries.get(number)
        if entry is not None and not any(one.has_arrived for one in entry.sendings if one is not sending):
            excused = entry.was_dead or not sending.boot.is_undisturbed(sending.began_at)
            self._world.report(list(laws.arrive_in_order(sending, number, self._newest.get(place, 0), excused)))
        self._newest[place] = max(self._newest.get(place, 0), number)

    def answered(self, sending: Sending, answer: Answer) -> None:
        """Its sender was told, or no longer listens."""
        sending.answer = answer
        sending.answered_at = self._world.loop.now_ms
        self._world.say(lambda: f"{sending.boot.name}: {_number(sending.letter)} is answered: {answer}")

    def _judge_sending(self, sending: Sending) -> Iterator[str]:
        letter, number = sending.letter, _number(sending.letter)
        entry = self._entries.get(number)
        if entry is None:
            yield f"L7 outbox: {letter.delivery_id} goes out, and is not in the store"
            return
        yield from laws.is_the_same_letter(sending, entry.sendings)
        yield from laws.repeats_have_a_cause(sending, entry.sendings)
        others = self._under_way.setdefault((letter.channel, letter.to), [])
        others[:] = [other for other in others if other.is_under_way]
        yield from laws.one_at_a_time(sending, others, stepped_at=self._world.stepped_at)
        others.append(sending)
        entry.sendings.append(sending)
        entry.begun += 1
        if sending.boot.disturbed_at < sending.began_at:  # else it stood still between its claim and this
            tx, row = self._world.seen_tx, entry.row
            if row is not None:
                addressee = tx[Addressees].lock([row.addressee_id])[row.addressee_id]
                yield from laws.is_first_in_line(sending, number, tx[Deliveries].head(row.addressee_id), addressee)
            yield from laws.tries_are_counted(sending, entry.begun, row)

    # -- what the store says ------------------------------------------------------------------------------------------

    def look(
        self, touched: Mapping[str, frozenset[int]], runs: Mapping[int, Run], *, now: Instant, pruned_before: Instant
    ) -> Iterator[str]:
        tx = self._world.seen_tx
        for run in runs.values():
            yield from self._judge_run(tx, run)
        self.troubles.look_at_runs(tx, runs, now)
        addressees = set(touched.get(ALARM_DELIVERY, ()))
        new: list[Delivery] = []
        for number in sorted(touched.get(LETTER, ())):
            row, entry = tx[Deliveries].get(number), self._entries.get(number)
            if row is not None:
                addressees.add(row.addressee_id)
            if entry is None:
                if row is not None:
                    self._entries[number] = _Entry(row)
                    self.troubles.look_at_letter(tx, row)
                    new.append(row)
                continue
            yield from self._judge_move(tx, entry, row, now, pruned_before)
            entry.row = row
        for number in sorted(touched.get(ALARM_INCIDENT, ())):
            yield from self.troubles.look_at_incident(tx, number)
        yield from self.conversations.look(tx, runs, new)
        if addressees:
            yield from self._judge_addressees(tx, sorted(addressees), now)

    def _judge_run(self, tx: Tx, run: Run) -> Iterator[str]:
        """A run that succeeded has told everyone its schedule names what it had to say, or that there was no reply."""
        if run.outcome != "succeeded" or run.schedule_id < 0 or run.run_id in self._told:
            return
        self._told.add(run.run_id)
        schedule = tx.schedules.by_ids([run.schedule_id]).get(run.schedule_id)
        wanted = None if schedule is None else addressees_for(schedule.slug)
        kept = json.loads(run.result or "{}")
        if schedule is None or not wanted:
            return
        listed = wanted if isinstance(wanted, list) else [wanted]
        named = frozenset((one["channel"], one.get("to")) for one in listed if one["channel"] != LAST)
        lasts = sum(one["channel"] == LAST for one in listed)
        rows = tx[Deliveries].of_runs([run.run_id]).get(run.run_id, ())
        if not is_turn(schedule.definition) and "output" in kept:
            yield from laws.run_tells_everyone_named(laws.Told(run.run_id, output_of(run.run_id), named, lasts), rows)
        elif kept.get("reply") == reply_of(run.run_id):
            yield from laws.run_tells_everyone_named(laws.Told(run.run_id, reply_of(run.run_id), named, lasts), rows)
        elif kept.get("suppressed") == NO_REPLY:
            yield from laws.says_that_there_is_no_reply(laws.Told(run.run_id, NO_REPLY, named, lasts), rows)

    def _judge_move(
        self, tx: Tx, entry: _Entry, row: Delivery | None, now: Instant, pruned_before: Instant
    ) -> Iterator[str]:
        before = entry.row
        if before is None:
            return
        is_asked = before.delivery_id in self.asked
        if row is None:
            yield from laws.leaves_by_hand_or_age(before, is_asked=is_asked, pruned_before=pruned_before)
            return
        yield from laws.moves_by_the_table(before, row, is_asked=is_asked)
        if row.status == "pending" and before.status == "dead":
            entry.begun = entry.marks = 0
        addressee = tx[Addressees].lock([row.addressee_id]).get(row.addressee_id)
        entry.marks += mark_laws.is_mark(before, row, self._fences.get(row.addressee_id), addressee)
        if row.status == before.status:
            return
        if row.status == "delivered":
            yield from laws.delivered_means_arrived(row, entry.sendings)
        elif row.status == "dead":
            entry.was_dead = True
            yield from laws.given_up_by_policy(row, entry.sendings, self.limits, now=now)
            yield from mark_laws.is_dead_before_its_time(row, entry.marks)

    def _judge_addressees(self, tx: Tx, numbers: Sequence[int], now: Instant) -> Iterator[str]:
        alarms = tx.alarms.by_refs(ALARM_DELIVERY, numbers)
        for number, row in tx[Addressees].lock(numbers).items():
            self._fences[number] = row.fence
            head, alarm = tx[Deliveries].head(number), alarms.get(number)
            yield from laws.has_its_alarm(row, head, alarm)
            if head is not None and alarm is not None and alarm.due_at is not None:
                self._due[number] = (head, max(alarm.due_at, now))  # one that was due before could not be known before
            else:
                self._due.pop(number, None)

    def ticked(self, *, now: Instant, is_asleep: bool, ahead_max: Duration) -> Iterator[str]:
        for head, due_at in self._due.values():
            yield from laws.is_not_silent(head, due_at, now=now, is_asleep=is_asleep, ahead_max=ahead_max)
        yield from self.troubles.ticked(now, ahead_max)
        yield from self.conversations.ticked()
        yield from self.pager.ticked(self._due.values(), now)

    def last_look(self) -> Iterator[str]:
        tx = self._world.seen_tx
        for number, entry in self._entries.items():
            if entry.row != tx[Deliveries].get(number):
                yield f"L7 outbox: delivery {number} changed unnoticed: {entry.row}"
        yield from self.conversations.last_look()


class OutboxTenant:
    """The real outbox on one boot, with virtual channels."""

    def __init__(self, outbox: Outbox, boot: Boot) -> None:
        self._outbox = outbox
        self._boot = boot
        self._registry = ChannelRegistry()
        self._phone = (SimPhone if outbox.is_heard else SimChannel)(outbox, boot)
        self._mail, self._pager = SimChannel(outbox, boot), SimChannel(outbox, boot)
        self._context: FeatureContext | None = None

    async def plug(self, context: FeatureContext) -> FeatureHooks:
        self._context = context
        self._registry.begin(SimChannel(self._outbox, self._boot, InboxChannel(context.store)))
        self.configure(has_pager=self._outbox.pager.is_there)
        return plug(
            context.store,
            context.clock,
            context.store_id,
            self._registry,
            Live(self._outbox.limits),
            Live(self._outbox.troubles.terms),
            ack_token=lambda: ACK_TOKEN,
            apply=context.apply,
            ring_bell=context.ring_bell,
        )

    def configure(self, *, has_pager: bool) -> None:
        """The settings are read: these channels are there."""
        channels: dict[str, SimChannel] = {CHANNEL: self._phone, "mail": self._mail}
        self._registry.configure({**channels, PAGER: self._pager} if has_pager else channels)

    async def act(self, act: Act) -> None:
        match act.what:
            case "say":
                self._outbox.conversations.say(act.draw)
            case "pager":
                self._outbox.pager.toggle()
            case "send":
                await self._send(act.draw)
            case "burst":
                for part in range(4):
                    await self._send(act.draw / (part + 1))
            case _:
                number = self._outbox.pick(act.draw)
                if number is not None:
                    await self._take_up(number, act.what)

    async def _send(self, draw: float) -> None:
        channel = (*CHANNELS, PAGER, None)[int(draw * 997) % 4]
        to = PEOPLE[int(draw * 7919) % 3]
        limits, registry = self._outbox.limits, self._registry
        row = await self._write(
            lambda tx, now: commands.send(
                tx, f"{draw}", channel, to, registry=registry, now=now, age_max=limits.age_max, ack_token=ACK_TOKEN
            )
        )
        self._outbox.accepted(row)

    async def _take_up(self, number: int, what: str) -> None:
        self._outbox.asked.add(number)
        age_max = self._outbox.limits.age_max
        try:
            if what == "retry":
                await self._write(lambda tx, now: commands.retry(tx, number, now=now, age_max=age_max))
            else:
                await self._write(lambda tx, now: commands.discard(tx, number, now=now))
        except (Conflict, NotFound):
            pass  # it arrived meanwhile, or somebody else discarded it
        self._outbox.asked.discard(number)

    async def _write(self, command: Callable[[Tx, Instant], T]) -> T:
        assert self._context is not None
        now = self._context.clock.read().now
        row = await self._context.store.write(lambda tx: command(tx, now))
        self._context.ring_bell()
        return row


def _number(letter: OutgoingMessage) -> int:
    return int(letter.delivery_id.partition(".")[0].rpartition("-")[2])
