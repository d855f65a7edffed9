"""Many keep-alive connections that send one request after another, in a process of their own.

A plain protocol on uvloop instead of an HTTP library: the clients share the processor with the server, and should take
little of it. Reads one JSON job per line from standard input, and writes one JSON result per line.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import uvloop

END: Final = b"\r\n\r\n"
CLOSE_WITHIN: Final = 30.0


class Connection(asyncio.Protocol):
    """Sends a request, waits for the whole response, and sends the next one until the time is over."""

    def __init__(self, next_request: Callable[[], bytes | None], samples: list[float], codes: Counter[str]) -> None:
        self._next_request = next_request
        self._samples = samples
        self._codes = codes
        self._seen = bytearray()
        self._awaited = 0
        self._sent_at = 0.0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._seen += data
        if not self._awaited:
            head = self._seen.find(END)
            if head < 0:
                return
            self._codes[self._seen[9:12].decode()] += 1
            self._awaited = head + len(END) + _length(bytes(self._seen[:head]))
        if len(self._seen) >= self._awaited:
            self._samples.append(time.perf_counter() - self._sent_at)
            self._seen.clear()
            self._awaited = 0
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self._codes["closed"] += 1
            self.ended.set_result(None)

    def _send(self) -> None:
        request = self._next_request()
        if request is None:
            self.ended.set_result(None)
            self._transport.close()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(request)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise ValueError(f"a response without a length: {head[:200]!r}")


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """Send requests for some seconds. `%c` becomes the number of the connection, `%d` a running number."""
    until = time.perf_counter() + job["seconds"]
    numbers = iter(range(10**9))
    samples: list[float] = []
    codes: Counter[str] = Counter()

    def next_request(client: int) -> bytes | None:
        return None if time.perf_counter() >= until else _request(job, client, next(numbers))

    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(
            partial(Connection, partial(next_request, client), samples, codes), job["host"], job["port"]
        )
        for client in range(job["clients"])
    ]
    began = time.perf_counter()
    await asyncio.wait_for(asyncio.gather(*(connection.ended for _, connection in made)), job["seconds"] + CLOSE_WITHIN)
    return {"seconds": time.perf_counter() - began, "samples": samples, "codes": dict(codes)}


def _request(job: dict[str, Any], client: int, number: int) -> bytes:
    body = job["body"].replace("%d", str(number))
    path = job["path"].replace("%c", str(client))
    return (
        f"{job['method']} {path} HTTP/1.1\r\nHost: {job['host']}:{job['port']}\r\n"
        f"Authorization: Bearer {job['token']}\r\nContent-Length: {len(body.encode())}\r\n\r\n{body}"
    ).encode()


def main() -> None:
    for line in sys.stdin:
        result = uvloop.run(load(json.loads(line)))
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
