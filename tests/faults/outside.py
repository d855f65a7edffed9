"""The outside as a process of its own, for fault tests: `python outside.py FILE`.

It prints its port. A GET is answered like the quota of a key that is never used, anything else with 200; each request
is a line in FILE: when it arrived, method, path, key, and body. It survives what happens to the daemon that asks it.
"""

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    """Answers everything, and writes it down first."""

    protocol_version = "HTTP/1.1"
    file = -1

    def do_GET(self) -> None:
        self._answer({"percentage": 0, "nextResetTime": None})

    def do_POST(self) -> None:
        self._answer({"ok": True})

    def _answer(self, body: object) -> None:
        heard = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        line = {
            "at": time.time_ns() // 1_000_000,
            "method": self.command,
            "path": self.path,
            "key": self.headers.get("Idempotency-Key"),
            "body": heard,
        }
        os.write(self.file, f"{json.dumps(line)}\n".encode())  # one write: whole, or not there
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the file says it all."""


def main(file: Path) -> None:
    """Serve until killed."""
    Handler.file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
