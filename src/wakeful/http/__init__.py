"""The HTTP edge: parse, call a command or a query, render."""

from wakeful.http.access import Access, NamedToken
from wakeful.http.api import make_app

__all__ = ["Access", "NamedToken", "make_app"]
