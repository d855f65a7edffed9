"""The HTTP client for one agent server: its address, its headers, and the meaning of its errors."""

import json
from collections.abc import Mapping
from typing import Any, Final

from wakeful.core.run.results import Failed, Throttled
from wakeful.core.time.instants import Duration, format_instant
from wakeful.integrations.net.exchange import READ_MAX, Exchanges, Request, Response
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener, RequestContext

_PERMANENT: Final = frozenset({400, 401, 403, 404, 405, 413, 422})


class Client:
    """Sends requests to one server."""

    def __init__(
        self, clock: Clock, base_url: str, headers: Mapping[str, str], listener: ExchangeListener | None = None
    ) -> None:
        self._clock = clock
        self._base_url = base_url.rstrip("/")
        self._headers = {"Accept": "application/json", **headers}
        self._exchanges = Exchanges(clock, listener)

    async def request(
        self,
        method: str,
        path: str,
        about: RequestContext,
        *,
        json_body: Any = None,
        headers: Mapping[str, str] | None = None,
        limit: Duration | None = None,
        read_max: int = READ_MAX,
    ) -> Response:
        """Send a request and read the response. Raises `NoConnection` and `NoAnswer`, with a message."""
        data = None if json_body is None else json.dumps(json_body).encode()
        given = {"Content-Type": "application/json"} if data is not None else {}
        sent = {**self._headers, **given, **(headers or {})}
        request = Request(method, self._base_url + path, sent, data, read_max)
        return await self._exchanges.send(request, about, limit=limit)

    def failure(self, response: Response) -> Failed | Throttled:
        """The meaning of an unexpected response: throttled, or failed."""
        until = response.retry_at(self._clock.read().now)
        if until is not None:
            return Throttled(f"{response.line}: asked to retry at {format_instant(until)}", until)
        said = response.said()
        return Failed(f"{response.line}: {said}" if said else response.line, permanent=response.status in _PERMANENT)

    async def close(self) -> None:
        await self._exchanges.close()
