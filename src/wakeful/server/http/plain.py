"""A route that is not an operation: it sends something else than JSON, or checks a proof of its own."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_type_hints

from starlette.types import ASGIApp

from wakeful.api.operation import Returns
from wakeful.api.parameters import Parameter, parameter_of

Least: TypeAlias = Literal["open", "own", "agent", "read", "operate", "admin"]
"""The minimum role of a route. `open`: it needs no token. `own`: it has its own authentication, such as the token of a
run or a hook."""


@dataclass(frozen=True)
class PlainRoute:
    """One route. It is in OpenAPI if it has a summary."""

    route: str
    respond: Callable[..., Awaitable[ASGIApp]]  # of the API, the request and the parameters
    least: Least
    summary: str = ""
    returns: Mapping[int, Returns] = field(default_factory=dict)
    tag: str = "daemon"
    refuses: Sequence[int] | None = ()  # besides the common statuses; None: not even those
    body: Mapping[str, Any] | None = None  # the schema
    is_body_required: bool = True

    @cached_property
    def parameters(self) -> list[Parameter]:
        """What is read from the path, the query and the headers."""
        hints = get_type_hints(self.respond, include_extras=True)
        method, _, path = self.route.partition(" ")
        given = list(inspect.signature(self.respond).parameters.values())[2:]
        return [parameter_of(one, hints[one.name], method, path) for one in given]

    @property
    def says(self) -> str:
        return inspect.getdoc(self.respond) or ""
