"""The HTTP edge: parse, call a command or a query, render."""

from wakeful.http.api import make_app
from wakeful.http.doorway import Access

__all__ = ["Access", "make_app"]
