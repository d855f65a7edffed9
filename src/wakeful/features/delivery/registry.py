"""The channels of this process: those from the settings, then those the program registered.

The inbox always exists and comes last: it takes everything that has no other destination.
"""

from collections.abc import Callable, Mapping
from typing import Final

from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.ports.channel import Channel

INBOX: Final = "inbox"
LAST: Final = "last"
NAME_MAX: Final = 64


class ChannelRegistry:
    """Channels by name, in routing order."""

    def __init__(self) -> None:
        self._configured: dict[str, Channel] = {}
        self._registered: dict[str, Channel] = {}
        self._inbox: Channel | None = None
        self._listeners: list[Callable[[], None]] = []

    def get(self, name: str) -> Channel | None:
        if name == INBOX:
            return self._inbox
        channel = self._registered.get(name) or self._configured.get(name)
        return self._inbox if channel is not None and channel.kind == INBOX else channel

    @property
    def names(self) -> list[str]:
        """In routing order, the inbox last."""
        named = dict.fromkeys((*self._configured, *self._registered))
        return [*(name for name in named if name != INBOX), *([] if self._inbox is None else [INBOX])]

    def is_registered(self, name: str) -> bool:
        """Whether the program registered it (as opposed to the settings)."""
        return name in self._registered

    def place_of(self, name: str) -> str | None:
        """Where the address of a channel from the settings is written."""
        channel = self._configured.get(name)
        return None if channel is None else f"wakeful.toml, [channels.{name}] {channel.address}".rstrip()

    def begin(self, inbox: Channel) -> None:
        """An app starts with these channels: set its inbox and drop earlier change listeners."""
        self._inbox = inbox
        self._listeners.clear()

    def configure(self, channels: Mapping[str, Channel]) -> list[Channel]:
        """Replace the channels from the settings; returns those no longer used."""
        gone = [channel for name, channel in self._configured.items() if channels.get(name) is not channel]
        self._configured = dict(channels)
        self._tell()
        return gone

    def register(self, name: str, channel: Channel) -> Callable[[], None]:
        """Add one of the program's channels; returns a function that removes it."""
        if not name or len(name) > NAME_MAX or name in (LAST, INBOX):
            refuse(
                "name", f"{shown(name)} is not a valid channel name; use 1 to {NAME_MAX} characters, not last or inbox"
            )
        self._registered[name] = channel
        self._tell()

        def unregister() -> None:
            if self._registered.get(name) is channel:
                del self._registered[name]
                self._tell()

        return unregister

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call this function whenever channels were added or removed."""
        self._listeners.append(listener)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()
