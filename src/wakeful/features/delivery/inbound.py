"""What is wrong with listening to a channel: refused polling, unknown senders, unreadable messages, groups that moved.

Kept in the store for each channel, so that every node and every tool shows the same. Unknown senders and unreadable
messages are dropped a day after the last one: a public bot is written to by strangers, and that alone must not leave it
degraded for good.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, NamedTuple

from wakeful.core.time.instants import DAY, Duration, Instant, format_instant
from wakeful.ports.channel import ListenTrouble, Sender
from wakeful.ports.store import Tx

KEPT_FOR: Final[Duration] = DAY
SENDERS_MAX: Final = 20
"""How many unknown senders, or chats with unreadable messages, are kept of a channel: the newest."""
NAME_MAX: Final = 100


class InboundFinding(NamedTuple):
    """Something a person should know about what arrives on a channel."""

    sentence: str
    cure: str

    def to_json(self) -> dict[str, str]:
        return {"sentence": self.sentence, "cure": self.cure}


@dataclass(frozen=True, slots=True)
class Noted:
    """Messages of one sender that led to nothing."""

    sender: str
    words: str  # how the channel shows the sender, or what could not be read
    last_at: Instant
    times: int = 1


@dataclass(frozen=True, slots=True)
class Inbound:
    """What is known about listening to one channel."""

    refused: ListenTrouble | None = None
    refused_at: Instant | None = None  # since when
    unknown: tuple[Noted, ...] = ()  # newest first
    unreadable: tuple[Noted, ...] = ()
    moved: dict[str, str] = field(default_factory=dict)  # chats that have another id now

    def failing(self, trouble: ListenTrouble | None, now: Instant) -> "Inbound":
        """Polling is refused, or works again."""
        if trouble is None:
            return replace(self, refused=None, refused_at=None)
        return replace(self, refused=trouble, refused_at=now if self.refused_at is None else self.refused_at)

    def after_unknown(self, sender: Sender, now: Instant) -> "Inbound":
        """A message of someone who is not allowed."""
        return replace(self, unknown=_noted(self.unknown, sender.id, sender.name, now))

    def after_unreadable(self, sender: str, what: str, now: Instant) -> "Inbound":
        """A message that holds no text."""
        return replace(self, unreadable=_noted(self.unreadable, sender, what, now))

    def after_move(self, old: str, new: str) -> "Inbound":
        """A group got another id."""
        return replace(self, moved={**self.moved, old: new})


def _noted(known: tuple[Noted, ...], sender: str, words: str, now: Instant) -> tuple[Noted, ...]:
    before = next((one for one in known if one.sender == sender), None)
    times = 1 if before is None else before.times + 1
    others = tuple(one for one in known if one.sender != sender)
    return (Noted(sender, words[:NAME_MAX], now, times), *others)[:SENDERS_MAX]


def read(tx: Tx, channel: str) -> Inbound:
    """What is known about a channel; nothing, if nothing was ever wrong."""
    text = tx.meta.get(_name(channel))
    return _decode(text) if text else Inbound()


def write(tx: Tx, channel: str, state: Inbound) -> None:
    """Keep it, if it changed."""
    text = json.dumps(asdict(state), ensure_ascii=False, separators=(",", ":"))
    if text != tx.meta.get(_name(channel)):
        tx.meta.set(_name(channel), text)


def findings(state: Inbound, channel: str, *, is_allowed: Callable[[str], bool], now: Instant) -> list[InboundFinding]:
    """What a person should know, the most urgent first."""
    found: list[InboundFinding] = []
    if state.refused is not None and state.refused_at is not None:
        since = format_instant(state.refused_at)
        sentence = f"{channel}: no messages are received since {since}: {state.refused.error}"
        found.append(InboundFinding(sentence, state.refused.cure))
    for old, new in state.moved.items():
        cure = f'write "{new}" in place of "{old}" under [channels.{channel}]'
        found.append(InboundFinding(f"{channel}: the group {old} has the id {new} now", cure))
    for one in state.unknown:
        if _is_recent(one, now) and not is_allowed(one.sender):
            said = f"{channel}: {one.words} (id {one.sender}) wrote and is not allowed to{_often(one)}"
            cure = f'to allow it, add "{one.sender}" to senders under [channels.{channel}]; this goes away after a day'
            found.append(InboundFinding(said, cure))
    for one in state.unreadable:
        if _is_recent(one, now):
            said = f"{channel}: a message from {one.sender} could not be read, it is {one.words}{_often(one)}"
            found.append(InboundFinding(said, "only text and captions are read; the sender was told"))
    return found


def _is_recent(one: Noted, now: Instant) -> bool:
    return now - one.last_at < KEPT_FOR


def _often(one: Noted) -> str:
    return f", {one.times} times, last at {format_instant(one.last_at)}" if one.times > 1 else ""


def _decode(text: str) -> Inbound:
    """What was kept; what cannot be read is nothing, because a note must not stop the listening."""
    try:
        kept: dict[str, Any] = json.loads(text)
        refused = kept["refused"]
        return Inbound(
            None if refused is None else ListenTrouble(*refused),
            kept["refused_at"],
            tuple(Noted(**one) for one in kept["unknown"]),
            tuple(Noted(**one) for one in kept["unreadable"]),
            kept["moved"],
        )
    except (ValueError, KeyError, TypeError):
        return Inbound()


def _name(channel: str) -> str:
    return f"inbound:{channel}"
