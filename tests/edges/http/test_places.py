"""A few requests are in progress at a time, so that they do not delay what is due."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from wakeful.server.http.middleware import Middleware
from wakeful.server.http.places import PLACES, Place, Places
from wakeful.server.http.serving import Api, Serving

LONG = 3600.0


async def passes(n: int = 5) -> None:
    """Let the loop make some passes."""
    for _ in range(n):
        await asyncio.sleep(0)


async def test_requests_beyond_the_places_begin_in_order_as_others_leave() -> None:
    """One for each place that is left."""
    places = Places(2, kept_for=LONG)
    begun: list[int] = []
    held: dict[int, Place] = {}

    async def request(number: int) -> None:
        held[number] = await places.take()
        begun.append(number)

    tasks = [asyncio.create_task(request(number)) for number in range(5)]
    await passes()
    assert begun == [0, 1]
    held[1].leave()
    held[1].leave()  # counts once
    await passes()
    assert begun == [0, 1, 2]
    held[0].leave()
    held[2].leave()
    await asyncio.gather(*tasks)
    assert begun == [0, 1, 2, 3, 4]


async def test_a_place_that_everyone_left_is_free_again() -> None:
    """As many as before, and not more."""
    places = Places(2, kept_for=LONG)
    for place in [await places.take(), await places.take()]:
        place.leave()
    await places.take()
    await places.take()
    third = asyncio.create_task(places.take())
    await passes()
    assert not third.done()
    third.cancel()


async def test_a_request_that_waits_for_something_else_gives_its_place_up() -> None:
    """Such as one that waits for the end of a run."""
    places = Places(1, kept_for=0.01)
    waiting = await places.take()
    async with asyncio.timeout(30):
        second = await places.take()
    waiting.leave()  # it has none any more
    third = asyncio.create_task(places.take())
    await passes()
    assert not third.done()
    second.leave()
    (await third).leave()


async def test_a_request_that_ends_while_it_waits_takes_no_place_with_it() -> None:
    """Neither one that still waits, nor one that was given its place at that moment."""
    places = Places(1, kept_for=LONG)
    first = await places.take()
    early, late, last = (asyncio.create_task(places.take()) for _ in range(3))
    await passes()
    early.cancel()
    await passes()
    first.leave()
    late.cancel()
    async with asyncio.timeout(30):
        await last
    assert early.cancelled()
    assert late.cancelled()


async def test_open_streams_hold_no_place() -> None:
    """A response that has begun may take forever."""
    is_over = asyncio.Event()
    begun: list[str] = []

    async def stream(scope: Any, _: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.append(scope["path"])
        await is_over.wait()

    async def caller(*_: Any) -> None:
        return None

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: Any) -> None:
        return None

    serving = Serving(access=lambda: SimpleNamespace(knows_host=lambda _: True), body_max=lambda: 100)  # type: ignore[arg-type, return-value]
    parts = SimpleNamespace(serving=serving, authentication=SimpleNamespace(caller=caller), is_open=lambda: True)
    middleware = Middleware(stream, cast(Api, parts))
    scope = {"type": "http", "method": "GET", "path": "/healthz", "headers": [(b"host", b"localhost")]}
    many = [asyncio.create_task(middleware(dict(scope), receive, send)) for _ in range(PLACES + 5)]
    await passes(20)
    open_streams = len(begun)
    is_over.set()
    await asyncio.gather(*many)
    assert open_streams == PLACES + 5
