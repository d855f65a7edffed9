"""Apply changed settings while the daemon runs.

The watch reads the file and refuses an invalid one; valid settings arrive through `changed`. Settings that need a
restart are held back (`config.status`). Then every listener gets the old and the new settings, in the order of
registration; each compares and applies its own part, so that nothing else needs to know who uses which setting. If one
fails, that is reported and the others are still called (L9). Afterwards `/api/config` shows the new settings.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wakeful.config import Loaded, SettingsRefused
    from wakeful.config.status import PendingChange, SettingsStatus
    from wakeful.ports.handlers import OnSettings

log = logging.getLogger("wakeful.server.daemon")

NAMED_MAX: Final = 20


class Reload:
    """The settings of a running daemon, and their listeners."""

    def __init__(self, started: Loaded) -> None:
        self._loaded = started
        self._held_back: tuple[PendingChange, ...] = ()
        self._failed: tuple[str, ...] = ()
        self._listeners: list[tuple[str, OnSettings]] = []

    @property
    def loaded(self) -> Loaded:
        """The settings in effect."""
        return self._loaded

    def standing(self, refused: SettingsRefused | None) -> SettingsStatus:
        """The status of the settings; `refused` are the errors the watch found in the current file."""
        from wakeful.config.status import SettingsStatus

        return SettingsStatus(self._loaded, self._held_back, refused, self._failed)

    def listen(self, name: str, listener: OnSettings) -> None:
        """Call a listener on every change from now on; the name is for the log."""
        self._listeners.append((name, listener))

    async def changed(self, new: Loaded) -> None:
        """Apply a valid file."""
        from wakeful.config import diff
        from wakeful.config.status import take_over

        old, (holds, held_back) = self._loaded, take_over(self._loaded, new)
        names = diff(old.settings, holds.settings)
        if names:
            self._failed = tuple(await self._tell(old, holds))
            log.info("the settings in %s changed and are in effect: %s", new.file, _named(names))
        self._loaded, self._held_back = holds, held_back  # together: one request shows both
        for setting in held_back:
            log.warning("%s", setting)

    async def _tell(self, old: Loaded, new: Loaded) -> list[str]:
        failed: list[str] = []
        for name, listener in self._listeners:
            try:
                answer = listener(old.settings, new.settings)
                if inspect.isawaitable(answer):
                    await answer
            except Exception as error:  # a failing listener must not affect the others
                log.exception("%s could not apply the settings", name)
                failed.append(f"{name}: {type(error).__name__}: {error}")
        return failed


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more
