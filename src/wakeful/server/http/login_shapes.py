"""Shapes of logging in, for OpenAPI."""

from typing import Annotated

from pydantic import Field

from wakeful.server.http.shapes import At, Shape, Text


class Login(Shape):
    """A token, or a link's one-time code."""

    token: Text | None = None
    code: Text | None = None


class LoginCode(Shape):
    """A one-time code. The page exchanges it for a session at `path`."""

    code: Text
    url: Annotated[str, Field(examples=["http://127.0.0.1:8377"])]
    path: Annotated[str, Field(examples=["/#code=…"])]
    expires_at: At


class Ended(Shape):
    """How many sessions and codes were ended."""

    ended: int
