"""Handler replies: parsing and checking what handlers may return in each phase.

A handler is an external program: it may return anything, of any shape. Any error is reported in one sentence that names
the place and the cure, and becomes the error of that run only. The permissions of each phase are checked here as well:
`prepare` reserves and cannot publish, `mutate` does neither, `produce` and `next` publish only to the topics that their
handler declared. `mutate` is different: its side effect happened, whatever its reply says.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from wakeful.core.errors import Invalid
from wakeful.core.fields import Fields, check_plain, shown
from wakeful.core.time.instants import Instant, parse_instant

PEEK_MAX: Final = 100
"""How many pending messages of each topic `prepare` gets."""

PAGE_BYTES_MAX: Final = 4 * 1024 * 1024
"""How many bytes of payloads `prepare` gets in all. Each topic has an equal share, and at least one message."""

MESSAGE_ID_MAX: Final = 500
MESSAGES_MAX: Final = 10_000
RESULT_MAX: Final = 4 * 1024 * 1024
_NOT_IN_MUTATE: Final = ("messages", "state", "reservations")
_LISTS: Final = ("messages", "reservations", "skip")
_encode: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class NewMessage(NamedTuple):
    """A message to be published."""

    topic: str
    message_id: str
    payload: str  # JSON


class Published(NamedTuple):
    """The reply to `produce` or `next`."""

    messages: tuple[NewMessage, ...]
    state: str | None  # JSON; None: unchanged
    has_state: bool


class Prepared(NamedTuple):
    """The reply to `prepare`."""

    reservations: Mapping[str, tuple[str, ...]]  # ids by topic
    skip: Mapping[str, tuple[str, ...]]  # ids by topic: not to be shown again
    show: Mapping[str, tuple[str, ...]]  # ids by topic: `prepare` is called again with these
    wake_at: Instant | None
    answer: str  # JSON: reservations, data and ui, passed to the later phases

    @property
    def size(self) -> int:
        return sum(map(len, self.reservations.values()))


class Mutated(NamedTuple):
    """The reply to `mutate`."""

    result: str | None = None  # JSON
    wrong: str | None = None  # why there is no result although the side effect happened


class WrongAnswer(Exception):
    """A reply that the phase does not allow; the message says what is wrong with it."""


def read_published(data: Any, *, publishes: Sequence[str], is_required: bool) -> Published:
    """The reply to `produce` (messages required) or `next`."""
    fields = _fields(data, ("messages", "state"))
    if is_required and not fields.has("messages"):
        fields.fail("messages", "missing; return a list, which may be empty")
    messages = _messages(fields, publishes)
    _finish(fields)
    has_state = data.get("state") is not None
    return Published(messages, _encode(data["state"]) if has_state else None, has_state)


def read_prepared(data: Any, *, subscribe: Sequence[str], may_show: bool = True) -> Prepared:
    """The reply to `prepare`. On the second call nothing more is shown, so `show` has no effect."""
    known = ("reservations", "data", "ui", "wakeAt", "skip", "show")
    fields = _fields(data, known, cannot=("messages", "state"))
    show = _show(fields, subscribe) if may_show else {}
    if show:  # it is called again: only the second reply has to reserve
        reservations: dict[str, tuple[str, ...]] = {}
    else:
        reservations = _chosen(fields, "reservations", subscribe, is_required=True)
    skip = _chosen(fields, "skip", subscribe, is_required=False)
    for topic, ids in skip.items():
        both = set(ids) & set(reservations.get(topic, ()))
        if both:
            fields.fail("skip", f"{shown(min(both))} in '{topic}' is also reserved; reserve it or skip it")
    wake_at = _wake_at(fields)
    _finish(fields)
    kept = {"reservations": [{"topic": topic, "ids": list(ids)} for topic, ids in reservations.items()]}
    kept |= {name: data[name] for name in ("data", "ui") if data.get(name) is not None}
    return Prepared(reservations, skip, show, wake_at, _encode(kept))


def read_mutated(data: Any) -> Mutated:
    """The reply to `mutate`: a JSON value, or an object with nothing but a `result`, and what it used."""
    if isinstance(data, Mapping) and data.keys() <= {"result", "usage", *_NOT_IN_MUTATE}:
        # Anything else is a result of its own: many services return an object that has a `state`.
        forbidden = [name for name in _NOT_IN_MUTATE if data.get(name)]
        if forbidden:
            wrong = f"it returned {' and '.join(forbidden)}, which mutate does not allow; return only a result"
            return happened(wrong)
        data = data.get("result")
    if data is None:
        return Mutated()
    try:
        check_plain(data)
    except Invalid as invalid:
        return happened(f"it returned a value that is not JSON: {invalid}")
    text = _encode(data)
    if len(text) > RESULT_MAX:
        return happened(f"it returned more than {RESULT_MAX} characters; return less, and store the rest elsewhere")
    return Mutated(text)


def happened(wrong: str) -> Mutated:
    """A side effect that happened, without a result that can be used."""
    return Mutated(None, f"the side effect happened, but its result is lost: {wrong}")


def read_message(data: Any, topic: str) -> NewMessage:
    """A message published by a person. Raises `Invalid`."""
    check_plain(data)
    fields = Fields(data if isinstance(data, Mapping) else {"payload": data})
    fields.refuse_unknown(("id", "payload"))
    message_id = _message_id(fields)
    fields.finish()
    return NewMessage(topic, message_id, _encode(fields.raw("payload")))


def _fields(data: Any, known: tuple[str, ...], *, cannot: tuple[str, ...] = ()) -> Fields:
    if not isinstance(data, Mapping):
        raise WrongAnswer(f"returned {shown(data)}, which is not a JSON object; return {{{', '.join(known)}}}")
    # Long lists are checked item by item where they are read: as one text, their many brackets look like deep nesting.
    _must_be_plain(
        {name: value for name, value in data.items() if not (name in _LISTS and isinstance(value, list | tuple))}
    )
    forbidden = [name for name in cannot if data.get(name)]
    if forbidden:
        raise WrongAnswer(
            f"returned {' and '.join(forbidden)}, which this phase does not allow; return {', '.join(known)}"
        )
    fields = Fields(data)
    fields.refuse_unknown((*known, *cannot))
    return fields


def _must_be_plain(data: Any, place: str = "") -> None:
    try:
        check_plain(data)
    except Invalid as invalid:
        raise WrongAnswer(f"returned a value that cannot be stored: {place}{invalid}") from None


def _finish(fields: Fields) -> None:
    try:
        fields.finish()
    except Invalid as invalid:
        raise WrongAnswer(f"returned the wrong shape: {invalid}") from None


def _messages(fields: Fields, publishes: Sequence[str]) -> tuple[NewMessage, ...]:
    listed = fields.raw("messages")
    if listed is None:
        return ()
    if not isinstance(listed, list | tuple):
        fields.fail("messages", f"{shown(listed)} is not a list; write [{{topic, id, payload}}, …]")
        return ()
    if len(listed) > MESSAGES_MAX:
        fields.fail("messages", f"there are {len(listed)}, and at most {MESSAGES_MAX} can be published in one reply")
        return ()
    messages: list[NewMessage] = []
    for index, data in enumerate(listed):
        message = _message(fields, data, f"messages[{index}]", publishes)
        if message is not None:
            messages.append(message)
        if len(fields.errors) > PEEK_MAX:
            break
    return tuple(messages)


def _message(fields: Fields, data: Any, place: str, publishes: Sequence[str]) -> NewMessage | None:
    if not isinstance(data, Mapping):
        fields.fail(place, f"{shown(data)} is not an object; write {{topic, id, payload}}")
        return None
    _must_be_plain(data, f"{place}.")
    inner = Fields(data, f"{place}.")
    inner.refuse_unknown(("topic", "id", "payload"))
    topic = inner.filled("topic", "name the topic")
    if topic and topic not in publishes:
        known = ", ".join(publishes) or "none"
        inner.fail("topic", f"{shown(topic)} is not one of its declared topics ({known}); add it to publishes")
    message_id = _message_id(inner)
    fields.errors.extend(inner.errors)
    return None if inner.errors else NewMessage(topic, message_id, _encode(data.get("payload")))


def _message_id(fields: Fields) -> str:
    message_id = fields.filled("id", "give the message an id that is unique in its topic")
    if len(message_id) > MESSAGE_ID_MAX:
        fields.fail("id", f"is {len(message_id)} characters long; give at most {MESSAGE_ID_MAX}")
    return message_id


def _chosen(fields: Fields, field: str, subscribe: Sequence[str], *, is_required: bool) -> dict[str, tuple[str, ...]]:
    """The selected messages: ids by topic."""
    listed = fields.raw(field)
    if listed is None and not is_required:
        return {}
    if not isinstance(listed, list | tuple):
        problem = "missing" if listed is None else f"{shown(listed)} is not a list"
        fields.fail(field, f"{problem}; return [{{topic, ids}}, …], or [] for nothing")
        return {}
    ids_by_topic: dict[str, dict[str, None]] = {}
    for index, data in enumerate(listed):
        place = f"{field}[{index}]"
        if not isinstance(data, Mapping):
            fields.fail(place, f"{shown(data)} is not an object; write {{topic, ids}}")
            continue
        _must_be_plain(data, f"{place}.")
        inner = Fields(data, f"{place}.")
        inner.refuse_unknown(("topic", "ids"))
        topic = inner.filled("topic", "name the topic")
        _must_subscribe(inner, "topic", topic, subscribe)
        ids_by_topic.setdefault(topic, {}).update(dict.fromkeys(_ids(inner, "ids", inner.raw("ids"))))
        fields.errors.extend(inner.errors)
        if len(fields.errors) > PEEK_MAX:
            break
    return {topic: tuple(ids) for topic, ids in ids_by_topic.items() if ids}


def _show(fields: Fields, subscribe: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The messages it wants to see on the second call: ids by topic."""
    wanted = fields.raw("show")
    if wanted is None:
        return {}
    if not isinstance(wanted, Mapping):
        fields.fail("show", f"{shown(wanted)} is not an object; write {{topic: [ids]}}")
        return {}
    ids_by_topic: dict[str, tuple[str, ...]] = {}
    for topic, listed in wanted.items():
        _must_subscribe(fields, "show", topic, subscribe)
        ids = tuple(dict.fromkeys(_ids(fields, f"show.{topic}", listed)))
        if len(ids) > PEEK_MAX:
            fields.fail(f"show.{topic}", f"there are {len(ids)} ids, and at most {PEEK_MAX} can be shown in one call")
        ids_by_topic[topic] = ids
    return {topic: ids for topic, ids in ids_by_topic.items() if ids}


def _must_subscribe(fields: Fields, field: str, topic: str, subscribe: Sequence[str]) -> None:
    if topic and topic not in subscribe:
        fields.fail(field, f"{shown(topic)} is not subscribed to ({', '.join(subscribe)})")


def _ids(fields: Fields, field: str, listed: Any) -> Sequence[str]:
    if isinstance(listed, list | tuple) and all(isinstance(item, str) for item in listed):
        return listed
    fields.fail(field, f"{shown(listed)} is not a list of message ids")
    return ()


def _wake_at(fields: Fields) -> Instant | None:
    written = fields.raw("wakeAt")
    if written is None:
        return None
    if not isinstance(written, str):
        fields.fail("wakeAt", f"{shown(written)} is not a string; write it like 2026-01-30T09:00:00Z")
        return None
    return fields.read("wakeAt", lambda text: parse_instant(text, field="wakeAt"))
