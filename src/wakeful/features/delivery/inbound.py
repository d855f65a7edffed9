"""Problems with receiving messages on a channel: refused polling, unknown senders, unreadable messages, moved groups.

Kept in the store per channel, so that every node and tool shows the same. Unknown senders and unreadable messages are
dropped a day after the last one: strangers write to public bots, and that must not leave a bot degraded for good.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, NamedTuple

from wakeful.core.time.instants import DAY, Duration, Instant, format_instant
from wakeful.ports.channel import ListenTrouble, Sender
from wakeful.ports.meta import Meta
from wakeful.ports.store import Tx

KEPT_FOR: Final[Duration] = DAY
SENDERS_MAX: Final = 20
"""How many unknown senders, or chats with unreadable messages, are kept per channel (the newest)."""
NAME_MAX: Final = 100


class InboundFinding(NamedTuple):
    """A problem with receiving on a channel."""

    sentence: str
    cure: str


@dataclass(frozen=True, slots=True)
class Noted:
    """Ignored messages from one sender."""

    sender: str
    words: str  # the sender's display name, or what could not be read
    last_at: Instant
    times: int = 1


@dataclass(frozen=True, slots=True)
class Inbound:
    """The state of receiving on one channel."""

    refused: ListenTrouble | None = None
    refused_at: Instant | None = None  # since when
    unknown: tuple[Noted, ...] = ()  # newest first
    unreadable: tuple[Noted, ...] = ()
    moved: dict[str, str] = field(default_factory=dict)  # chats whose id changed, old to new

    def failing(self, trouble: ListenTrouble | None, now: Instant) -> "Inbound":
        """The state when polling is refused (or, with None, works again)."""
        if trouble is None:
            return replace(self, refused=None, refused_at=None)
        return replace(self, refused=trouble, refused_at=now if self.refused_at is None else self.refused_at)

    def after_unknown(self, sender: Sender, now: Instant) -> "Inbound":
        """The state after a message from a sender who is not allowed."""
        return replace(self, unknown=_noted(self.unknown, sender.id, sender.name, now))

    def after_unreadable(self, sender: str, what: str, now: Instant) -> "Inbound":
        """The state after a message without text."""
        return replace(self, unreadable=_noted(self.unreadable, sender, what, now))

    def after_move(self, old: str, new: str) -> "Inbound":
        """The state after a group changed its id."""
        return replace(self, moved={**self.moved, old: new})


def _noted(known: tuple[Noted, ...], sender: str, words: str, now: Instant) -> tuple[Noted, ...]:
    before = next((noted for noted in known if noted.sender == sender), None)
    times = 1 if before is None else before.times + 1
    others = tuple(noted for noted in known if noted.sender != sender)
    return (Noted(sender, words[:NAME_MAX], now, times), *others)[:SENDERS_MAX]


def read(tx: Tx, channel: str) -> Inbound:
    """The state of a channel; empty if there never was a problem."""
    text = tx[Meta].value(_name(channel))
    return _decode(text) if text else Inbound()


def write(tx: Tx, channel: str, state: Inbound) -> None:
    """Store the state if it changed."""
    text = json.dumps(asdict(state), ensure_ascii=False, separators=(",", ":"))
    if text != tx[Meta].value(_name(channel)):
        tx[Meta].set(_name(channel), text)


def findings(state: Inbound, channel: str, *, is_allowed: Callable[[str], bool], now: Instant) -> list[InboundFinding]:
    """The problems to show, most urgent first."""
    entries: list[InboundFinding] = []
    if state.refused is not None and state.refused_at is not None:
        since = format_instant(state.refused_at)
        sentence = f"{channel}: no messages have been received since {since}: {state.refused.error}"
        entries.append(InboundFinding(sentence, state.refused.cure))
    for old, new in state.moved.items():
        cure = f'write "{new}" in place of "{old}" under [channels.{channel}]'
        entries.append(InboundFinding(f"{channel}: the group {old} now has the id {new}", cure))
    for noted in state.unknown:
        if _is_recent(noted, now) and not is_allowed(noted.sender):
            said = f"{channel}: {noted.words} (id {noted.sender}) wrote without permission{_often(noted)}"
            cure = f'to allow it, add "{noted.sender}" to senders under [channels.{channel}]; this expires after a day'
            entries.append(InboundFinding(said, cure))
    for noted in state.unreadable:
        if _is_recent(noted, now):
            said = f"{channel}: a message from {noted.sender} could not be read: it is {noted.words}{_often(noted)}"
            entries.append(InboundFinding(said, "only text and captions are read; the sender was notified"))
    return entries


def _is_recent(noted: Noted, now: Instant) -> bool:
    return now - noted.last_at < KEPT_FOR


def _often(noted: Noted) -> str:
    return f", {noted.times} times, last at {format_instant(noted.last_at)}" if noted.times > 1 else ""


def _decode(text: str) -> Inbound:
    """The stored state; an unreadable one counts as empty, because it must not stop the listener."""
    try:
        kept: dict[str, Any] = json.loads(text)
        refused = kept["refused"]
        return Inbound(
            None if refused is None else ListenTrouble(*refused),
            kept["refused_at"],
            tuple(Noted(**stored) for stored in kept["unknown"]),
            tuple(Noted(**stored) for stored in kept["unreadable"]),
            kept["moved"],
        )
    except (ValueError, KeyError, TypeError):
        return Inbound()


def _name(channel: str) -> str:
    return f"inbound:{channel}"
