"""Actions as a Python program writes them: a function, or one of the short forms."""

import inspect
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from wakeful.app.plain import plain
from wakeful.app.schedule_options import ACTIONS
from wakeful.core.errors import refuse
from wakeful.core.schedule.actions import ActionSpec, Call, Prompt
from wakeful.core.schedule.definition_json import action_from_json
from wakeful.integrations.actions.arguments import NotCallable, place_of
from wakeful.integrations.actions.registry import CallRegistry, UnknownCallable

ON_DUE: Final = "on_due"
_BELONGS: Final = {"args": "call", "isolate": "call", "agent": "prompt", "session_config": "prompt"}


def register(registry: CallRegistry, function: Callable[..., Any], slug: str) -> str:
    """Register the function under a name by which it can be found again. A callable that cannot be imported (a closure,
    a lambda, an object or its method) may share its name with others, so the schedule's slug is added: after a restart
    it is reported as missing, not mistaken for its class."""
    name = getattr(function, "__qualname__", None)
    target = f"{function.__module__}:{name or type(function).__qualname__}"
    is_bound = inspect.ismethod(function) and not inspect.isclass(function.__self__)
    if name is None or is_bound or "<" in name or registry.registered(target) not in (None, function):
        target = f"{target}#{slug}"
    registry.register(target, function)
    return target


def warn_of_replaced_default(function: Callable[..., Any], args: Mapping[str, Any]) -> None:
    """Warn if the function gets the fire in place of a default, as its only parameter did in 0.2."""
    try:
        place = place_of(function, tuple(args))
    except NotCallable:  # refused when the schedule is written
        return
    if place is None or not place.is_default:
        return
    name = getattr(function, "__qualname__", type(function).__qualname__)
    (parameter,) = inspect.signature(function).parameters
    code = getattr(inspect.unwrap(function), "__code__", None)
    warnings.warn_explicit(
        f"{name} gets the fire in '{parameter}', in place of its default; from 0.4 on it keeps its default. "
        f"Rename the parameter to 'fire', or annotate it: with Fire to get the fire, with any other type to keep the "
        f"default",
        DeprecationWarning,
        filename=getattr(code, "co_filename", "<unknown>"),
        lineno=getattr(code, "co_firstlineno", 0),
        module=getattr(function, "__module__", None),
    )


def _refuse_nested(target: object) -> None:
    """Refuse what is not importable: a schedule outlives its process, and the next one finds functions by name only."""
    while isinstance(target, partial):
        target = target.func
    name = getattr(target, "__qualname__", "")
    if "<" not in name:
        return
    what = "a lambda" if name.endswith("<lambda>") else f"{name.rpartition('.')[2]!r}, a function inside a function,"
    cure = "move it to the top level of a module, or declare it with @app.job"
    refuse("call", f"{what} cannot be found again after a restart; {cure}")


def action_of(registry: CallRegistry, slug: str, given: Mapping[str, Any]) -> ActionSpec:
    """The action in the keywords of `add`; without one, the `on_due` handler is called."""
    actions = [name for name in ACTIONS if given.get(name) is not None]
    if len(actions) > 1:
        raise ValueError(f"{' and '.join(actions)} are mutually exclusive; give exactly one")
    name = actions[0] if actions else "call"
    _refuse_others(name, given)
    if name == "call":
        return _call(registry, slug, given.get("call") or ON_DUE, given.get("args") or {}, given.get("isolate"))
    if name == "prompt":
        config = plain(given.get("session_config") or {}, "session_config")
        return Prompt(given["prompt"], given.get("agent") or "default", config)
    return _spec(name, given[name])


def _refuse_others(action: str, given: Mapping[str, Any]) -> None:
    """Refuse keywords that belong to another action: they would be ignored."""
    for name, belongs_to in _BELONGS.items():
        if given.get(name) is not None and belongs_to != action:
            refuse(name, f"only works with a {belongs_to}; leave it out with {action}")


def _call(registry: CallRegistry, slug: str, given: Any, args: Mapping[str, Any], isolate: Any) -> Call:
    if isolate not in (None, "process"):
        refuse("isolate", f"{isolate!r} is not a valid value; write 'process', or leave it out")
    if given == ON_DUE:
        return Call(ON_DUE, args, isolate)
    _refuse_nested(given)
    target = given if isinstance(given, str) else register(registry, given, slug)
    with suppress(UnknownCallable):  # refused when the schedule is written
        warn_of_replaced_default(registry.resolve(target), args)
    return Call(target, args, isolate)


def _spec(name: str, given: Any) -> ActionSpec:
    """An action given as its short form or as its JSON object; checked either way."""
    value = plain(given, name)
    if isinstance(value, Mapping):
        return action_from_json(name, value)
    match name:
        case "command":
            return action_from_json(name, {"argv": value if isinstance(value, str) else list(value)})
        case "http":
            return action_from_json(name, {"method": "POST", "url": value})
        case _:
            return action_from_json(name, {"text": value})
