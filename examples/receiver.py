"""The receiver of a webhook channel.

A delivery may arrive twice: if the response to the first request is lost, it is sent again with the same id. A receiver
that remembers ids processes it once. In wakeful.toml:

    [channels.hook]
    type = "webhook"
    url = "http://127.0.0.1:9000/in"
    allow_private = true
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

SEEN: set[str] = set()  # a real receiver keeps them on disk
BODY_MAX = 1_000_000


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        size = int(self.headers.get("Content-Length", 0))
        if size > BODY_MAX:
            self.send_error(413)
            return
        message = json.loads(self.rfile.read(size))
        delivery = self.headers["X-Wakeful-Delivery"]
        if delivery not in SEEN:
            SEEN.add(delivery)
            print(f"{message['channel']}: {message['text']}", flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *words):
        """Do not log requests."""


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 9000), Receiver)
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever()
