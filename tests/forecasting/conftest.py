"""The fixtures of the edges: a server with a client, and a daemon with a command line."""

from edges.cli.conftest import cli
from edges.http.conftest import api
from postgres.server import server, url

__all__ = ["api", "cli", "server", "url"]
