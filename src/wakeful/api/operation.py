"""One operation: a typed function, and what every way of calling it needs to know.

Theory of operation: a noun is a class, and its operations are methods of a noun that is bound to an app and to who
asks. `@read` and `@write` take functions of a transaction and the time; `@perform` takes a coroutine function that does
more than one transaction. The decorator makes an `Operation` of the function, a descriptor: on a noun it is an async
method, on the noun's `Blocking` subclass a blocking one, and on the class it is the description, from which the REST
route, the OpenAPI fragment, and an agent's tool are made. Who may call it is decided here, before the function runs.
"""

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    ParamSpec,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    get_type_hints,
    overload,
)

from wakeful.api.actors import ONLY_WAKES, PROGRAM, RIGHTS, Actor, Refused, Role
from wakeful.api.parameters import Parameter, parameter_of
from wakeful.api.portal import Portal
from wakeful.core.description import Object
from wakeful.core.self_scheduling.slugs import owned_slug
from wakeful.core.time.instants import Instant
from wakeful.ports.store import Tx

if TYPE_CHECKING:
    from wakeful.api.python import Wakeful

P = ParamSpec("P")
R = TypeVar("R")
N = TypeVar("N", bound="Noun")

Kind: TypeAlias = Literal["read", "write", "perform"]
_GIVEN: Final[Mapping[Kind, int]] = {"read": 3, "write": 3, "perform": 1}
"""How many parameters the caller does not give: the noun, and for `read` and `write` the transaction and the time."""


class Noun:
    """Operations bound to an app and to who asks."""

    __slots__ = ("_actor", "_app")

    def __init__(self, app: "Wakeful", actor: Actor = PROGRAM) -> None:
        self._app, self._actor = app, actor

    def _owned(self, parameter: Parameter, name: str) -> str:
        """The full name of what is asked for. An agent reaches only names with its own prefix."""
        agent, check = self._actor.agent, parameter.about.owned
        if agent is None:
            return name if check is None else check(name)
        return owned_slug(agent.agent, name)


class Blocking(Noun):
    """A noun whose operations wait for their results."""

    __slots__ = ("_portal",)

    def __init__(self, app: "Wakeful", portal: Portal, actor: Actor = PROGRAM) -> None:
        super().__init__(app, actor)
        self._portal = portal


@dataclass(frozen=True, slots=True)
class Returns:
    """One response: its object, what it means, and its headers."""

    object: Object[Any] | None
    says: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content: Mapping[str, Any] | None = None  # in OpenAPI, if it is no described object


class About(TypedDict, total=False):
    """What the decorators take besides the route, its summary and its responses."""

    id: str  # in OpenAPI
    least: Role  # who may call it; default: `read` for `@read`, else `operate`
    agents: bool  # agents may, for what they own
    commands: bool  # if agents may, the runs of commands may as well
    tag: str  # in OpenAPI, if it is not the noun's
    hint: Literal["reads", "destroys"]  # to programs that offer it to a model as a tool
    statuses: Sequence[int]  # of the responses, in order; default: 200
    refuses: Sequence[int]  # with these, besides the common ones
    is_long: bool  # it ends when the client of a request disconnects
    reply: Callable[[Any], Any]  # makes the response; default: the object of the only one
    body_name: str  # of the object that the parameters in the body make, in OpenAPI
    body_says: str
    body_required: bool  # although all its fields may be left out
    body: Mapping[str, Any]  # the content of the request body, if the parameters do not describe it


class Operation(Generic[P, R]):
    """A described function of a noun."""

    def __init__(
        self,
        function: Callable[..., Any],
        kind: Kind,
        route: str,
        summary: str,
        returns: Sequence[Returns],
        about: About,
    ) -> None:
        self.function, self.kind, self.route, self.summary = function, kind, route, summary
        self.noun: type[Noun] = Noun
        self.verb, self.says = function.__name__, inspect.getdoc(function) or ""
        self.method, _, self.path = route.partition(" ")
        self.returns = dict(zip(about.get("statuses", (200,)), returns, strict=True))
        self.least: Role = about.get("least", "read" if kind == "read" else "operate")
        self.is_for_agents = about.get("agents", False)
        self.about = about
        hints = get_type_hints(function, include_extras=True)
        signature = inspect.signature(function)
        given = list(signature.parameters.values())[_GIVEN[kind] :]
        self._signature = signature.replace(parameters=given)
        self.parameters = [parameter_of(one, hints[one.name], self.method, self.path) for one in given]
        self._names = [one for one in self.parameters if one.about.owned is not None]
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type[Noun], name: str) -> None:
        self.noun, self.verb = owner, name

    def may(self, actor: Actor) -> bool:
        """Whether this actor may ask for it: the one place where roles are compared."""
        if actor.role == "agent":
            return self.is_for_agents
        return RIGHTS[actor.role] >= RIGHTS[self.least]

    async def then(self, noun: Noun, finish: Callable[[Any], Any] | None, /, **kwargs: Any) -> Any:
        """Perform it, and apply `finish` to the result where it was made: for a read, in the reader's thread."""
        self._check(noun._actor)
        for one in self._names:
            kwargs[one.attribute] = noun._owned(one, kwargs[one.attribute])
        function = self.function
        if self.kind == "perform":
            result = await function(noun, **kwargs)
            return result if finish is None else finish(result)

        def performed(tx: Tx, now: Instant) -> Any:
            result = function(noun, tx, now, **kwargs)
            return result if finish is None else finish(result)

        return await (noun._app._look(performed) if self.kind == "read" else noun._app._command(performed))

    def _given(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """What a program calls it with, by name; refused as the arguments of any function are."""
        return self._signature.bind(*args, **kwargs).arguments

    def _check(self, actor: Actor) -> None:
        """Before every operation, and never in a parameter: one without parameters would be open."""
        if actor.agent is not None and not actor.agent.is_agent_run and not self.about.get("commands"):
            raise Refused(ONLY_WAKES)
        if not self.may(actor):
            raise Refused(f"the role '{actor.role}' does not permit {self.route}")

    @overload
    def __get__(self, noun: None, owner: type) -> "Operation[P, R]": ...
    @overload
    def __get__(self, noun: Blocking, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, noun: Noun, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, noun: Noun | None, owner: type) -> Any:
        if noun is None:
            return self

        return self.blocking(noun, noun._portal) if isinstance(noun, Blocking) else self.awaited(noun)

    def awaited(self, noun: Noun, finish: Callable[[Any], Any] | None = None) -> Callable[P, Coroutine[Any, Any, Any]]:
        """The operation as an async method of this noun; `finish` is applied to the result."""

        async def method(*args: Any, **kwargs: Any) -> Any:
            return await self.then(noun, finish, **self._given(args, kwargs))

        method.__doc__, method.__name__ = self.says, self.verb
        return method

    def blocking(self, noun: Noun, portal: Portal, finish: Callable[[Any], Any] | None = None) -> Callable[P, Any]:
        """The operation as a blocking method of this noun; `finish` is applied to the result."""

        def method(*args: Any, **kwargs: Any) -> Any:
            return portal.call(self.then(noun, finish, **self._given(args, kwargs)))

        method.__doc__, method.__name__ = self.says, self.verb
        return method


def read(
    route: str, summary: str, *returns: Returns, **about: Unpack[About]
) -> Callable[[Callable[Concatenate[N, Tx, Instant, P], R]], Operation[P, R]]:
    """An operation that reads on one snapshot, in a reader's thread."""
    return lambda function: Operation(function, "read", route, summary, returns, about)


def write(
    route: str, summary: str, *returns: Returns, **about: Unpack[About]
) -> Callable[[Callable[Concatenate[N, Tx, Instant, P], R]], Operation[P, R]]:
    """An operation that is one transaction; afterwards the engine looks again."""
    return lambda function: Operation(function, "write", route, summary, returns, about)


def perform(
    route: str, summary: str, *returns: Returns, **about: Unpack[About]
) -> Callable[[Callable[Concatenate[N, P], Coroutine[Any, Any, R]]], Operation[P, R]]:
    """An operation that is more than one transaction, or none."""
    return lambda function: Operation(function, "perform", route, summary, returns, about)


def operations_of(noun: type[Noun]) -> list[Operation[..., Any]]:
    """The operations of a noun, in order: its own, and those of the classes it extends."""
    classes = reversed(noun.__mro__)
    return [entry for one in classes for entry in vars(one).values() if isinstance(entry, Operation)]
