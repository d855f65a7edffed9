"""Names of exceptions in `retry`: built-in ones as they are, others with their module."""

import builtins
import re
from typing import Final

from wakeful.core.description import Kind
from wakeful.core.fields import Fields, shown
from wakeful.core.kinds import listed

EXCEPTIONS_MAX: Final = 20
_NAME: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_NAME_MAX: Final = 200


def exception_name(kind: type[BaseException]) -> str:
    """How a definition names an exception: `ConnectionError`, `httpx.ConnectError`."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _read(fields: Fields, name: str) -> tuple[str, ...]:
    given = fields.raw(name)
    if not isinstance(given, list | tuple) or not 1 <= len(given) <= EXCEPTIONS_MAX:
        fields.fail(name, f'is not a list of 1 to {EXCEPTIONS_MAX} names; write it like ["ConnectionError"]')
        return ()
    for exception in given:
        if not isinstance(exception, str) or len(exception) > _NAME_MAX or not _NAME.fullmatch(exception):
            fields.fail(name, f"{shown(exception)} is not the name of an exception; write it like httpx.ConnectError")
        elif "." not in exception and not _is_built_in(exception):
            fields.fail(name, f"{shown(exception)} is not a built-in exception; write others with their module")
    return tuple(exception for exception in given if isinstance(exception, str))


def _is_built_in(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


_SCHEMA: Final = listed({"type": "string"}, least=1, most=EXCEPTIONS_MAX)
EXCEPTIONS: Final = Kind(f"list of 1 to {EXCEPTIONS_MAX} names", _read, _SCHEMA, list, control="list")
