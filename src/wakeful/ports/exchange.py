"""The exchange listener port: receives every outgoing request and its response, for logging.

Adapters that send requests take a listener, which is optional. It is called while the request is being made, so it must
return immediately and never raise: the log puts the records into a queue.
"""

from typing import Any, NamedTuple, Protocol


class RequestContext(NamedTuple):
    """What a request is for: the logical step, and its owner."""

    action: str
    slug: str | None = None  # of a schedule
    slot: str | None = None  # of a quota slot


class ExchangeFlow(Protocol):
    """One exchange: a request, then a response or an error, under one flow id."""

    def request(self, **details: Any) -> None: ...

    def response(self, **details: Any) -> None: ...

    def error(self, error: str, **details: Any) -> None: ...


class ExchangeListener(Protocol):
    """Receives exchanges. The log is one."""

    def flow(self, action: str, *, slug: str | None = None, slot: str | None = None) -> ExchangeFlow: ...
