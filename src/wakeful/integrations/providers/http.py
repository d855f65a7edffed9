"""A provider whose quota is available as JSON at a URL."""

from collections.abc import Mapping
from typing import Any

from wakeful.config.slots import HttpSlot
from wakeful.core.slot.slot import ReadFailure, Reading
from wakeful.core.time.instants import Instant
from wakeful.integrations.net.exchange import Exchanges, Request, Response
from wakeful.integrations.providers.glm import ask
from wakeful.integrations.providers.keys import Key
from wakeful.integrations.providers.reading import plain_reading
from wakeful.ports.action import Fire, Ladder
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import RequestContext
from wakeful.ports.quota import WakeFailure, wake_failure


class HttpProvider:
    """A slot read by GET and woken by POST."""

    has_statistics = False

    def __init__(self, slot: str, written: HttpSlot, key: Key, *, exchanges: Exchanges, clock: Clock) -> None:
        self._slot = slot
        self._written = written
        self._key = key
        self._exchanges = exchanges
        self._clock = clock
        self.can_wake = written.wake_url is not None
        self.mark = key.mark("http", written.quota_url, written.wake_url or "")

    async def read(self, action: str) -> Reading | ReadFailure:
        request = Request("GET", self._written.quota_url, {**self._key.header(), "Accept": "application/json"})
        answer = await ask(self._exchanges, request, RequestContext(action, slot=self._slot), self._key, self._clock)
        if isinstance(answer, ReadFailure):
            return answer
        now = self._clock.read().now
        reading = plain_reading(await answer.json(), self._written.percentage_key, self._written.reset_key, now)
        return reading if isinstance(reading, Reading) else self._key.clean(reading)

    async def wake(self, action: str, fire: Fire, ladder: Ladder) -> WakeFailure | None:
        headers = {
            **self._key.header(),
            "Content-Type": "application/json",
            "Idempotency-Key": fire.idempotency_key,
        }
        body = (self._written.wake_body or "{}").encode()
        request = Request("POST", self._written.wake_url or "", headers, body)
        answer = await ask(self._exchanges, request, RequestContext(action, slot=self._slot), self._key, self._clock)
        return None if isinstance(answer, Response) else wake_failure(answer)

    async def statistics(self, reading: Reading, *, now: Instant) -> Mapping[str, Any] | ReadFailure:
        return ReadFailure("unreadable", "this provider has no statistics")

    async def close(self) -> None:
        await self._exchanges.close()
