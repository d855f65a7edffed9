"""Reading the body of a request, with the same error messages everywhere."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from wakeful.core.errors import FieldError, Invalid, refuse
from wakeful.core.fields import Fields, check_plain, shown


async def read_json(request: Request) -> Any:
    """The body as JSON, whatever its content type; nesting and values are checked."""
    body = await request.body()
    if not body.strip():
        refuse("", "the body is empty; send JSON")
    try:
        data = json.loads(body, parse_constant=_no_constant, object_pairs_hook=_no_key_twice)
    except (ValueError, RecursionError) as error:
        refuse("", f"the body is not JSON ({_reason(error)}); send valid JSON")
    check_plain(data)
    return data


async def read_object(request: Request, *, known: tuple[str, ...]) -> Mapping[str, Any]:
    """An optional body with these fields and no others."""
    if not await request.body():
        return {}
    data = await read_json(request)
    if not isinstance(data, Mapping):
        refuse("", f"{shown(data)} is not an object; write {{…}}")
    fields = Fields(data)
    if known:
        fields.refuse_unknown(known)
    else:
        for name in list(data)[:10]:
            fields.fail(name[:80], "unknown field; this request has none")
    fields.finish()
    return data


def text_of(data: Mapping[str, Any], name: str) -> str | None:
    """A string in a body; None if null or absent."""
    value = data.get(name)
    if value is not None and not isinstance(value, str):
        raise Invalid(FieldError(name, f"{shown(value)} is not a string; put it in quotes"))
    return value


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"duplicate key {twice[:80]!r}")
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
