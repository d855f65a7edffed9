"""How the settings stand: what holds now, what is written and holds only after a restart, what could not be taken over.

Nearly everything changes while the daemon runs. Where it listens and what it keeps everything in does not: those values
are held back at what they were, and said to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from wakeful.config.faults import SettingsRefused
from wakeful.config.load import Loaded
from wakeful.config.model import Settings
from wakeful.config.places import Path, dotted
from wakeful.integrations.net.guard import is_loopback

AT_START: Final[tuple[Path, ...]] = (("server", "host"), ("server", "port"), ("server", "public_url"), ("store", "url"))
TOKEN: Final[Path] = ("server", "token")


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A value that is written and holds from the next start on; both as they may be shown."""

    name: str
    now: Any
    written: Any

    def __str__(self) -> str:
        return f"{self.name} is written as {self.written!r}, and stays {self.now!r} until the daemon is started anew"


@dataclass(frozen=True, slots=True)
class SettingsStatus:
    """The whole of it."""

    loaded: Loaded  # what holds
    held_back: Sequence[PendingChange] = ()
    refused: SettingsRefused | None = None  # why the file as it is now changes nothing
    failed: Sequence[str] = ()  # what was right and could not be taken over all the same


def take_over(current: Loaded, new: Loaded) -> tuple[Loaded, tuple[PendingChange, ...]]:
    """What holds once `new` is taken over by a daemon that began with some of what is in `current`."""
    kept = [path for path in AT_START if _at(current.settings, path) != _at(new.settings, path)]
    # A door that others can reach is never left open because the file means another one for later.
    if new.settings.server.token is None and not is_loopback(current.settings.server.host):
        kept.append(TOKEN)
    if not kept:
        return new, ()
    held_back = tuple(PendingChange(dotted(path), current.written[path], new.written[path]) for path in kept)
    holds = replace(
        new,
        settings=_with(new.settings, current.settings, kept),
        written={**new.written, **{path: current.written[path] for path in kept}},
        sources={**new.sources, **{dotted(path): current.sources[dotted(path)] for path in kept}},
    )
    return holds, held_back


def _at(settings: Settings, path: Path) -> Any:
    table, name = path
    return getattr(getattr(settings, str(table)), str(name))


def _with(new: Settings, current: Settings, kept: Sequence[Path]) -> Settings:
    """The new settings with these values as they were."""
    for table, name in kept:
        changed = getattr(new, str(table)).model_copy(update={str(name): _at(current, (table, name))})
        new = new.model_copy(update={str(table): changed})
    return new
