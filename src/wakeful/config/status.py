"""The status of the settings: what is in effect, what needs a restart, and what could not be applied.

Nearly every setting takes effect while the daemon runs. The address it listens on and its store do not: those keep
their old values until a restart, and the status says so.
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
    """A value that takes effect after a restart; both values are masked for display."""

    name: str
    now: Any
    written: Any

    def __str__(self) -> str:
        return f"{self.name} is {self.written!r} in the file, but stays {self.now!r} until the daemon is restarted"


@dataclass(frozen=True, slots=True)
class SettingsStatus:
    """The status of the settings."""

    loaded: Loaded  # in effect
    held_back: Sequence[PendingChange] = ()
    refused: SettingsRefused | None = None  # why the current file is not in effect
    failed: Sequence[str] = ()  # valid changes that could not be applied


def take_over(current: Loaded, new: Loaded) -> tuple[Loaded, tuple[PendingChange, ...]]:
    """Apply `new` to a daemon that was started with `current`; returns what is in effect and what needs a restart."""
    kept = [path for path in AT_START if _at(current.settings, path) != _at(new.settings, path)]
    # A listener that others can reach keeps its token, even if the new address would not need one.
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
    """The new settings with the old values at these paths."""
    for table, name in kept:
        changed = replace(getattr(new, str(table)), **{str(name): _at(current, (table, name))})
        new = replace(new, **{str(table): changed})
    return new
