"""The port for imported definitions: where definitions came from, and handovers from other schedulers."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from wakeful.core.time.instants import Duration, Instant

Stage: TypeAlias = Literal["written", "switching", "done", "abandoned"]


class Origin(NamedTuple):
    """Where a definition came from, in the order of its columns."""

    source: str  # the kind of import, or `apply`
    place: str  # the file, the folder or the system it was read from
    ref: str  # its identity in that source
    kind: str  # what it became: schedule, workflow or slot
    name: str
    digest: str  # of the definition as it was taken over
    at: Instant


class Handover(NamedTuple):
    """The journal of one takeover from another scheduler, in the order of its columns."""

    handover_id: str
    source: str
    host: str  # the machine that has the source
    stage: Stage
    hand_at: Instant  # instants before it belong to the source
    off_at: Instant | None  # when switching the source off began
    body: str  # JSON: what to switch off in the source, and what to start in Wakeful
    problem: str | None
    created_at: Instant
    updated_at: Instant


class Origins(Protocol):
    """Where definitions came from."""

    def of_place(self, source: str, place: str) -> list[Origin]: ...

    def put_many(self, rows: list[Origin]) -> None: ...

    def remove_many(self, rows: list[Origin]) -> None: ...


class Handovers(Protocol):
    """Journals of takeovers."""

    def put(self, row: Handover) -> None: ...

    def get(self, handover_id: str) -> Handover | None: ...

    def open(self) -> list[Handover]:
        """Unfinished handovers, oldest first."""
        ...


class SourceSwitch(Protocol):
    """Switches entries off in their system."""

    async def is_off(self, what: Sequence[Mapping[str, Any]]) -> bool: ...

    async def switch_off(self, what: Sequence[Mapping[str, Any]], *, within: Duration) -> None:
        """Switch these entries off, with a backup; raises `SwitchFailed`. Doing it twice is harmless."""
        ...


class SwitchFailed(Exception):
    """The source could not be switched off: the reason."""
