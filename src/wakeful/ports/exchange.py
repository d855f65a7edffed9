"""The exchange listener port: receives every outgoing request and its response, for logging.

Adapters that send requests take a listener, which is optional. It is called while the request is being made, so it must
return immediately and never raise: the log puts the records into a queue.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias


class RequestContext(NamedTuple):
    """What a request is for: the logical step, and its owner."""

    action: str
    slug: str | None = None  # of a schedule
    slot: str | None = None  # of a quota slot


ExchangeStep: TypeAlias = Callable[[Literal["request", "response", "error"], Mapping[str, Any]], None]
"""Receives the steps of one exchange: a request, then a response or an error."""

ExchangeListener: TypeAlias = Callable[[RequestContext], ExchangeStep]
"""Called at the beginning of an exchange."""
