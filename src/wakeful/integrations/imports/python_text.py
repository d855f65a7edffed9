"""Functions of Python programs as commands: the text that calls them, and a program's folder and interpreter."""

import keyword
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from wakeful.integrations.imports.entries import refuse

_PLAIN: Final = (str, int, float, bool, type(None), bytes)
_ENVIRONMENTS: Final = (".venv", "venv", "env")
_DEPTH_MAX: Final = 20


def call_text(module: str, function: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> str:
    """A program that calls a function, and waits for it if it is a coroutine."""
    if not _is_dotted(module) or not _is_dotted(function):
        refuse(f"its function {module[:80]}:{function[:80]} has no name that can be imported")
    if not all(isinstance(name, str) and name.isidentifier() for name in keywords):
        refuse("its keyword arguments have names that are none")
    given = [*map(_literal, args), *(f"{name}={_literal(value)}" for name, value in keywords.items())]
    call = f"{module}.{function}({', '.join(given)})"
    return f"import asyncio, {module}\ndone = {call}\nif asyncio.iscoroutine(done):\n    asyncio.run(done)"


def project_of(module: str, store: Path | None) -> tuple[str | None, str | None]:
    """The interpreter and the folder of a program that keeps its jobs there; None if its module is not found."""
    if store is None:
        return None, None
    top = module.partition(".")[0]
    for folder in (store.absolute().parent, *list(store.absolute().parent.parents)[:2]):
        if (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file():
            pythons = (folder / name / "bin" / "python" for name in _ENVIRONMENTS)
            return next((str(python) for python in pythons if python.exists()), None), str(folder)
    return None, None


def _is_dotted(name: str) -> bool:
    parts = name.split(".")
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in parts)


def _literal(value: Any, depth: int = 0) -> str:
    """Plain data as Python text."""
    if depth > _DEPTH_MAX:
        refuse("its arguments are nested too deeply")
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, list | tuple):
        inner = ", ".join(_literal(part, depth + 1) for part in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        pairs = (f"{_literal(key, depth + 1)}: {_literal(part, depth + 1)}" for key, part in value.items())
        return "{" + ", ".join(pairs) + "}"
    return refuse("its arguments are objects, which only your program can make; call a function without them")
