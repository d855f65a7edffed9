"""The history of a session, and what it proves about one turn.

A history is a list of events in order. Our turn starts with a `user.message` under our correlation id, or, if events
carry none, with our text after the position marked before sending. It ends with its terminal event (`session.idle`,
`session.error`) or at the next message.

The end of a turn is proven by an answer: the last `assistant.message`, if it requests no tool and no tool ran after it.
A terminal event under our own key proves it too. A terminal event without a key proves only an error: a dropped turn
goes idle just like an answered one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from wakeful.core.run.usage import Usage, added, usage_of
from wakeful.integrations.actions.reply import reply_of
from wakeful.integrations.system.text import one_line

Event: TypeAlias = dict[str, Any]

_LIFE: Final = ("assistant.", "tool.")
_TERMINAL: Final = ("session.idle", "session.error")


@dataclass(frozen=True, slots=True)
class HistoryVerdict:
    """What a history proves about our turn."""

    is_found: bool = False
    is_alive: bool = False
    is_answered: bool = False  # the agent's last action was a message
    is_ended: bool = False  # by a terminal event
    is_keyed: bool = False  # the terminal event carries our key
    error: str | None = None
    reply: str | None = None
    usage: Usage | None = None
    has_keys: bool = False  # its messages carry correlation ids

    @property
    def is_over(self) -> bool:
        """Whether something after our message ends the turn."""
        return self.is_ended or self.is_answered

    @property
    def is_proven(self) -> bool:
        """Whether the history alone proves that the turn ended without an error."""
        return self.error is None and self.is_ended and (self.is_keyed or self.is_answered)


def tell(events: Sequence[Event], key: str, texts: Iterable[str] = ()) -> HistoryVerdict:
    """The verdict on the turn with this key, or, if messages have no keys, with one of these texts."""
    wanted = {text.strip() for text in texts}
    asked = [index for index, event in enumerate(events) if _kind(event) == "user.message"]
    has_keys = any(_key(events[index]) is not None for index in asked)
    ours = [index for index in asked if _key(events[index]) == key]
    if not ours and not has_keys:
        ours = [index for index in asked if (_text(events[index]) or "").strip() in wanted]
    if ours:
        return _turn(events[ours[-1] + 1 :], key, has_keys=has_keys)
    # The message is missing; its terminal event may be there, under our key.
    ends = [event for event in events if _kind(event) in _TERMINAL and _key(event) == key]
    return _turn(ends[-1:], key, has_keys=True) if ends else HistoryVerdict(has_keys=has_keys)


def _turn(events: Sequence[Event], key: str, *, has_keys: bool) -> HistoryVerdict:
    is_alive = is_answered = False
    reply: str | None = None
    usage: Usage | None = None
    for event in events:
        kind = _kind(event)
        if kind == "user.message":
            break
        if kind in _TERMINAL and _key(event) in (None, key):
            error = _error(event) if kind == "session.error" else None
            is_keyed = _key(event) == key
            return HistoryVerdict(True, is_alive, is_answered, True, is_keyed, error, reply, usage, has_keys)
        is_alive = is_alive or kind.startswith(_LIFE)
        usage = added(usage, _usage(kind, event))
        if kind == "assistant.message":
            text = reply_of(_text(event))
            is_answered = text is not None and not _data(event).get("toolRequests")
            reply = _later(reply, text)
        elif kind.startswith("tool."):
            is_answered = False
    return HistoryVerdict(True, is_alive, is_answered, False, False, None, reply, usage, has_keys)


def _error(event: Event) -> str:
    return one_line(_text(event) or "") or "the session ended in error"


def _later(reply: str | None, text: str | None) -> str | None:
    """The reply after one more message: the last with text, because one that only calls a tool is empty."""
    if text is None or not text.strip():
        return reply if reply is not None and reply.strip() else text
    return text


def _kind(event: Event) -> str:
    kind = event.get("type")
    return kind if isinstance(kind, str) else ""


def _data(event: Event) -> Event:
    data = event.get("data")
    return data if isinstance(data, dict) else event


def _key(event: Event) -> str | None:
    key = event.get("correlationId") or _data(event).get("correlationId")
    return key if isinstance(key, str) else None


def _text(event: Event) -> str | None:
    data = _data(event)
    for name in ("content", "message", "text", "prompt", "error"):
        value = data.get(name)
        if isinstance(value, dict):  # an error is often an object with a message
            value = value.get("message")
        if isinstance(value, str):
            return value
    return None


def _usage(kind: str, event: Event) -> Usage | None:
    data = _data(event)
    counted = usage_of(data.get("usage"))
    if counted is not None or kind != "assistant.usage":
        return counted
    return usage_of({name: count for name, count in data.items() if name.lower().endswith("tokens")})
