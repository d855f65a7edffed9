"""Server-sent events: the response of `/api/stream`."""

import json
from collections.abc import AsyncIterator
from typing import Final

from wakeful.core.time.instants import SECOND, Duration, format_instant
from wakeful.observe.stream import Event, Subscription
from wakeful.ports.clock import Clock

HEARTBEAT: Final[Duration] = 5 * SECOND
"""Proxies close connections that are silent for about a minute; a quarter of that is safe."""
RECONNECT: Final[Duration] = 2 * SECOND

_HELLO: Final = f"retry: {RECONNECT}\n: wakeful\n\n".encode()
_BEAT: Final = b": heartbeat\n\n"


def render_event(event: Event) -> bytes:
    """One event: `id` is for resuming, `event` is the stream's name, `data` is one line of JSON."""
    data = {"stream": event.stream, "seq": event.seq, "at": format_instant(event.at), "what": event.what, **event.data}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"id: {event.id}\nevent: {event.stream}\ndata: {text}\n\n".encode()


async def render(subscription: Subscription, clock: Clock, *, heartbeat: Duration = HEARTBEAT) -> AsyncIterator[bytes]:
    """The subscription's events, with a comment after each `heartbeat` without any."""
    try:
        yield _HELLO
        while not subscription.is_closed:
            events = await subscription.next(clock, heartbeat)
            yield b"".join(map(render_event, events)) if events else _BEAT
    finally:
        subscription.close()


def parse_last_id(text: str | None) -> int | None:
    """Parse a `Last-Event-ID` header; an invalid one counts as an id that was never issued."""
    if text is None or not text.strip():
        return None
    return int(text) if text.strip().isdecimal() else -1
