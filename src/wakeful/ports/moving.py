"""The port to another scheduler whose entries are taken over."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from wakeful.core.time.instants import Duration


class SourceSwitch(Protocol):
    """Switches entries off in their system."""

    async def is_off(self, what: Sequence[Mapping[str, Any]]) -> bool: ...

    async def switch_off(self, what: Sequence[Mapping[str, Any]], *, within: Duration) -> None:
        """Switch these entries off, with a backup; raises `SwitchFailed`. Doing it twice is harmless."""
        ...


class SwitchFailed(Exception):
    """The source could not be switched off: the reason."""
