"""Runs a call in a separate process, which can be killed.

A fresh interpreter is started in its own session; it does nothing until it has read its whole order from standard
input, which is written only after the process has been recorded. So a crash of this process at any moment leaves either
nothing running or a recorded process. See `isolated` for the child side.
"""

import json
import pickle
import signal
import sys
from typing import Any, Final

from wakeful.core.run.results import Failed, Result
from wakeful.core.schedule.actions import Call
from wakeful.integrations.actions.child import CannotStart, Children, Spawn
from wakeful.integrations.actions.environment import environment
from wakeful.integrations.actions.fire import Fire as FireView
from wakeful.integrations.actions.isolated import RESULT_MARK, Order
from wakeful.integrations.actions.registry import Target
from wakeful.integrations.system.text import one_line
from wakeful.ports.action import Fire, Ladder

RESULT_MAX: Final = 16 * 1024 * 1024

# Set our search path before anything is imported: it may have changed since this interpreter started.
_START: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from wakeful.integrations.actions.isolated import main; main()"
)


class Unsendable(Exception):
    """The call cannot be sent to another process; the message gives the cure."""


def pack(target: str | Target, call: Call, fire: object) -> bytes:
    """The pickled call. Raises `Unsendable`."""
    try:
        return pickle.dumps((target, fire, dict(call.args)))
    except Exception as error:  # pickling runs the objects' own code
        cause = one_line(f"{type(error).__name__}: {error}")
        raise Unsendable(
            f"it cannot be sent to a separate process ({cause}); use a module-level function and plain args"
        ) from None


async def perform_isolated(target: str | Target, call: Call, fire: Fire, ladder: Ladder, children: Children) -> Result:
    """Make the call in a fresh process and wait for it."""
    try:
        packed = pack(target, call, FireView(fire))
    except Unsendable as error:
        return Failed(str(error), permanent=True)
    report = _Report()
    argv = [sys.executable, "-c", _START, json.dumps(sys.path)]
    spawn = Spawn(argv, environment(fire, {}), pickle.dumps(_order(target, packed)), merges_stderr=False)
    try:
        ending = await children.run(spawn, ladder, report.feed)
    except CannotStart as error:
        return Failed(str(error), permanent=True)
    return report.result(ending.code)


def _order(target: str | Target, packed: bytes) -> Order:
    module = target.partition(":")[0] if isinstance(target, str) else getattr(target, "__module__", None)
    if module != "__main__":
        return Order(None, None, packed)
    ours: Any = sys.modules["__main__"]
    spec = getattr(ours, "__spec__", None)
    if spec is not None:  # started with -m
        return Order(None, spec.name, packed)
    return Order(getattr(ours, "__file__", None), None, packed)


class _Report:
    """The child's output."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> None:
        room = RESULT_MAX - len(self._received)
        self._received += data[:room]

    def result(self, code: int | None) -> Result:
        _, mark, packed = bytes(self._received).partition(RESULT_MARK)
        if not mark:
            return Failed(f"its process ended without a result ({_how(code)})")
        try:
            result: Result = pickle.loads(packed)  # noqa: S301 - written by the process we started
        except Exception as error:
            return Failed(one_line(f"its result cannot be read: {type(error).__name__}: {error}"))
        return result


def _how(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    return f"killed by {signal.Signals(-code).name}" if -code in set(signal.Signals) else f"killed by signal {-code}"
