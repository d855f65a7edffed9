"""Fixtures of pages that need a server."""

from postgres.server import server, url

__all__ = ["server", "url"]
