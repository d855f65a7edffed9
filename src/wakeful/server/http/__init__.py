"""The HTTP edge: parse, call a command or a query, render."""

from wakeful.server.http.access import Access, NamedToken
from wakeful.server.http.api import make_app
from wakeful.server.http.serving import Serving

__all__ = ["Access", "NamedToken", "Serving", "make_app"]
