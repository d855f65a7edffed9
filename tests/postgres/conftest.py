"""Fixtures for tests on a real server."""

from postgres.server import server, url

__all__ = ["server", "url"]
