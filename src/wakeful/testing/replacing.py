"""Replacements for programs, requests and agents while an app runs on a virtual clock."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from wakeful.app.bootstrap import Agents
from wakeful.core.run.results import Done, Failed, Result
from wakeful.core.run.runs import RungName
from wakeful.core.schedule.actions import Command, Dispatch, Http
from wakeful.integrations.actions.arguments import with_second
from wakeful.integrations.actions.fire import Fire as FireView
from wakeful.integrations.actions.invoke import failure_of, outcome_of
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.integrations.agents.call import CallAgent
from wakeful.ports.action import Action, Fire, Ladder
from wakeful.ports.agent import Agent, Exchange, Fate, Turn
from wakeful.ports.clock import Clock

OnCommand: TypeAlias = Callable[..., Any]
"""Called with the command (`argv`, `env`, `cwd`, `stdin`), and with the fire if it asks for it. It returns the
output as text or None, or an exit code; an exception fails the run."""

OnHttp: TypeAlias = Callable[..., Any]
"""Called with the request (`method`, `url`, `headers`, `body`), and with the fire if it asks for it. It returns
the body as text or None, or a status; an exception fails the run."""

OnDispatch: TypeAlias = Callable[..., Any]
"""Called with the task (`celery.task`, `celery.args` and so on), and with the fire if it asks for it. It
returns the result as text or None; an exception fails the run."""

AgentFunction: TypeAlias = Callable[..., Any]
"""Called like a function decorated with `Wakeful.agent`."""

NO_COMMANDS: Final = "commands do not run on a virtual clock; pass virtual(…, on_command=function) to handle them"
NO_DISPATCH: Final = "tasks are not sent on a virtual clock; pass virtual(…, on_dispatch=function) to handle them"
NO_REQUESTS: Final = "requests are not sent on a virtual clock; pass virtual(…, on_http=function) to handle them"


class ReplacedAction:
    """Performs commands or requests by calling a function; without one it refuses them."""

    is_local = False

    def __init__(self, function: Callable[..., Any] | None, refusal: str, read: Callable[[int], Result]) -> None:
        self._function = function
        self._refusal = refusal
        self._read = read

    def proves(self, spec: Any) -> RungName:
        return "finished"

    def check(self, spec: Any) -> str | None:
        return self._refusal if self._function is None else None

    async def perform(self, spec: Any, fire: Fire, ladder: Ladder) -> Result:
        if self._function is None:
            return Failed(self._refusal, permanent=True)
        await ladder.climb("sent")
        try:
            value = await _called(self._function, spec, FireView(fire))
        except Exception as error:
            return failure_of(error)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return self._read(value) if is_number else outcome_of(value)

    async def close(self) -> None: ...


def replaced(
    actions: Mapping[type[Any], Action],
    on_command: OnCommand | None,
    on_http: OnHttp | None,
    on_dispatch: OnDispatch | None = None,
) -> Mapping[type[Any], Action]:
    """The actions of an app, with replacements for those that would have outside effects."""
    return {
        **actions,
        Command: ReplacedAction(on_command, NO_COMMANDS, _exited),
        Http: ReplacedAction(on_http, NO_REQUESTS, _responded),
        Dispatch: ReplacedAction(on_dispatch, NO_DISPATCH, _exited),
    }


class RefusedAgent:
    """An agent of the app that would have outside effects."""

    proves: RungName = "finished"
    knows: Mapping[str, type] = {}

    def __init__(self, name: str) -> None:
        self._refusal = f"it is not called on a virtual clock; pass virtual(…, agents={{{name!r}: function}})"

    def check(self, config: Mapping[str, Any]) -> str | None:
        return self._refusal

    def begin(self, turn: Turn) -> Exchange:
        raise RuntimeError(self._refusal)

    async def ask(self, turn: Turn) -> Fate:
        return None

    async def close(self) -> None: ...


def replaced_agents(given: Agents | None, functions: Mapping[str, AgentFunction]) -> Agents:
    """Agents that are functions stay, the test's functions replace others, and the rest is refused."""

    def make(clock: Clock, registry: CallRegistry) -> Mapping[str, Agent]:
        real = {} if given is None else given(clock, registry)
        agents: dict[str, Agent] = {"default": RefusedAgent("default")}
        for name, agent in real.items():
            agents[name] = agent if isinstance(agent, CallAgent) else RefusedAgent(name)
        for name, function in functions.items():
            target = f"wakeful.testing:agent#{name}"
            registry.register(target, function)
            agents[name] = stand_in = CallAgent(target, registry)
            if name in real:  # a config written for the real one is accepted
                stand_in.knows = {**stand_in.knows, **real[name].knows}
        return agents

    return make


async def _called(function: Callable[..., Any], spec: Any, fire: FireView) -> Any:
    positional, named = with_second(function, spec, fire)
    value = function(*positional, **named)
    return await value if isinstance(value, Awaitable) else value


def _exited(code: int) -> Result:
    return Done() if code == 0 else Failed(f"exited with {code}")


def _responded(status: int) -> Result:
    if 200 <= status < 300:
        return Done()
    known = {item.value: item.phrase for item in HTTPStatus}
    return Failed(f"HTTP {status} {known.get(status, '')}".rstrip())
