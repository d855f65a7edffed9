"""A provider of quota for tests: one model of how accounts behave, spoken to in process or over a real HTTP server.

An `Account` is one key. Its `mood` says how it behaves; what it answers is a status and a body, as over HTTP, and both
ways of asking read that with the product's own code. `quota_server` serves the same accounts on a loopback port.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

from features.kit import Bench, World, short
from patience import PATIENCE
from wakeful.app.bootstrap import FeatureContext
from wakeful.app.options import Host
from wakeful.app.quota import slot_of
from wakeful.config.one_slot import read_slot
from wakeful.config.slots import AnySlot
from wakeful.config.slots import Quota as QuotaTable
from wakeful.core.slot.slot import FailureKind, ReadFailure, Reading
from wakeful.core.time.instants import HOUR, SECOND, Instant, parse_duration
from wakeful.features.quota.feature import Quota
from wakeful.features.quota.queries import SLOT
from wakeful.features.quota.registry import Config
from wakeful.integrations.providers.keys import Key
from wakeful.integrations.providers.reading import glm_reading
from wakeful.ports.action import Fire, Ladder
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.quota import WakeFailure, wake_failure

WINDOW = 5 * HOUR
MONTH = {"type": "TIME_LIMIT", "unit": 5, "number": 1, "usage": 1000, "currentValue": 10, "remaining": 990}


class Answer(NamedTuple):
    status: int
    body: str
    pause: int = 0


class Account:
    """One key at the provider.

    Moods: `normal` (cold until woken, then warm for a window), `never` (takes wakes, shows none), `stale` (goes on
    showing the reset it had), `down` (HTTP 500), `refused` (HTTP 401), `wrong` (HTTP 400), `broken` (no JSON), `empty`
    (no limits), `far` (a reset a century ahead), `slow` (answers after a minute), `throttled` (HTTP 429 to wakes).
    """

    def __init__(self, now: Callable[[], Instant], *, window: int = WINDOW, percentage: float = 0) -> None:
        self._now = now
        self.window = window
        self.percentage = percentage
        self.mood = "normal"
        self.wake_mood: str | None = None  # how wakes go, if not as the mood says
        self.months_first = True
        self.reset_at: Instant | None = None
        self.woken: list[Instant] = []
        self.tried: list[Instant] = []  # wakes that arrived, taken or not
        self.reads: list[Instant] = []
        self.stats = 0
        self.keys: list[str] = []

    @property
    def is_warm(self) -> bool:
        return self.reset_at is not None and self.reset_at > self._now()

    @property
    def wakes(self) -> list[str]:
        return [short(at) for at in self.woken]

    def warm(self, length: str) -> None:
        """As after somebody's own request: the window ends so far from now."""
        self.reset_at = self._now() + parse_duration(length)

    def quota(self) -> Answer:
        self.reads.append(self._now())
        trouble = self._trouble(self.mood)
        if trouble is not None:
            return trouble
        if self.mood == "broken":
            return Answer(200, "<html>no JSON</html>")
        if self.mood == "empty":
            return Answer(200, json.dumps({"code": 200, "data": {"limits": []}}))
        tokens: dict[str, Any] = {"type": "TOKENS_LIMIT", "unit": 3, "number": 5, "percentage": self.percentage}
        if self.mood == "far":
            tokens["nextResetTime"] = self._now() + 100 * 365 * 24 * HOUR
        elif self.reset_at is not None and (self.is_warm or self.mood == "stale"):
            tokens["nextResetTime"] = self.reset_at
        month = {**MONTH, "nextResetTime": self._now() + 20 * 24 * HOUR}
        limits = [month, tokens] if self.months_first else [tokens, month]
        body = {"code": 200, "msg": "ok", "success": True, "data": {"level": "pro", "limits": limits}}
        return Answer(200, json.dumps(body), 60 * SECOND if self.mood == "slow" else 0)

    def wake(self, key: str) -> Answer:
        self.tried.append(self._now())
        self.keys.append(key)
        mood = self.wake_mood or self.mood
        trouble = self._trouble(mood)
        if trouble is not None:
            return trouble
        if mood == "throttled":
            return Answer(429, '{"error": {"message": "too many requests"}}')
        self.woken.append(self._now())
        if mood not in ("never", "stale") and not self.is_warm:
            self.reset_at = self._now() + self.window
        return Answer(200, '{"choices": []}')

    def usage(self, path: str) -> Answer:
        self.stats += 1
        total = {"totalModelCallCount": 12, "totalTokensUsage": 3400, "totalNetworkSearchCount": 2}
        trouble = self._trouble(self.mood)
        return trouble or Answer(200, json.dumps({"code": 200, "data": {"totalUsage": total}}))

    def _trouble(self, mood: str) -> Answer | None:
        if mood == "down":
            return Answer(500, "out of order")
        if mood == "wrong":
            return Answer(400, "no such plan")
        if mood == "refused":
            return Answer(401, '{"error": {"message": "this key is not known: sk-main"}}')
        return None


class InProcess:
    """The provider port over accounts, without a network: what is asked takes `takes` of virtual time."""

    can_wake = True

    def __init__(self, shop: "Shop", key: str) -> None:
        self._shop = shop
        self._key = Key([key])
        self._name = key
        self.mark = self._key.mark("in process")
        self.has_statistics = shop.has_statistics

    async def read(self, action: str) -> Reading | ReadFailure:
        answer = await self._answer(lambda account: account.quota())
        if isinstance(answer, ReadFailure):
            return answer
        try:
            data = json.loads(answer.body)
        except ValueError:
            data = None
        return glm_reading(data, self._shop.now())

    async def wake(self, action: str, fire: Fire, ladder: Ladder) -> WakeFailure | None:
        answer = await self._answer(lambda account: account.wake(fire.idempotency_key))
        return wake_failure(answer) if isinstance(answer, ReadFailure) else None

    async def statistics(self, reading: Reading, *, now: Instant) -> Mapping[str, Any] | ReadFailure:
        answer = await self._answer(lambda account: account.usage(""))
        return answer if isinstance(answer, ReadFailure) else {"day": {"calls": 12}}

    async def close(self) -> None: ...

    async def _answer(self, ask: Callable[[Account], Answer]) -> Answer | ReadFailure:
        self._shop.under_way += 1
        self._shop.under_way_max = max(self._shop.under_way_max, self._shop.under_way)
        try:
            await self._shop.sleep(self._shop.takes)
            if self._shop.is_unreachable:
                return ReadFailure("unreachable", "the provider: connection refused")
            answer = ask(self._shop.account(self._name))
            await self._shop.sleep(answer.pause)
        finally:
            self._shop.under_way -= 1
        if answer.status in (401, 403):
            return self._key.clean(ReadFailure("refused", f"the key was refused (HTTP {answer.status}): {answer.body}"))
        if answer.status != 200:
            kind: FailureKind = "unreachable" if answer.status >= 500 else "unreadable"
            return ReadFailure(kind, f"HTTP {answer.status}: {answer.body}")
        return answer


class Shop:
    """All accounts of a provider, by key."""

    def __init__(self, world: World, *, takes: int = 100) -> None:
        self._world = world
        self.takes = takes
        self.accounts: dict[str, Account] = {}
        self.is_unreachable = False
        self.true_since: int | None = None
        self.has_statistics = False
        self.under_way = 0
        self.under_way_max = 0

    def now(self) -> Instant:
        """The provider's own clock: the world's wall, unless that is wrong in this test."""
        return self._world.now if self.true_since is None else self.true_since + int(self._world.loop.time() * 1000)

    def go_by_true_time(self) -> None:
        """From here on the wall may be wrong; the provider's clock is not."""
        self.true_since = self._world.now - int(self._world.loop.time() * 1000)

    async def sleep(self, duration: int) -> None:
        if duration:
            await self._world.clock.sleep(duration)

    def account(self, key: str) -> Account:
        return self.accounts.setdefault(key, Account(self.now))


class Opened(NamedTuple):
    app: Bench
    quota: Quota

    async def slot(self, name: str = "main") -> dict[str, Any]:
        """A slot as REST shows it."""
        return SLOT.write(await self.app.slots.get(name))

    async def slots(self) -> list[dict[str, Any]]:
        return [SLOT.write(slot) for slot in (await self.app.slots.list()).slots]

    async def rows(self, name: str = "main") -> list[str]:
        """The wakes of a slot in the ledger, oldest first."""
        return [
            f"{short(row.planned_at)} {row.outcome}"
            + (f" ({row.reason})" if row.reason else "")
            + (f" x{row.count}" if row.count > 1 else "")
            for row in reversed(await self.app.runs(f"slot:{name}", limit=1000))
        ]


def config(world: World, slots: Mapping[str, Mapping[str, Any]], **quota: Any) -> Config:
    """Settings with these slots, in JSON names; a slot's key is `sk-NAME` unless given."""
    read = {
        name: read_slot(name, {"apiKey": f"sk-{name}", **data}, home=world.path.parent) for name, data in slots.items()
    }
    return Config(read, QuotaTable(**quota), "UTC", "wakeful.toml")


async def open_quota(world: World, shop: Shop, given: Config, **options: Any) -> Opened:
    """An app with the feature plugged in, over the shop's accounts."""
    made: list[Quota] = []

    def make_provider(name: str, slot: AnySlot) -> InProcess:
        key = getattr(slot, "api_key", None)
        return InProcess(shop, f"sk-{name}" if key is None else key.reveal())

    async def feature(context: FeatureContext) -> FeatureHooks:
        quota = Quota(
            context.store,
            context.clock,
            store_id=context.store_id,
            ring_bell=context.ring_bell,
            apply=context.apply,
            slot_of=slot_of(context.compilations),
            config=given,
            make_provider=make_provider,
            read_slot=lambda name, data: read_slot(name, data, home=world.path.parent),
        )
        made.append(quota)
        return quota.plug()

    app = await world.open(features=[feature], host=Host(quota=lambda: made[0]), **options)
    return Opened(app, made[0])


# --- over HTTP -----------------------------------------------------------------------------------------------------


class Served(NamedTuple):
    url: str
    accounts: dict[str, Account]
    heard: list[tuple[str, str, Mapping[str, str]]]

    def account(self, key: str) -> Account:
        return self.accounts[key]


@asynccontextmanager
async def quota_server(accounts: dict[str, Account]) -> AsyncIterator[Served]:
    """The same accounts behind the provider's own paths, on a real port."""
    heard: list[tuple[str, str, Mapping[str, str]]] = []
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _serve(reader, writer, accounts, heard)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(handle(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield Served(f"http://127.0.0.1:{port}", accounts, heard)
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def quota_server_beside(accounts: dict[str, Account]) -> Iterator[Served]:
    """The same in a thread of its own, for tests that wait for processes."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="quota-server")
    thread.start()
    serving = quota_server(accounts)
    try:
        yield asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result(10)
    finally:
        asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


async def _serve(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    accounts: Mapping[str, Account],
    heard: list[tuple[str, str, Mapping[str, str]]],
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = head[0].split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:]) if value}
    await reader.readexactly(int(headers.get("content-length", 0)))
    heard.append((method, path, headers))
    key = headers.get("authorization", "").removeprefix("Bearer ")
    account = accounts.get(key)
    if account is None:
        answer = Answer(401, json.dumps({"error": {"message": f"unknown key {key}"}}))
    elif path.startswith("/api/monitor/usage/quota/limit"):
        answer = account.quota()
    elif path.startswith("/api/monitor/usage/"):
        answer = account.usage(path)
    elif path.startswith("/api/coding/paas/v4/chat/completions"):
        answer = account.wake(headers.get("idempotency-key", ""))
    else:
        answer = Answer(404, "nothing here")
    if answer.pause:
        await asyncio.sleep(answer.pause / 1000)
    body = answer.body.encode()
    writer.write(f"HTTP/1.1 {answer.status} X\r\nContent-Type: application/json\r\n".encode())
    writer.write(f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    await writer.drain()
