"""Fixtures for tests on a real server."""

from postgres.server import emptied_url as url
from postgres.server import server
from postgres.server import url as new_url

__all__ = ["new_url", "server", "url"]
