"""Z.ai and BigModel: one quota request per poll, one tiny chat request per wake."""

import json
from collections.abc import Mapping
from datetime import tzinfo
from typing import Any, Final
from urllib.parse import urlencode

from wakeful.core.slot.slot import FailureKind, ReadFailure, Reading
from wakeful.core.time.instants import HOUR, SECOND, Duration, Instant
from wakeful.integrations.net.exchange import Exchanges, NoAnswer, NoConnection, Request, Response
from wakeful.integrations.providers.keys import Key
from wakeful.integrations.providers.reading import glm_reading, local_text, number_of, walk
from wakeful.ports.action import Fire, Ladder
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import RequestContext
from wakeful.ports.quota import WakeFailure, wake_failure

QUOTA_PATH: Final = "/api/monitor/usage/quota/limit"
MODEL_USAGE_PATH: Final = "/api/monitor/usage/model-usage"
TOOL_USAGE_PATH: Final = "/api/monitor/usage/tool-usage"
WAKE_PATH: Final = "/api/coding/paas/v4/chat/completions"
TOTAL: Final[Duration] = 15 * SECOND
WINDOW: Final[Duration] = 5 * HOUR
_TOOLS: Final = {
    "networkSearch": "totalNetworkSearchCount",
    "webRead": "totalWebReadMcpCount",
    "zread": "totalZreadMcpCount",
    "search": "totalSearchMcpCount",
}


class GlmProvider:
    """One key at one of the two hosts, or wherever `base_url` says."""

    can_wake = True
    has_statistics = True

    def __init__(
        self, slot: str, key: Key, base_url: str, model: str, *, exchanges: Exchanges, clock: Clock, zone: tzinfo
    ) -> None:
        self._slot = slot
        self._key = key
        self._base = base_url.rstrip("/")
        self._model = model
        self._exchanges = exchanges
        self._clock = clock
        self._zone = zone
        self.mark = key.mark("glm", self._base)

    async def read(self, action: str) -> Reading | ReadFailure:
        answer = await self._ask("GET", QUOTA_PATH, action)
        if isinstance(answer, ReadFailure):
            return answer
        reading = glm_reading(await answer.json(), self._clock.read().now)
        return reading if isinstance(reading, Reading) else self._key.clean(reading)

    async def wake(self, action: str, fire: Fire, ladder: Ladder) -> WakeFailure | None:
        words = {
            "model": self._model,
            "messages": [{"role": "user", "content": "ping"}],
            "max_tokens": 1,
            "stream": False,
        }
        answer = await self._ask("POST", WAKE_PATH, action, words, key=fire.idempotency_key)
        return None if isinstance(answer, Response) else wake_failure(answer)

    async def statistics(self, reading: Reading, *, now: Instant) -> Mapping[str, Any] | ReadFailure:
        start = now - WINDOW if reading.reset_at is None or reading.reset_at <= now else reading.reset_at - WINDOW
        day = await self._usage(MODEL_USAGE_PATH, now - 24 * HOUR, now)
        window = await self._usage(MODEL_USAGE_PATH, start, now)
        tools = await self._usage(TOOL_USAGE_PATH, now - 24 * HOUR, now)
        for part in (day, window, tools):
            if isinstance(part, ReadFailure):
                return part
        return {
            "at": now,
            "windowStart": start,
            "day": _calls(day),
            "window": _calls(window),
            "tools": {name: number_of(walk(tools, f"data.totalUsage.{path}")) for name, path in _TOOLS.items()},
        }

    async def close(self) -> None:
        await self._exchanges.close()

    async def _usage(self, path: str, start: Instant, end: Instant) -> Any:
        times = {"startTime": local_text(start, self._zone), "endTime": local_text(end, self._zone)}
        answer = await self._ask("GET", f"{path}?{urlencode(times)}", "quota-statistics")
        return answer if isinstance(answer, ReadFailure) else await answer.json()

    async def _ask(
        self, method: str, path: str, action: str, body: Mapping[str, Any] | None = None, key: str | None = None
    ) -> Response | ReadFailure:
        headers = {
            **self._key.header(),
            "Accept-Language": "en-US",
            "Content-Type": "application/json",
            **({} if key is None else {"Idempotency-Key": key}),
        }
        data = None if body is None else json.dumps(body).encode()
        request = Request(method, f"{self._base}{path}", headers, data)
        return await ask(self._exchanges, request, RequestContext(action, slot=self._slot), self._key, self._clock)


def _calls(data: Any) -> dict[str, Any]:
    return {
        "calls": number_of(walk(data, "data.totalUsage.totalModelCallCount")),
        "tokens": number_of(walk(data, "data.totalUsage.totalTokensUsage")),
    }


async def ask(
    exchanges: Exchanges, request: Request, about: RequestContext, key: Key, clock: Clock
) -> Response | ReadFailure:
    """The response, or an error message without the key."""
    try:
        answer = await exchanges.send(request, about, limit=TOTAL)
    except (NoConnection, NoAnswer) as error:
        return key.clean(ReadFailure("unreachable", str(error)))
    if answer.is_ok:
        return answer
    said = answer.said()
    message = f"{answer.line}: {said}" if said else answer.line
    if answer.status in (401, 403):
        return key.clean(
            ReadFailure("refused", f"the key was refused ({message}); check it, and that it was not revoked")
        )
    kind: FailureKind = "unreachable" if answer.status >= 500 else "throttled" if answer.status == 429 else "unreadable"
    return key.clean(ReadFailure(kind, message, answer.retry_at(clock.read().now)))
