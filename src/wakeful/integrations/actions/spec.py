"""Type check for action specs."""

from typing import TypeVar

from wakeful.core.schedule.actions import ActionSpec, Call, Command, Dispatch, Http

Spec = TypeVar("Spec", Call, Command, Dispatch, Http)


def expect(spec: ActionSpec, kind: type[Spec]) -> Spec:
    """The spec with its expected type; anything else is a wiring error."""
    if not isinstance(spec, kind):
        raise TypeError(f"an action for {kind.__name__} got {type(spec).__name__}")
    return spec
