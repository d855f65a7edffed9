"""Wakeful for Python programs: a scheduler in this process over one store."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from wakeful.app.action_forms import ON_DUE, register
from wakeful.app.agent_tools import AgentToolbox
from wakeful.app.agents import Agents
from wakeful.app.calendars import Calendars
from wakeful.app.costs import Costs
from wakeful.app.delivery import Delivering
from wakeful.app.forecasting import Forecasting
from wakeful.app.heartbeat import HeartbeatCommands
from wakeful.app.merging import definition_options
from wakeful.app.queries import AppQueries
from wakeful.app.runs import Runs
from wakeful.app.self_scheduling import SelfScheduling
from wakeful.app.today import Today
from wakeful.app.values import New
from wakeful.core.schedule.actions import Call
from wakeful.core.time.timing import Timing
from wakeful.features.delivery.views import DeliveryView
from wakeful.features.workflows.feature import Workflows
from wakeful.features.workflows.python import Workflow
from wakeful.integrations.channels.program import DeliverFunction
from wakeful.observe.stream import Handler
from wakeful.ports.agent import Toolbox

F = TypeVar("F", bound=Callable[..., Any])


class Wakeful(SelfScheduling, Forecasting, Runs, HeartbeatCommands, Today, Calendars, AppQueries, Agents, Costs):
    """A durable scheduler over one store.

    `store` is the path of a SQLite file, or a `postgresql://…` address. Several processes may open the same file: one
    of them ticks, the others add and read, and when it ends another takes over. On PostgreSQL all of them tick.
    `tick=False` keeps this process from ever ticking.
    """

    # Inheritance gives users one flat list of methods, while each noun has its own file.

    def _toolbox(self) -> Toolbox:
        return AgentToolbox(self)

    def job(
        self, timing: Timing, slug: str | None = None, *, args: Mapping[str, Any] | None = None, **options: Any
    ) -> Callable[[F], F]:
        """Decorate a function to be called at these times. The slug is its name unless given.

        The schedule is written when the app starts; an identical one is left unchanged, so starting again is harmless.
        """

        def declare(function: F) -> F:
            name = slug or function.__name__.lower()
            target = register(self._registry, function, name)
            self._declared.append(New(name, timing, Call(target, args or {}), definition_options(options)))
            return function

        return declare

    def on_due(self, handler: F) -> F:
        """Set the function that is called for schedules without their own action."""
        self._registry.register(ON_DUE, handler)
        return handler

    def agent(self, name: str = "default") -> Callable[[F], F]:
        """Decorate a function to be an agent, called by its `prompt` schedules and its heartbeat.

        It is called with `prompt`, and with the fire, `session_id` and `model` if it accepts them; it returns the reply
        as text, or None if there is nothing to report. Register it before the start."""

        def declare(function: F) -> F:
            self._own_agents[name] = register(self._registry, function, name)
            return function

        return declare

    def workflow(self, name: str) -> Workflow:
        """A workflow: declare its producers and consumers before the start; publish, run and query it afterwards."""
        return self._workflows.declare(name)

    @property
    def workflows(self) -> Workflows:
        """All workflows: deploy, list, resolve."""
        return self._workflows

    def register_channel(self, name: str, to: str | None, deliver: DeliverFunction) -> Callable[[], None]:
        """Add a channel: `deliver(text)` is called with each text; if it raises, the delivery is retried later.

        Returns a function that removes it. Messages are queued durably and may arrive twice: give `deliver` a second
        argument to get the letter, whose `delivery_id` stays the same."""
        return self._delivering.register(name, to, deliver)

    def on(self, handler: Handler) -> Callable[[], None]:
        """Call a function with every event after the commit; returns unsubscribe. A function that raises is dropped."""
        return self._bus.on(handler, None, self._clock)

    def on_stream(self, name: str, handler: Handler) -> Callable[[], None]:
        """Call a function with the events of one stream (`runs`, `schedules`, `deliveries`, …); returns unsubscribe."""
        return self._bus.on(handler, name, self._clock)

    # --- people -------------------------------------------------------------------------------------------------------

    @property
    def delivering(self) -> Delivering:
        """The outbox, the channels and the inbox."""
        return self._delivering

    async def deliver(self, text: str, *, channel: str | None = None, to: str | None = None) -> DeliveryView:
        """Send a message to a person: by this channel, else by the last interaction's, else by the first one."""
        return await self._delivering.send(text, channel=channel, to=to)

    async def touch(self, channel: str, to: str | None = None) -> None:
        """Record an interaction on a channel: deliveries without a channel go to it from now on."""
        await self._delivering.touch(channel, to)

    async def message(self, channel: str, to: str, text: str) -> None:
        """Receive a message on a channel: the agent gets a turn, and its reply goes back to the sender."""
        await self._delivering.take_message(channel, to, text)
