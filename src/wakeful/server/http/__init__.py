"""The HTTP edge: parse, call a command or a query, render."""

from wakeful.server.http.access import Access, NamedToken
from wakeful.server.http.api import make_app

__all__ = ["Access", "NamedToken", "make_app"]
