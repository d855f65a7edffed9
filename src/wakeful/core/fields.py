"""Reading a JSON object field by field, keeping every fault instead of stopping at the first."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.instants import Duration, parse_duration

T = TypeVar("T")


class Fields:
    """One JSON object being read. A bad field answers its default and leaves a fault behind; `finish` raises them."""

    __slots__ = ("_data", "_path", "errors")

    def __init__(self, data: Mapping[str, Any], path: str = "") -> None:
        self._data = data
        self._path = path
        self.errors: list[FieldError] = []

    def has(self, name: str) -> bool:
        """Whether it was given; JSON null counts as left out."""
        return self._data.get(name) is not None

    def fail(self, name: str, message: str) -> None:
        self.errors.append(FieldError(self._path + name, message))

    def take(self, name: str, kind: type[T], default: T, what: str) -> T:
        """A value of a plain JSON type."""
        value = self._data.get(name)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.fail(name, f"{value!r} is not {what}")
            return default
        return value

    def text(self, name: str, default: str = "") -> str:
        return self.take(name, str, default, "a text; put it in quotes")

    def text_or_none(self, name: str) -> str | None:
        return self.text(name) if self.has(name) else None

    def flag(self, name: str, default: bool) -> bool:
        return self.take(name, bool, default, "true or false")

    def integer(self, name: str, default: int, *, least: int) -> int:
        value = self.take(name, int, default, "a whole number")
        if value < least:
            self.fail(name, f"{value} is too small; give at least {least}")
            return default
        return value

    def choice(self, name: str, default: T, options: Iterable[T]) -> T:
        value = self._data.get(name)
        if value is None:
            return default
        allowed = list(options)
        if value not in allowed:
            self.fail(name, f"{value!r} is none of {', '.join(map(str, allowed))}")
            return default
        return allowed[allowed.index(value)]

    def duration(self, name: str, default: Duration | None, *, least: Duration = 0) -> Duration | None:
        if not self.has(name):
            return default
        found = self.read(name, lambda value: parse_duration(value, self._path + name))
        if found is not None and found < least:
            self.fail(name, f"{self._data[name]!r} is too short; give at least {least} ms")
            return default
        return default if found is None else found

    def mapping(self, name: str) -> Mapping[str, Any]:
        return self.take(name, dict, {}, "an object; write {…}")

    def texts(self, name: str) -> Mapping[str, str]:
        """An object whose values are all texts."""
        found = self.mapping(name)
        for key, value in found.items():
            if not isinstance(value, str):
                self.fail(f"{name}.{key}", f"{value!r} is not a text; put it in quotes")
        return found

    def raw(self, name: str) -> Any:
        """Whatever JSON was given."""
        return self._data.get(name)

    def nested(self, name: str, reader: "Callable[[Fields], T]") -> T | None:
        """An object inside this one; its faults are named with the path to them."""
        value = self._data.get(name)
        if not isinstance(value, Mapping):
            self.fail(name, f"{value!r} is not an object; write {{…}}")
            return None
        inner = Fields(value, f"{self._path}{name}.")
        try:
            found = reader(inner)
        except Invalid as invalid:
            self.errors.extend(invalid.errors)
            return None
        self.errors.extend(inner.errors)
        return found

    def read(self, name: str, reader: Callable[[Any], T]) -> T | None:
        """A value read by a function that may raise `Invalid`."""
        try:
            return reader(self._data.get(name))
        except Invalid as invalid:
            self.errors.extend(invalid.errors)
            return None

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """A misspelt field would otherwise be lost in silence."""
        names = list(known)
        for name in self._data:
            if name not in names:
                near = difflib.get_close_matches(str(name), names, n=1)
                cure = f"did you mean {near[0]!r}?" if near else f"the fields are {', '.join(names)}"
                self.fail(str(name), f"unknown field; {cure}")

    def finish(self) -> None:
        if self.errors:
            raise Invalid(*self.errors)
