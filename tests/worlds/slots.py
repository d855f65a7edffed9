"""Quota slots as an inhabitant: keys whose windows begin when they are woken, at a provider that fails and hangs."""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wakeful.app.bootstrap import FeatureContext
from wakeful.config.one_slot import read_slot
from wakeful.config.slots import AnySlot
from wakeful.core.run.runs import Run
from wakeful.core.slot.slot import ReadFailure, Reading, Slot
from wakeful.core.time.instants import HOUR, INSTANT_MAX, SECOND, Duration, Instant, format_duration, format_optional
from wakeful.core.time.timing import Times
from wakeful.features.quota import queries
from wakeful.features.quota.feature import Quota
from wakeful.features.quota.gate import SlotsOfRun
from wakeful.features.quota.registry import Config, SlotRegistry
from wakeful.features.quota.rows import OWNER, WAKE
from wakeful.features.quota.upcoming import UpcomingWakes
from wakeful.features.schedules.upcoming import waiting_runs
from wakeful.ports.action import Action, Fire, Ladder
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.owners import Owners
from wakeful.ports.quota import WakeFailure
from wakeful.ports.slots import ALARM_POLL, ALARM_WAKE, QuotaSlots
from wakeful.ports.store import Alarm, Tx
from worlds import disabling_laws, told_laws
from worlds import slot_laws as laws
from worlds.inhabitants import Act, Boot, Surroundings, Touch, draw_times
from worlds.tiling_laws import Line

NAME: Final = "slots"
SLOT: Final = "slot"
NAMES: Final = ("main", "spare")
WINDOW: Final[Duration] = 5 * HOUR
POLL: Final[Duration] = 3 * HOUR
BACKOFF_CAP: Final[Duration] = 6 * HOUR
LISTED: Final = 6
READ_EVERY: Final = 4
"""What is upcoming costs more than a fact: it is compared after one change of a slot in so many."""

Mood: TypeAlias = Literal["normal", "down", "deaf", "wrong"]
"""`down`: nothing arrives. `deaf`: takes wakes and shows none. `wrong`: refuses whatever it is asked."""


class Account:
    """One key at the provider. Its clock is the wall's: what it says is judged by those who have the same."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.mood: Mood = "normal"
        self.reset_at: Instant | None = None
        self.is_excused = False  # since its window began somebody was told nothing of it, or woke it by hand
        self.cold_since = 0  # true times, all of these
        self.began_at = 0
        self.trouble_at = 0
        self.allowed_at = 0  # when it was last let go on after it had been switched off
        self.read_at = 0
        self.tried_at = 0  # when a wake was last sent, arrived or not
        self.wakes = 0
        self.arrivals: dict[int, int] = {}  # of each run

    def is_warm(self, now: Instant) -> bool:
        return self.reset_at is not None and self.reset_at > now


class Answering(NamedTuple):
    """How the provider takes one request."""

    manner: Literal["answers", "fails", "hangs", "loses the answer"]
    takes: Duration


def draw_answering(rng: random.Random) -> Answering:
    dice = rng.random()
    takes = rng.choice((0, 100, SECOND, 10 * SECOND)) + rng.randrange(100)
    if dice < 0.88:
        return Answering("answers", takes)
    return Answering("fails" if dice < 0.93 else "hangs" if dice < 0.95 else "loses the answer", takes)


class SimProvider:
    """The provider port on one boot."""

    can_wake = True
    has_statistics = False

    def __init__(self, keys: "Keys", account: Account, boot: Boot) -> None:
        self.mark = f"mark-{account.name}"
        self._keys = keys
        self._account = account
        self._boot = boot

    async def read(self, action: str) -> Reading | ReadFailure:
        keys, account = self._keys, self._account
        manner, takes = draw_answering(keys.rng)
        await self._boot.clock.sleep(takes)
        found = keys.read(account, self._boot, is_reached=manner == "answers" and account.mood != "down")
        if manner == "hangs":
            await asyncio.Event().wait()
        return found

    async def wake(self, action: str, fire: Fire, ladder: Ladder) -> WakeFailure | None:
        keys, account = self._keys, self._account
        manner, takes = draw_answering(keys.rng)
        began_at = keys.true_now
        keys.begun(fire, self._boot)
        await self._boot.clock.sleep(takes)
        account.tried_at = keys.true_now
        if manner == "fails" or account.mood == "down":
            keys.troubled(account)
            return WakeFailure("connection refused", is_unreachable=True)
        if account.mood == "wrong":
            keys.troubled(account)
            return WakeFailure("HTTP 400")
        keys.woken(account, fire, self._boot, began_at)
        if manner == "hangs":
            await asyncio.Event().wait()
        return WakeFailure("the connection broke", is_unreachable=True) if manner == "loses the answer" else None

    async def statistics(self, reading: Reading, *, now: Instant) -> Mapping[str, Any] | ReadFailure:
        return ReadFailure("unreadable", "there are none")

    async def close(self) -> None:
        """Nothing is held."""


class Keys:
    """The slots of a world, and the accounts behind them."""

    name = NAME
    touches: Sequence[Touch] = (Touch("slots", SLOT, "slot_id"),)

    def __init__(
        self, rng: random.Random, world: Surroundings, *, days: float, per_day: float, lease: Duration, folder: Path
    ) -> None:
        self.rng = rng
        self._world = world
        self._days = days
        self._per_day = per_day
        self.interval = rng.choice((HOUR, 3 * HOUR))
        self._patience = 2 * self.interval + 2 * HOUR + 3 * lease  # until whoever died over it has lost it
        self.accounts = {name: Account(name) for name in NAMES}
        self.config = Config({name: self._define(name, folder) for name in NAMES})
        self._slots: dict[int, Slot] = {}
        self._lines: dict[int, Line] = {}  # the rows of each slot, by its owner id
        self._since: dict[str, Instant] = {}  # the times of day before were never planned
        self._sent: set[tuple[int, int]] = set()  # attempts whose wake was recorded as sent
        self._alarms: dict[tuple[str, int], tuple[Alarm, Instant]] = {}
        self._boots: list[Boot] = []
        self._looks = 0
        self._registry: SlotRegistry | None = None  # of readers: nothing is asked of its providers

    def _define(self, name: str, folder: Path) -> AnySlot:
        written: dict[str, Any] = {
            "apiKey": f"key-{name}",
            "interval": format_duration(self.interval),
            "poll": format_duration(POLL),
            "backoffCap": format_duration(BACKOFF_CAP),
            "timezone": "UTC",
            "errorsMax": self.rng.choice((2, 4, 10)),
        }
        if self.rng.random() < 0.5:
            written["times"] = ["01:00", "06:00", "11:30", "16:00", "20:30"]
        if self.rng.random() < 0.5:
            written["afterReset"] = "1m"
        return read_slot(name, written, home=folder, environ={})

    # -- life ---------------------------------------------------------------------------------------------------------

    def move_in(self, boot: Boot) -> "SlotsTenant":
        self._boots = [one for one in self._boots if one.is_alive] + [boot]
        self._registry = SlotRegistry(
            self.config,
            lambda name, _: SimProvider(self, self.accounts[name], boot),
            lambda name, _: self.config.slots[name],
        )
        return SlotsTenant(self, boot)

    def actions(self, _: Boot, __: Action) -> Mapping[type[Any], Action]:
        return {}

    def draw_acts(self, near: Sequence[int]) -> list[Act]:
        acts = []
        for at in draw_times(self.rng, per_day=self._per_day / 2, days=self._days, near=near):
            (what,) = self.rng.choices(("use", "mood", "wake", "poll", "resume"), (4, 4, 2, 2, 3))
            acts.append(Act(at, NAME, what, self.rng.random()))
        return acts

    def figures(self) -> Mapping[str, int]:
        return {"slot wakes": sum(account.wakes for account in self.accounts.values())}

    # -- what the provider sees ---------------------------------------------------------------------------------------

    def now(self, account: Account) -> Instant:
        """The time, and what it means for an account: a window cannot be longer than it is."""
        now = self._world.wall.read()
        if account.reset_at is not None and account.reset_at > now + WINDOW:
            account.reset_at = None  # it began on a clock that was wrong
            account.cold_since = self._world.loop.now_ms
        if account.reset_at is not None and account.reset_at <= now:
            account.reset_at = None
            account.cold_since = self._world.loop.now_ms
        return now

    def read(self, account: Account, boot: Boot, *, is_reached: bool) -> Reading | ReadFailure:
        """The quota is asked for."""
        self.now(account)
        account.read_at = self._world.loop.now_ms
        self._world.say(lambda: f"{boot.name}: slot {account.name} is read: {is_reached}, {account.reset_at}")
        if not is_reached:
            self.troubled(account)
            return ReadFailure("unreachable", "connection refused")
        if account.mood == "wrong":
            self.troubled(account)
            return ReadFailure("unreadable", "HTTP 400")
        return Reading(10.0, None if account.mood == "deaf" else account.reset_at)

    def troubled(self, account: Account) -> None:
        """Somebody was not told how it stands."""
        account.is_excused = True
        account.trouble_at = self._world.loop.now_ms

    @property
    def true_now(self) -> int:
        return self._world.loop.now_ms

    def begun(self, fire: Fire, boot: Boot) -> None:
        """A wake goes out."""
        if boot.disturbed_at < self.true_now:
            run = self._world.seen_tx.runs.lock([fire.run_id]).get(fire.run_id)
            self._world.report(list(disabling_laws.is_recorded_before_it_goes_out(fire.slug, run, fire.run_id)))

    def woken(self, account: Account, fire: Fire, boot: Boot, began_at: int) -> None:
        """A wake arrives that was sent at `began_at`, true time."""
        now = self.now(account)
        account.wakes += 1
        account.arrivals[fire.run_id] = account.arrivals.get(fire.run_id, 0) + 1
        self._world.say(lambda: f"{boot.name}: slot {account.name} is woken by run {fire.run_id}: {account.mood}")
        is_excused = account.is_excused or fire.trigger == "manual" or not boot.is_undisturbed(account.began_at)
        until = account.reset_at if account.is_warm(now) and self._world.stepped_at < account.began_at else None
        found = list(laws.is_woken_once(account.name, fire.idempotency_key, until=until, is_excused=is_excused))
        if boot.is_undisturbed(began_at):
            run = self._world.seen_tx.runs.lock([fire.run_id]).get(fire.run_id)
            found += laws.belongs_to_a_run(account.name, run, fire.run_id, account.arrivals[fire.run_id])
        self._world.report(found)
        if account.mood == "deaf":
            self.troubled(account)
        elif not account.is_warm(now):
            self.begin_window(account, is_excused=False)

    def begin_window(self, account: Account, *, is_excused: bool) -> None:
        """It runs from now on."""
        account.reset_at = self.now(account) + WINDOW
        account.began_at, account.is_excused = self._world.loop.now_ms, is_excused

    # -- what the store says ------------------------------------------------------------------------------------------

    def look(
        self, touched: Mapping[str, frozenset[int]], runs: Mapping[int, Run], *, now: Instant, pruned_before: Instant
    ) -> Iterator[str]:
        tx = self._world.seen_tx
        yield from self._judge_runs(tx, runs)
        ids = {ref for kind in (SLOT, ALARM_WAKE, ALARM_POLL) for ref in touched.get(kind, ())}
        for slot_id, slot in tx[QuotaSlots].lock(sorted(ids)).items() if ids else ():
            before = self._slots.get(slot_id)
            self._slots[slot_id] = slot
            yield from self._judge_slot(tx, before, slot, now, pruned_before)
            self._looks += 1
            if self._looks % READ_EVERY == 0:
                yield from self._read_next(tx, slot, now)

    def _read_next(self, tx: Tx, slot: Slot, now: Instant) -> Iterator[str]:
        """What a slot and the list of what is upcoming say about its next wake."""
        assert self._registry is not None
        ahead = UpcomingWakes(self._registry)(tx, now=now, until=INSTANT_MAX, limit=LISTED)
        ahead += waiting_runs(tx, now=now, until=INSTANT_MAX, limit=LISTED)
        first = min((item.due_at for item in ahead if item.slug == f"{OWNER}{slot.name}"), default=None)
        shown = format_optional(queries.view(tx, self._registry, slot, now=now).next_wake)
        if first is None and len(ahead) >= LISTED:
            return  # others come before it
        yield from told_laws.next_start_is_the_first(f"slot {slot.name}", shown, format_optional(first))

    def _judge_runs(self, tx: Tx, runs: Mapping[int, Run]) -> Iterator[str]:
        """Before the slots are looked at: what they were until this commit counts."""
        now = self._world.wall.read()
        for line in self._lines.values():
            ahead = line.ahead(now)
            there = tx.runs.lock(ahead) if ahead else {}
            for run_id in ahead:
                if run_id not in there:
                    line.forget(run_id)  # voided, because the clock went back
        wakes = [run for run in runs.values() if run.kind == WAKE]
        owners = tx[Owners].names({run.schedule_id for run in wakes}) if wakes else {}
        known = {f"{OWNER}{slot.name}": slot for slot in self._slots.values()}
        for run in wakes:
            line = self._lines.setdefault(run.schedule_id, Line(owners.get(run.schedule_id, "")))
            if run.trigger != "manual":
                # Only missed times are on a grid. Of what was skipped in a row, the first is known; a wake serves what
                # became due until it was sent, and a skipped one until that was decided.
                last = None if run.outcome == "missed" else run.planned_at
                decided_at = run.ended_at if run.outcome == "skipped" else run.started_at
                reach = max(run.planned_until or 0, decided_at or 0)
                yield from line.note(run, last=last, reach=reach, grid=self._times(line.name.removeprefix(OWNER)))
            slot = known.get(owners.get(run.schedule_id, ""))
            is_new = (run.run_id, run.attempt) not in self._sent
            if run.outcome == "running" and run.rung == "sent" and is_new:
                self._sent.add((run.run_id, run.attempt))
                yield from disabling_laws.is_not_sent_when_disabled(slot, run)

    def _times(self, name: str) -> Times | None:
        written = self.config.slots[name].times
        return Times(written, "UTC") if written else None

    def _judge_times(self, tx: Tx, slot: Slot, now: Instant, pruned_before: Instant) -> Iterator[str]:
        """Each time of day that is decided lies in a row: what was due before it and together with it is one wake."""
        # When the clock goes back, what lies before the moment in which that was noticed is taken as decided.
        since = min(self._since.get(slot.name, slot.times_through), slot.times_through)
        if slot.wake_disabled_at is not None or slot.disabled_at is not None:
            since = slot.times_through  # nothing is planned meanwhile
        self._since[slot.name] = since
        line = next((one for one in self._lines.values() if one.name == f"{OWNER}{slot.name}"), None)
        times = self._times(slot.name)
        if times is not None and line is not None and slot.wake_run_id is None:
            through = min(slot.times_through, now)
            yield from line.is_covered(times, through=through, since=max(since, pruned_before))

    def _judge_slot(
        self, tx: Tx, before: Slot | None, slot: Slot, now: Instant, pruned_before: Instant
    ) -> Iterator[str]:
        yield from laws.keeps_one_run(slot, self._open_run(slot))
        sent_by = None if slot.sent_run_id is None else tx.runs.lock([slot.sent_run_id]).get(slot.sent_run_id)
        yield from disabling_laws.disabled_waits_for_nothing(slot, sent_by)
        if before is not None and (before.disabled_at is not None or before.wake_disabled_at is not None):
            self.accounts[slot.name].allowed_at = self.true_now
        yield from self._judge_times(tx, slot, now, pruned_before)
        if before is not None:
            is_clock_back = now < max(before.interval_from, before.times_through)
            yield from laws.markers_go_forward(before, slot, is_clock_back=is_clock_back)
        for kind in (ALARM_WAKE, ALARM_POLL):
            alarm = tx.alarms.by_refs(kind, [slot.slot_id]).get(slot.slot_id)
            if alarm is None:
                self._alarms.pop((kind, slot.slot_id), None)
            else:
                self._alarms[kind, slot.slot_id] = (alarm, now)

    def ticked(self, *, now: Instant, is_asleep: bool, ahead_max: Duration) -> Iterator[str]:
        if not is_asleep:
            return
        for (kind, slot_id), (alarm, since) in self._alarms.items():
            yield from laws.is_not_silent(self._slots[slot_id].name, kind, alarm, since, now=now)
        awake_since = min(
            (max(boot.began_at, boot.disturbed_at) for boot in self._boots if boot.is_alive and not boot.is_still),
            default=None,
        )
        if awake_since is None:
            return
        true = self._world.loop.now_ms
        for slot in self._slots.values():
            account = self.accounts[slot.name]
            self.now(account)
            calm_since = max(awake_since, account.trouble_at, account.allowed_at, self._world.stepped_at)
            if slot.disabled_at is None:
                since = max(calm_since, account.read_at)
                yield from laws.is_read_in_the_end(slot.name, true - since, max(BACKOFF_CAP, 4 * POLL) + HOUR)
            if slot.wake_disabled_at is None and slot.disabled_at is None and account.reset_at is None:
                since = max(calm_since, account.cold_since)
                yield from laws.is_woken_in_the_end(slot.name, true - since, self._patience)
            # A pause that was reckoned on another clock is shifted as exactly as its height was noted.
            is_on_this_clock = self._world.stepped_at < account.tried_at
            if slot.unsent and is_on_this_clock and slot.wake_disabled_at is None and slot.disabled_at is None:
                since = max(calm_since, account.tried_at)
                yield from laws.is_sent_after_an_outage(slot.name, self._open_run(slot), true - since)

    def _open_run(self, slot: Slot) -> Run | None:
        run_id = slot.wake_run_id
        return None if run_id is None else self._world.seen_tx.runs.lock([run_id]).get(run_id)

    def last_look(self) -> Iterator[str]:
        return iter(())


class SlotsTenant:
    """The real slots on one boot."""

    def __init__(self, keys: Keys, boot: Boot) -> None:
        self._keys = keys
        self._boot = boot
        self._quota: Quota | None = None
        self._context: FeatureContext | None = None

    async def plug(self, context: FeatureContext) -> FeatureHooks:
        keys, self._context = self._keys, context
        self._quota = quota = Quota(
            context.store,
            context.clock,
            store_id=context.store_id,
            ring_bell=context.ring_bell,
            apply=context.apply,
            slot_of=lambda *_: SlotsOfRun(),
            config=keys.config,
            make_provider=lambda name, _: SimProvider(keys, keys.accounts[name], self._boot),
            read_slot=lambda name, _: keys.config.slots[name],
        )
        # Without the watch: it looks every five minutes, and would put right what must not go wrong.
        return quota.plug()._replace(services=[quota])

    async def act(self, act: Act) -> None:
        quota, keys = self._quota, self._keys
        assert quota is not None
        name = NAMES[int(act.draw * 997) % len(NAMES)]
        account = keys.accounts[name]
        match act.what:
            case "use":
                if account.mood == "normal" and not account.is_warm(keys.now(account)):
                    keys.begin_window(account, is_excused=True)  # nobody here could know
            case "mood":
                account.mood = ("normal", "normal", "down", "down", "deaf", "wrong")[int(act.draw * 7919) % 6]
                keys.troubled(account)
            case "wake":
                account.is_excused = True
                await self._command(quota.commands.wake, name)
            case "poll":
                await self._command(quota.commands.poll, name)
            case "resume":
                account.mood = "normal"
                keys.troubled(account)
                await self._command(quota.commands.resume, name)

    async def _command(self, command: Callable[..., Any], name: str) -> None:
        assert self._context is not None
        store, now = self._context.store, self._context.clock.read().now
        await store.write(lambda tx: command(tx, name, now=now))
        self._context.ring_bell()
