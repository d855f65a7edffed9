"""What a callable is called with: the definition's `args` by name, and the fire if the callable asks for it.

It asks with a parameter named `fire`, with one annotated with `Fire`, with a single required parameter that `args`
leave open, or with `*args`. Every other parameter keeps its default: a fire in `days=30` would be a wrong value that
raises no error.
"""

import inspect
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from inspect import Parameter
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin

from wakeful.integrations.actions.fire import Fire
from wakeful.integrations.actions.registry import Target

_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

# An annotation that cannot be evaluated, because its import is only for type checkers.
_FIRE_BY_NAME: Final = re.compile(r"(?:(?:\w+\.)*Optional\[)?(?:\w+\.)*Fire\]?")

_UNEVALUATED: Final[dict[str, Any]] = {}
"""How to get a signature without evaluating its annotations."""

if sys.version_info >= (3, 14):
    import annotationlib

    _UNEVALUATED["annotation_format"] = annotationlib.Format.FORWARDREF


class NotCallable(Exception):
    """The callable cannot be called like this; the message gives the reason and the cure."""


class Place(NamedTuple):
    """Where a callable takes the fire."""

    name: str | None = None  # by keyword; None: as a positional argument
    before: tuple[Any, ...] = ()  # defaults of the positional-only parameters in front of it
    is_default: bool = False  # it replaces a default that no annotation describes, as in 0.2

    def fill(self, fire: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return ((*self.before, fire), {}) if self.name is None else ((), {self.name: fire})


_FIRST: Final = Place()


def fill(target: Target, fire: Fire | None, args: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments to call it with. Raises `NotCallable`."""
    place = place_of(target, tuple(args))
    if place is None:
        return (), dict(args)
    if place == _FIRST:  # on the hot path
        return (fire,), dict(args)
    positional, named = place.fill(fire)
    return positional, {**named, **args}


def place_of(target: Target, names: tuple[str, ...]) -> Place | None:
    """Where it takes the fire beside arguments of these names; None: nowhere. Raises `NotCallable`."""
    try:
        return _place_of(target, names)
    except TypeError:  # an unhashable callable is inspected each time
        return _place_of.__wrapped__(target, names)


def with_second(function: Callable[..., Any], first: Any, fire: Fire) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a function that takes something else first, and the fire if it asks for it."""
    try:
        parameters = tuple(_signature(function).parameters.values())
    except (TypeError, ValueError):  # some built-in callables have no signature
        return (first,), {}
    rest = parameters if parameters and parameters[0].kind is Parameter.VAR_POSITIONAL else parameters[1:]
    place = _find(rest, ())
    if place is None or place.is_default:
        return (first,), {}
    positional, named = place.fill(fire)
    return (first, *positional), named


@lru_cache(maxsize=1024)
def _place_of(target: Target, names: tuple[str, ...]) -> Place | None:
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise NotCallable(f"{_name(target)} is a generator, so calling it runs nothing; use return instead of yield")
    try:
        signature = _signature(target)
    except (TypeError, ValueError):  # some built-in callables have no signature, so they ask for nothing
        return None
    place = _find(tuple(signature.parameters.values()), {*names, *_bound(target)})
    positional, named = ((), {}) if place is None else place.fill(None)
    try:
        signature.bind(*positional, **named, **dict.fromkeys(names))
    except TypeError as error:
        given = _names(names) if place is None else f"the fire and {_names(names)}"
        raise NotCallable(f"{_name(target)} cannot be called with {given} ({error}); correct its args") from None
    return place


def _find(parameters: Sequence[Parameter], given: Collection[str]) -> Place | None:
    takers = [parameter for parameter in parameters if parameter.name not in given and _takes_one(parameter)]
    required = [parameter for parameter in takers if parameter.kind in _POSITIONAL and _is_required(parameter)]
    asking = [parameter for parameter in takers if parameter.name == "fire"]
    asking = asking or [parameter for parameter in takers if _is_fire(parameter.annotation)]
    asking = asking or (required if len(required) == 1 else [])
    if asking:
        return _place(parameters, asking[0])
    if parameters and parameters[0].kind is Parameter.VAR_POSITIONAL:
        return _FIRST
    if len(parameters) == len(takers) == 1 and parameters[0].kind in _POSITIONAL and not required:
        return Place(is_default=True) if parameters[0].annotation is Parameter.empty else None
    return None


def _place(parameters: Sequence[Parameter], taker: Parameter) -> Place:
    """Positionally if it comes first: what a decorator shows as the signature may have other names inside."""
    if taker is parameters[0] and taker.kind in _POSITIONAL:
        return _FIRST
    if taker.kind is not Parameter.POSITIONAL_ONLY:
        return Place(taker.name)
    return Place(before=tuple(parameter.default for parameter in parameters[: parameters.index(taker)]))


def _takes_one(parameter: Parameter) -> bool:
    return parameter.kind in (*_POSITIONAL, Parameter.KEYWORD_ONLY)


def _is_required(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty


def _is_fire(annotation: Any) -> bool:
    """Whether it is `Fire`, also as one of several types or with metadata."""
    if isinstance(annotation, str):
        return any(_FIRE_BY_NAME.fullmatch(part.strip()) for part in annotation.split("|"))
    if get_origin(annotation) in (Union, UnionType):
        return any(map(_is_fire, get_args(annotation)))
    if get_origin(annotation) is Annotated:
        return _is_fire(get_args(annotation)[0])
    return annotation is Fire or _is_fire(getattr(annotation, "__forward_arg__", None) or "")


def _signature(target: Target) -> inspect.Signature:
    """With annotations as types where possible. Raises `TypeError` or `ValueError` if it has none."""
    try:
        return inspect.signature(target, eval_str=True)
    except (TypeError, ValueError):
        return inspect.signature(target)
    except Exception:  # an annotation is any expression, and its names may exist for type checkers only
        return inspect.signature(target, **_UNEVALUATED)


def _bound(target: Target) -> set[str]:
    """The arguments that a partial has been given by name."""
    names: set[str] = set()
    while isinstance(target, partial):
        names.update(target.keywords)
        target = target.func
    return names


def _name(target: Target) -> str:
    return getattr(target, "__qualname__", type(target).__name__)


def _names(args: Collection[str]) -> str:
    return ", ".join(map(repr, args)) or "no args"
