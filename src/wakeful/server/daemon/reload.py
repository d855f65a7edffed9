"""Settings that change while the daemon runs.

Theory of operation: the watch reads the file and refuses a bad one; what is left comes here as `changed`. What only a
restart can change is held back (`settings.standing`). Then every part that lives by settings is told of the old and the
new ones, whole, in the order the parts began to listen; each compares what is its own and takes it over, so that
nothing else needs to know which part lives by which line. A part that fails is reported and the others are told all the
same (L9). When the last one has been told, the new settings are what `/api/config` shows.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wakeful.config import Loaded, SettingsRefused
    from wakeful.config.standing import PendingChange, SettingsStatus
    from wakeful.ports.handlers import OnSettings

log = logging.getLogger("wakeful.server.daemon")

NAMED_MAX: Final = 20


class Reload:
    """The settings of a running daemon, and whoever lives by them."""

    def __init__(self, started: Loaded) -> None:
        self._loaded = started
        self._held_back: tuple[PendingChange, ...] = ()
        self._failed: tuple[str, ...] = ()
        self._listeners: list[tuple[str, OnSettings]] = []

    @property
    def loaded(self) -> Loaded:
        """What holds now."""
        return self._loaded

    def standing(self, refused: SettingsRefused | None) -> SettingsStatus:
        """All that is to be said; `refused` is what the watch found wrong with the file as it is now."""
        from wakeful.config.standing import SettingsStatus

        return SettingsStatus(self._loaded, self._held_back, refused, self._failed)

    def listen(self, name: str, listener: OnSettings) -> None:
        """Tell it of every change from now on; the name is for the log."""
        self._listeners.append((name, listener))

    async def changed(self, new: Loaded) -> None:
        """Take over a file that is right."""
        from wakeful.config import diff
        from wakeful.config.standing import take_over

        old, (holds, held_back) = self._loaded, take_over(self._loaded, new)
        names = diff(old.settings, holds.settings)
        if names:
            self._failed = tuple(await self._tell(old, holds))
            log.info("the settings in %s changed and hold from now on: %s", new.file, _named(names))
        self._loaded, self._held_back = holds, held_back  # together: both are shown by one request
        for one in held_back:
            log.warning("%s", one)

    async def _tell(self, old: Loaded, new: Loaded) -> list[str]:
        failed: list[str] = []
        for name, listener in self._listeners:
            try:
                answer = listener(old.settings, new.settings)
                if inspect.isawaitable(answer):
                    await answer
            except Exception as error:  # whatever one part cannot do, the others can
                log.exception("%s could not take over the settings", name)
                failed.append(f"{name}: {type(error).__name__}: {error}")
        return failed


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more
