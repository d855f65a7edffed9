"""The exchange listener port: who hears of every request that leaves for someone outside, and of its answer.

Adapters that send requests take one; without it they speak unheard. It is told on the path of the request, so it must
return at once and never raise: the log puts what it hears into a queue.
"""

from typing import Any, NamedTuple, Protocol


class RequestContext(NamedTuple):
    """What a request is for: the logical step, and whose it is."""

    action: str
    slug: str | None = None  # of a schedule
    slot: str | None = None  # of a quota slot


class ExchangeFlow(Protocol):
    """One exchange: a request, then a response or an error, under one flow id."""

    def request(self, **details: Any) -> None: ...

    def response(self, **details: Any) -> None: ...

    def error(self, error: str, **details: Any) -> None: ...


class ExchangeListener(Protocol):
    """Hears of exchanges. The telemetry's log is one."""

    def flow(self, action: str, *, slug: str | None = None, slot: str | None = None) -> ExchangeFlow: ...
