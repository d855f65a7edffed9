"""Where a webhook leads in the tests: it refuses for good until it is opened, and remembers what came."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Door(ThreadingHTTPServer):
    """The receiver of a webhook."""

    is_open = False
    taken: list[str]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Knock)
        self.taken = []

    @property
    def settings(self) -> str:
        """The channel `hook`, which leads here."""
        return (
            f'[channels.hook]\ntype = "webhook"\nurl = "http://127.0.0.1:{self.server_port}/"\nallow_private = true\n'
        )


class Knock(BaseHTTPRequestHandler):
    """One message at the door."""

    server: Door

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.is_open:
            self.server.taken.append(body["text"])
        self.send_response(200 if self.server.is_open else 410)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is said."""


@contextmanager
def opened_door() -> Iterator[Door]:
    """A door for as long as it is needed."""
    with Door() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
