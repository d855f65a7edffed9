"""Crashes at every commit, on the real engine and the real SQLite store: nothing is lost, nothing happens twice.

A world has an outside, where side effects are seen to happen, and a person who looks there before saying what became of
an uncertain one. After every commit the tables are held against the rules; at the end every message that was ever
answered as published must have happened outside exactly once.
"""

import asyncio
import random
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from features.kit import Bench, Tap, World
from new_store import prepare
from sampling import sampled
from wakeful import Context, Prepare, Produced, Publish, Transient, every
from wakeful.app import bootstrap
from wakeful.stores.sqlite.store import SqliteStore
from wakeful.stores.sqlite.writer import Crashed
from wakeful.testing.virtual_loop import run

STATUSES = {
    None: {"pending"},
    "pending": {"pending", "reserved"},
    "reserved": {"pending", "reserved", "consumed", "skipped"},
    "consumed": {"consumed"},
    "skipped": {"skipped"},
}


class Fate:
    """Which commits a node dies of, before or after they are durable."""

    def __init__(self, crashes: dict[int, str]) -> None:
        self.crashes = crashes
        self.commits = 0

    def draw(self) -> str | None:
        self.commits += 1
        return self.crashes.get(self.commits)


class Judge:
    """Looks at the tables after every commit."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[tuple[str, str], str] = {}

    def look(self) -> None:
        connection = sqlite3.connect(self._path)
        try:
            self._look(connection)
        finally:
            connection.close()

    def _look(self, connection: sqlite3.Connection) -> None:
        (open_run_id,) = connection.execute("SELECT open_run_id FROM workflows").fetchone() or (None,)
        opened = connection.execute(
            "SELECT run_id FROM runs WHERE outcome IN ('running', 'waiting') AND kind <> 'schedule'"
        ).fetchall()
        assert [run_id for (run_id,) in opened] == ([] if open_run_id is None else [open_run_id])
        rows = connection.execute("SELECT topic, message_id, status, run_id, seq FROM messages").fetchall()
        for topic, message_id, status, run_id, _ in rows:
            before = self._known.get((topic, message_id))
            assert status in STATUSES[before], f"{message_id} went from {before} to {status}"
            assert status != "reserved" or run_id == open_run_id, f"{message_id} is reserved by nobody"
            self._known[topic, message_id] = status
        assert len(rows) == len(self._known), "a message is gone"
        published = dict(connection.execute("SELECT name, published FROM topics"))
        assert all(seq <= published[topic] for topic, _, _, _, seq in rows)


class Mortal(Bench):
    """An app that dies of commits."""

    fate: Fate
    judge: Judge

    def group_size(self, waiting: int) -> int:
        return waiting

    def before_commit(self) -> None:
        self._drawn = self.fate.draw()
        if self._drawn == "before":
            self.machine.kill()
            raise Crashed

    def after_commit(self) -> None:
        self.judge.look()
        if self._drawn == "after":
            self.machine.kill()
            raise Crashed

    async def _open_store(self, url: str) -> bootstrap.Opened:
        prepare(Path(url))
        self.tap = Tap(SqliteStore.open_inline(Path(url), hook=self, shared_clock=False))
        return bootstrap.Opened(self.tap, self.clock, bootstrap.POLL)


class Story:
    """One world: `poll` → mail → `deliver` → receipts → `file`, an outside, a person, and nodes that die."""

    def __init__(self, world: World, seed: int, fate: Fate, *, is_rough: bool) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.fate = fate
        self.judge = Judge(world.path)
        self.is_rough = is_rough
        self.happened: Counter[str] = Counter()  # message ids, by what was seen outside
        self.keys: set[str] = set()  # side effects that happened
        self.filed: Counter[str] = Counter()
        self.published: set[str] = set()  # ids whose publication was answered
        self.found = 0
        self.answers: Counter[str] = Counter()
        self.bench: Mortal | None = None

    async def start(self) -> None:
        """A node; one that dies while it starts is followed by another."""
        while True:
            bench = Mortal(self.world)
            bench.fate, bench.judge = self.fate, self.judge
            self.world._benches.append(bench)
            self._declare(bench)
            starting = asyncio.ensure_future(bench.start())
            while not starting.done() and bench.machine.is_alive:
                await self.world.clock.sleep(10)
            if bench.machine.is_alive:
                await starting
                self.bench = bench
                return
            bench.machine.reap()  # what waits for it outside waits for ever, as a shell would for a lost terminal
            assert bench.tap is not None
            await bench.tap.close()
            await self.world.clock.sleep(self.rng.randrange(1, 2_000))

    async def live(self, until: int) -> None:
        """Let time pass; who dies is buried and followed; the person looks in now and then."""
        while self.world.now < until:
            await self.world.clock.sleep(self.rng.randrange(500, 5_000))
            assert self.bench is not None
            if not self.bench.machine.is_alive:
                await self.bench.kill()
                await self.world.clock.sleep(self.rng.randrange(1, 20_000))
                await self.start()
            await self._ask(self._decide())

    async def publish(self, message_id: str) -> None:
        """Until it is answered: whoever got no answer asks again under the same id."""
        while message_id not in self.published:
            assert self.bench is not None
            flow = self.bench.workflow("post")
            if await self._ask(flow.publish("mail", message_id, 1)) is not None:
                self.published.add(message_id)
            await self.live(self.world.now + 1)

    async def _ask(self, asking: Any) -> Any:
        """The answer, or None if the node dies over it."""
        bench = self.bench
        assert bench is not None
        if not bench.machine.is_alive:
            asking.close()
            return None
        task = bench.machine.start(asking)
        while not task.done() and bench.machine.is_alive:
            await self.world.clock.sleep(1)
        return task.result() if task.done() else None

    async def _decide(self) -> str:
        """The person looks outside, and says what became of it."""
        assert self.bench is not None
        flow = self.bench.workflow("post")
        view = await flow.get()
        if view["error"] is None:
            return "fine"
        waiting = view["openRun"]
        if waiting is None or waiting["awaits"] != "uncertain":
            await flow.resume()
            return "resumed"
        key_end = f"-{waiting['runId']}-"
        is_done = any(key_end in key for key in self.keys)
        choice = "skip" if is_done else self.rng.choice(["retry", "didNotHappen"])
        self.answers[choice] += 1
        await flow.resolve(int(waiting["runId"]), choice)
        return choice

    def _declare(self, bench: Bench) -> None:
        flow = bench.workflow("post")

        @flow.producer(every("1m"), publishes=["mail"], timeout="20s")
        async def poll(ctx: Context) -> Produced:
            await self._take_time()
            n = (ctx.state or {"n": 0})["n"] + 1
            if n > 4:
                return Produced()
            return Produced([Publish("mail", f"found-{n}", n)], state={"n": n})

        @flow.consumer(subscribe=["mail"], publishes=["receipts"], timeout="20s")
        async def deliver(ctx: Context) -> Prepare:
            if ctx.dry_run:
                return Prepare()
            await self._take_time()
            shown = ctx.messages["mail"]
            soon = "2020-01-01T00:00:00Z"  # as soon as may be
            if shown and self.is_rough and self.rng.random() < 0.2:
                return Prepare(wake_at=soon)
            taken = shown[: self.rng.randrange(1, 3)]
            ids = [one.id for one in taken]
            return Prepare({"mail": ids}, data=ids, wake_at=soon if len(shown) > len(taken) else None)

        @deliver.mutate
        async def send(ctx: Context) -> None:
            await self._take_time()
            if ctx.idempotency_key not in self.keys:  # as a target does that knows the key
                self.keys.add(ctx.idempotency_key)
                self.happened.update(ctx.prepared["data"])
            await self._take_time(ConnectionResetError("it broke off"))

        @deliver.next
        async def receipt(ctx: Context) -> Produced:
            await self._take_time()
            return Produced([Publish("receipts", f"r-{one}", one) for one in ctx.prepared["data"] or ()])

        @flow.consumer(subscribe=["receipts"], timeout="20s")
        async def file(ctx: Context) -> Prepare:
            if ctx.dry_run:
                return Prepare()
            await self._take_time()
            ids = [one.id for one in ctx.messages["receipts"]]
            return Prepare({"receipts": ids} if ids else {}, data=ids)

        @file.next
        async def filed(ctx: Context) -> Produced:
            return Produced(state={"n": len(ctx.prepared.get("data") or ())})

    async def _take_time(self, trouble: Exception | None = None) -> None:
        chance = self.rng.random()
        if self.is_rough and chance < 0.1:
            raise trouble or Transient("not now")
        if self.is_rough and chance < 0.13:
            await self.world.clock.sleep(60_000)  # longer than it may
        if chance < 0.6:
            await self.world.clock.sleep(self.rng.randrange(1, 3_000))

    def verify(self) -> None:
        """Everything that was published has happened, once, and left nothing behind."""
        connection = sqlite3.connect(self.world.path)
        try:
            rows = connection.execute("SELECT topic, message_id, status FROM messages").fetchall()
        finally:
            connection.close()
        mail = {message_id: status for topic, message_id, status in rows if topic == "mail"}
        assert self.published | {f"found-{n}" for n in range(1, 5)} == set(mail)
        assert set(mail.values()) <= {"consumed", "skipped"}, mail
        assert {one: self.happened[one] for one in mail} == dict.fromkeys(mail, 1)
        receipts = {message_id: status for topic, message_id, status in rows if topic == "receipts"}
        assert set(receipts) == {f"r-{one}" for one in mail}
        assert set(receipts.values()) == {"consumed"}


async def tell(world: World, seed: int, fate: Fate, *, is_rough: bool, messages: int) -> Story:
    """One world from its start to its calm end."""
    story = Story(world, seed, fate, is_rough=is_rough)
    await story.start()
    for n in range(messages):
        await story.publish(f"given-{n}")
        await story.live(world.now + story.rng.randrange(1, 40_000))
    minutes = 5 if is_rough else 2
    await story.live(world.now + minutes * 60_000)
    story.is_rough = False
    fate.crashes = {}
    await story.live(world.now + 2 * minutes * 60_000)
    assert story.bench is not None
    await story.bench.stop()
    return story


def world_of(folder: Path, seed: int, crashes: dict[int, str], *, is_rough: bool = False, messages: int = 2) -> Story:
    """Run a world, and hold it against the rules."""
    fate = Fate(crashes)
    told: list[Story] = []

    async def begin() -> None:
        told.append(await tell(World(folder), seed, fate, is_rough=is_rough, messages=messages))

    try:
        folder.mkdir()
        run(begin())
        told[0].verify()
    except BaseException as error:
        raise AssertionError(f"seed {seed}, crashes {crashes}: {type(error).__name__}: {error}") from error
    return told[0]


WORK = 76
"""How many commits of the quiet world are tried: all that its work takes, and then some."""


def test_the_quiet_world_has_as_many_commits(tmp_path: Path) -> None:
    """Otherwise the last crashes below would not happen."""
    assert world_of(tmp_path / "world", 1, {}).fate.commits >= WORK


@pytest.mark.parametrize(
    ("commit", "when"),
    sampled([(commit, when) for commit in range(1, WORK + 1) for when in ("before", "after")], every=36, offset=4),
)
def test_a_crash_at_every_commit(tmp_path: Path, commit: int, when: str) -> None:
    """The same quiet world, dying once, before or after one of the commits that its work takes is durable."""
    world_of(tmp_path / "world", 1, {commit: when})


@pytest.mark.parametrize("seed", sampled(range(12), every=12))
def test_many_crashes_in_a_rough_world(tmp_path: Path, seed: int) -> None:
    """Handlers that fail, take too long and decline, and a node that dies again and again."""
    rng = random.Random(seed)
    crashes = {rng.randrange(1, 300): rng.choice(["before", "after"]) for _ in range(8)}
    world_of(tmp_path / "world", seed, crashes, is_rough=True, messages=4)


def test_the_judge_sees_a_message_that_is_consumed_twice_or_lost(tmp_path: Path) -> None:
    """The checks themselves: each rule that they keep, broken by hand, is noticed."""
    story = world_of(tmp_path / "world", 3, {})
    for sql in (
        "UPDATE messages SET status = 'pending' WHERE status = 'consumed'",
        "UPDATE messages SET status = 'reserved', run_id = 99999",
        "DELETE FROM messages WHERE topic = 'mail'",
        "UPDATE topics SET published = 0",
    ):
        copy = tmp_path / "copy.db"
        copy.unlink(missing_ok=True)
        source, target = sqlite3.connect(story.world.path), sqlite3.connect(copy)
        source.backup(target)
        story.judge._path = copy
        story.judge.look()
        with target:
            target.execute(sql)
        target.close()
        source.close()
        with pytest.raises(AssertionError):
            story.judge.look()
    story.happened["found-1"] += 1
    with pytest.raises(AssertionError):
        story.verify()
