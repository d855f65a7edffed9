"""Operations that are also methods of the app, because most programs use them."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from wakeful.api.future import Future, Simulated
from wakeful.api.money import Money
from wakeful.api.one_schedule import as_datetimes
from wakeful.api.operation import Operation
from wakeful.api.people import People
from wakeful.api.portal import OverPortal
from wakeful.api.schedules import Schedules

if TYPE_CHECKING:
    from wakeful.api.python import Wakeful

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Verb(Generic[P, R]):
    """An operation as a method of the app, with the operation's signature; of a blocking app, a blocking method. What
    `finish` makes of the result is returned."""

    @overload
    def __init__(self, operation: Operation[P, R]) -> None: ...
    @overload
    def __init__(self, operation: Operation[P, T], finish: Callable[[T], R]) -> None: ...
    def __init__(self, operation: Operation[P, Any], finish: Callable[[Any], Any] | None = None) -> None:
        self._operation, self._finish = operation, finish

    @overload
    def __get__(self, app: None, owner: type) -> Operation[P, R]: ...
    @overload
    def __get__(self, app: OverPortal, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, app: "Wakeful", owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, app: Any, owner: type) -> Any:
        operation = self._operation
        if app is None:
            return operation
        if isinstance(app, OverPortal):
            return operation.blocking(operation.noun(app.inner), app.portal, self._finish)
        return operation.awaited(operation.noun(app), self._finish)


class Verbs:
    """The operations that are methods of the app."""

    cost = Verb(Money.cost)
    touch = Verb(People.touch)
    get = Verb(Schedules.get)
    remove = Verb(Schedules.remove)
    stats = Verb(Schedules.stats)
    next_times = Verb(Schedules.next, as_datetimes)
    simulate = Verb(Future.simulate, Simulated.read)
