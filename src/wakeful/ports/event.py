"""How the events of the live stream are described.

An `EventKind` names an event, says what it means, and has the shape of its data, a dataclass. Its JSON and its place in
docs/events.md are made from it; a report cannot be made without one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from wakeful.core.description import Object
from wakeful.core.returned import returned

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class EventKind(Generic[T]):
    """One event of a stream. An attribute of its data with a default is left out while it has that value."""

    stream: str
    what: str
    says: str
    shape: type[T]

    @property
    def data(self) -> Object[T]:
        """The description of its data."""
        return returned(self.shape)

    def json(self, data: T) -> Mapping[str, Any]:
        return self.data.write(data)


@dataclass(frozen=True, slots=True)
class EventStream:
    """A stream, and its events in the order of the docs."""

    name: str
    says: str = ""
    kinds: list[EventKind[Any]] = field(default_factory=list)

    def event(self, what: str, says: str, shape: type[T]) -> EventKind[T]:
        """Describe an event."""
        kind = EventKind(self.name, what, says, shape)
        self.kinds.append(kind)
        return kind
