"""Wakeful for plain scripts and threaded programs: the same methods, blocking.

There is no second implementation: a portal runs an event loop in its own thread and forwards each call.
"""

import inspect
from collections.abc import Callable, Coroutine
from functools import cached_property, wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack

from wakeful.api.ledger import BlockingLedger
from wakeful.api.money import BlockingMoney
from wakeful.api.people import BlockingPeople
from wakeful.api.portal import OverPortal, Portal
from wakeful.api.python import Wakeful as AsyncWakeful
from wakeful.api.schedules import BlockingSchedules
from wakeful.api.system import BlockingSystem
from wakeful.api.turns import BlockingTurns
from wakeful.api.verbs import Verbs
from wakeful.api.workflows import BlockingWorkflows
from wakeful.app.options import Host, Options
from wakeful.app.schedule_options import JobOptions
from wakeful.app.timing_forms import GivenTiming

if TYPE_CHECKING:
    from wakeful.api.slots import BlockingSlots

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


class Blocking:
    """A blocking wrapper of an object: its coroutine methods wait for their results."""

    def __init__(self, portal: Portal, inner: Any) -> None:
        self._portal = portal
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(attribute):
            return attribute

        @wraps(attribute)
        def blocking(*args: Any, **kwargs: Any) -> Any:
            return self._portal.call(attribute(*args, **kwargs))

        return blocking


class Waiting(Generic[P, R]):
    """A coroutine method of the other app, as a method that waits for its result."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> None:
        self._method = method

    def __get__(self, app: "Wakeful", owner: type) -> Callable[P, R]:
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return app.portal.call(self._method(app.inner, *args, **kwargs))

        return wraps(self._method)(call)


class Wakeful(Verbs, OverPortal):
    """The blocking form of `wakeful.Wakeful`, with the same methods."""

    def __init__(
        self, store: str | Path = "wakeful.db", *, host: Host | None = None, **options: Unpack[Options]
    ) -> None:
        self.portal = Portal()
        try:
            self.inner: AsyncWakeful = self.portal.call(_make(store, host, options))
        except BaseException:
            self.portal.close()
            raise

    @cached_property
    def schedules(self) -> BlockingSchedules:
        """Schedules."""
        return BlockingSchedules(self.inner, self.portal)

    @cached_property
    def ledger(self) -> BlockingLedger:
        """Runs."""
        return BlockingLedger(self.inner, self.portal)

    @cached_property
    def people(self) -> BlockingPeople:
        """Deliveries, channels, the inbox, alerts, approvals, and what needs attention."""
        return BlockingPeople(self.inner, self.portal)

    @cached_property
    def money(self) -> BlockingMoney:
        """Costs and budgets."""
        return BlockingMoney(self.inner, self.portal)

    @cached_property
    def turns(self) -> BlockingTurns:
        """Agents and the heartbeat."""
        return BlockingTurns(self.inner, self.portal)

    @cached_property
    def workflows(self) -> BlockingWorkflows:
        """All workflows: deploy, list, run, resolve."""
        return BlockingWorkflows(self.inner, self.portal)

    @cached_property
    def slots(self) -> "BlockingSlots":
        """Quota slots."""
        from wakeful.api.slots import BlockingSlots  # as in the async class

        return BlockingSlots(self.inner, self.portal)

    @cached_property
    def system(self) -> BlockingSystem:
        """The process and its store."""
        return BlockingSystem(self.inner, self.portal)

    add = Waiting(AsyncWakeful.add)
    add_many = Waiting(AsyncWakeful.add_many)
    backfill = Waiting(AsyncWakeful.backfill)
    cancel = Waiting(AsyncWakeful.cancel)
    find = Waiting(AsyncWakeful.find)
    forecast = Waiting(AsyncWakeful.forecast)
    list = Waiting(AsyncWakeful.list)
    pause = Waiting(AsyncWakeful.pause)
    replay = Waiting(AsyncWakeful.replay)
    request_wake = Waiting(AsyncWakeful.request_wake)
    resume = Waiting(AsyncWakeful.resume)
    run_now = Waiting(AsyncWakeful.run_now)
    runs = Waiting(AsyncWakeful.runs)
    update = Waiting(AsyncWakeful.update)
    wait_for = Waiting(AsyncWakeful.wait_for)
    why = Waiting(AsyncWakeful.why)

    def job(self, timing: GivenTiming, slug: str | None = None, **options: Unpack[JobOptions]) -> Callable[[F], F]:
        """Decorate a function to be called at these times."""
        return self.inner.job(timing, slug, **options)

    def on_due(self, handler: F) -> F:
        """Set the function that is called for schedules without their own action."""
        return self.inner.on_due(handler)

    def stop(self) -> None:
        """Stop, and end the portal's thread; this object cannot be used afterwards. Calling it twice is harmless."""
        if self.portal.is_open:
            self.portal.call(self.inner.stop())
            self.portal.close()

    def __enter__(self) -> Self:
        try:
            self.portal.call(self.inner.start())
        except BaseException:
            self.portal.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def workflow(self, name: str) -> Any:
        """A workflow: its decorators as they are, its other methods blocking."""
        return Blocking(self.portal, self.inner.workflow(name))

    def __getattr__(self, name: str) -> Any:
        return getattr(Blocking(self.portal, self.inner), name)


async def _make(store: str | Path, host: Host | None, options: Options) -> AsyncWakeful:
    """Created on the portal's loop."""
    return AsyncWakeful(store, host=host, **options)
