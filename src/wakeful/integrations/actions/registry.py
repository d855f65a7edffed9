"""Python callables by name."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, TypeAlias

from wakeful.integrations.system.text import one_line

Target: TypeAlias = Callable[..., Any]
_HOW_TO_FIND: Final = "install it, put its folder on the daemon's PYTHONPATH, or correct the target"


class UnknownCallable(Exception):
    """A name refers to no callable; the message gives the reason and the cure."""


class CallRegistry:
    """Callables registered under a name, and any `module:function` that can be imported."""

    def __init__(self) -> None:
        self._registered: dict[str, Target] = {}

    def register(self, name: str, target: Target) -> None:
        """Register a callable; registering a name again replaces it, as after a module reload."""
        self._registered[name] = target

    def registered(self, name: str) -> Target | None:
        """The callable registered under this name."""
        return self._registered.get(name)

    def at_hand(self, name: str) -> Target | None:
        """The callable if no import is needed, which may take long or never end."""
        registered = self._registered.get(name)
        if registered is not None or name.partition(":")[0] not in sys.modules:
            return registered
        try:
            return self.resolve(name)
        except UnknownCallable:  # perhaps partly imported by another thread: `resolve` waits for it, in a thread
            return None

    def resolve(self, name: str) -> Target:
        """The callable with this name, importing its module if necessary. Raises `UnknownCallable`."""
        registered = self._registered.get(name)
        if registered is not None:
            return registered
        module_name, colon, path = name.partition(":")
        if not (colon and module_name and path):
            raise UnknownCallable(
                f"no callable is registered as '{name}'; register it before startup, or write it as module:function"
            )
        return _walk(_import(module_name, name), path, name)


def missing_module(target: str) -> str | None:
    """That the module of a target is not on Python's path, with the cure; None if it is. Nothing is imported."""
    package = target.partition(":")[0].partition(".")[0]
    try:
        is_found = package in sys.modules or importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # not a name of a module; the import says so
        return None
    if is_found:
        return None
    return f"there is no Python module '{package}'; {_HOW_TO_FIND} '{target}'"


def _import(module_name: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module may do anything on import, even exit
        cause = one_line(f"{type(error).__name__}: {error}")
        raise UnknownCallable(f"'{module_name}' cannot be imported ({cause}); {_HOW_TO_FIND} '{name}'") from error


def _walk(module: ModuleType, path: str, name: str) -> Target:
    owner: Any = module
    target: Any = module
    for part in path.split("."):
        owner = target
        try:
            target = getattr(owner, part)
        except AttributeError:
            raise UnknownCallable(f"'{module.__name__}' has no '{path}'; correct the target '{name}'") from None
    if not callable(target):
        raise UnknownCallable(f"'{name}' is {type(target).__name__}, which cannot be called; name a function")
    if inspect.isclass(owner) and inspect.isfunction(inspect.getattr_static(owner, part, None)):
        raise UnknownCallable(
            f"'{name}' needs an instance; make it a classmethod or staticmethod, or register a bound method"
        )
    return target  # type: ignore[no-any-return]  # `callable` narrows Any to nothing more than Any
