"""A GLM provider in a process of its own: prints its port, and appends each request to a file."""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HEARD = Path(sys.argv[1]) if __name__ == "__main__" else Path()


class Provider(BaseHTTPRequestHandler):
    """Cold until it is woken; warm for five hours afterwards."""

    reset_at: int | None = None

    def do_GET(self) -> None:
        limit = {"type": "TOKENS_LIMIT", "unit": 3, "number": 5, "percentage": 7}
        limit |= {} if Provider.reset_at is None else {"nextResetTime": Provider.reset_at}
        self._answer({"code": 200, "data": {"limits": [limit], "totalUsage": {}}})

    def do_POST(self) -> None:
        Provider.reset_at = round((time.time() + 5 * 3600) * 1000)
        self._answer({"choices": [{"message": {"content": "pong"}}]})

    def _answer(self, data: dict[str, object]) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        with HEARD.open("a") as file:
            said = {"path": self.path.partition("?")[0], "key": self.headers["Authorization"], "body": body}
            file.write(json.dumps({"method": self.command, **said}) + "\n")
        answer = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Not to the terminal."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    print(server.server_port, flush=True)
    server.serve_forever()
