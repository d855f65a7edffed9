"""The child side of `isolation`: a fresh interpreter that makes one call and reports its result."""

import asyncio
import os
import pickle
import runpy
import sys
from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Any, Final, NamedTuple

from wakeful.core.run.results import Failed, Result
from wakeful.integrations.actions.fire import Fire
from wakeful.integrations.actions.invoke import failure_of, finish, resolve_and_begin
from wakeful.integrations.actions.registry import CallRegistry, Target
from wakeful.integrations.system.text import one_line

RESULT_MARK: Final = b"\0wakeful-result\0"
"""Marks the start of the result, because something may print while the interpreter starts."""

_MAIN: Final = "__mp_main__"  # the name multiprocessing gives it, which guards against __main__ already know


class Order(NamedTuple):
    """What to call. The call stays pickled until the main module it may refer to is loaded."""

    main_path: str | None
    main_module: str | None
    call: bytes  # a packed (target, fire, args)


def main() -> None:
    """Read one order, execute it, write the result."""
    try:
        order = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - written by our own parent
    except Exception:  # truncated: the parent died before releasing us, so nothing may run
        os._exit(125)
    # The result goes where standard output went; what the callable prints goes to standard error.
    result_fd = os.dup(1)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with os.fdopen(result_fd, "wb") as report:
        report.write(RESULT_MARK + _pack(_carry_out(order)))


def _carry_out(order: Order) -> Result:
    try:
        _load_main(order)
        target, fire, args = pickle.loads(order.call)  # noqa: S301 - written by our own parent
    except BaseException as error:
        return Failed(
            one_line(f"cannot be set up in a separate process: {type(error).__name__}: {error}"), permanent=True
        )
    return _call(target, fire, args)


def _call(target: str | Target, fire: Fire, args: Mapping[str, Any]) -> Result:
    resolve = partial(CallRegistry().resolve, target) if isinstance(target, str) else lambda: target
    begun = resolve_and_begin(resolve, fire, args)
    if isinstance(begun, Result):
        return begun
    try:
        return asyncio.run(finish(begun, fire))
    except BaseException as error:  # the cancellation, if it cancels itself
        return failure_of(error)


def _load_main(order: Order) -> None:
    """Run the parent's main module under another name, so that its functions are found but it does not start again."""
    if order.main_module is not None:
        content = runpy.run_module(order.main_module, run_name=_MAIN, alter_sys=True)
    elif order.main_path is not None:
        content = runpy.run_path(order.main_path, run_name=_MAIN)
    else:
        return
    module = ModuleType(_MAIN)
    module.__dict__.update(content)
    sys.modules["__main__"] = sys.modules[_MAIN] = module


def _pack(result: Result) -> bytes:
    try:
        return pickle.dumps(result)
    except Exception as error:  # a user-defined result may contain anything
        return pickle.dumps(Failed(one_line(f"its result cannot be pickled: {type(error).__name__}: {error}")))
