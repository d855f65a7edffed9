"""Reading a JSON object field by field, collecting every error instead of stopping at the first.

The input is untrusted: any JSON type anywhere, any size, any depth. So values are shortened in messages, unknown names
are compared up to a limit, and `check_plain` refuses beforehand what could not be stored or sent on.
"""

import difflib
import json
import math
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.time.instants import DAY, Duration, format_duration, parse_duration

T = TypeVar("T")
D = TypeVar("D")

DEPTH_MAX: Final = 64
FAULTS_MAX: Final = 100
MESSAGE_MAX: Final = 400
UNKNOWN_MAX: Final = 10
# Ten years: an instant that far from now is still within the calendar.
DURATION_MAX: Final[Duration] = 3653 * DAY
_BRACKETS: Final = ("[", "{")
_QUOTES: Final = "'\""
_SHORT: Final = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


def shown(value: Any) -> str:
    """The value as quoted in a message: in full if it is short."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # an integer with more digits than Python converts
        return "this number"


def check_plain(data: Any) -> None:
    """Refuse JSON that cannot be stored or sent on (too deep, NaN, broken text), reporting all errors together."""
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
        text.encode()
        if "\\u0000" not in text and sum(map(text.count, _BRACKETS)) <= DEPTH_MAX:
            return
    except (ValueError, TypeError, RecursionError):
        pass  # reported again below, with its path
    errors: list[FieldError] = []
    level: list[tuple[str, Any]] = [("", data)]
    for _ in range(DEPTH_MAX + 1):
        level = [inner for place, value in level for inner in _inside(place, value, errors)]
    errors += [FieldError(place, f"is nested deeper than {DEPTH_MAX} levels; make it flatter") for place, _ in level]
    if errors:
        raise Invalid(*errors[:FAULTS_MAX])


def _inside(place: str, value: Any, errors: list[FieldError]) -> list[tuple[str, Any]]:
    """The values inside a JSON value, each with its path; errors of the value itself are added to `errors`."""
    problem = None
    match value:
        case Mapping():
            for name in value:
                errors += [FieldError(place, problem) for problem in (_faulty_text(name),) if problem]
            root = f"{place}." if place else ""
            return [(f"{root}{shown(name).strip(_QUOTES)}", value[name]) for name in value]
        case list() | tuple():
            return [(f"{place}[{index}]", inner) for index, inner in enumerate(value)]
        case str():
            problem = _faulty_text(value)
        case float() if not math.isfinite(value):
            problem = f"{value} is not a number that JSON can represent; give a finite one"
        case None | bool() | int() | float():
            pass
        case _:
            problem = f"{shown(value)} is not a JSON value; use strings, numbers, lists and objects"
    if problem:
        errors.append(FieldError(place, problem))
    return []


def _faulty_text(text: Any) -> str | None:
    if not isinstance(text, str):
        return f"has the name {shown(text)}, which is not a string; put it in quotes"
    if "\0" in text:
        return "contains a NUL character, which cannot be stored; remove it"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "contains half of a character (a lone surrogate), which cannot be stored; remove it"
    return None


def shortened(message: str) -> str:
    """A message that quotes something huge with only its beginning and its cure."""
    return message if len(message) <= MESSAGE_MAX else f"{message[: MESSAGE_MAX // 2]} … {message[-MESSAGE_MAX // 2 :]}"


def _shortened(error: FieldError) -> FieldError:
    if len(error.message) <= MESSAGE_MAX:
        return error
    return FieldError(error.field[:MESSAGE_MAX], shortened(error.message))


class Fields:
    """One JSON object being read. A bad field returns its default and records an error; `finish` raises them all."""

    __slots__ = ("_path", "context", "data", "errors", "is_stored", "zone")

    def __init__(
        self,
        data: Mapping[str, Any],
        path: str = "",
        *,
        zone: str | None = None,
        is_stored: bool = False,
        context: object = None,
    ) -> None:
        self.data = data
        self.context = context  # what the kinds of a higher layer need: of settings, how secrets are resolved
        self.zone = zone  # of times that name none
        self.is_stored = is_stored  # not written by a person: what only the store keeps is accepted
        self._path = path
        self.errors: list[FieldError] = []

    def place(self, name: str) -> str:
        """The full path of a field."""
        return self._path + name

    def has(self, name: str) -> bool:
        """Whether it was given; JSON null counts as left out."""
        return self.data.get(name) is not None

    def fail(self, name: str, message: str) -> None:
        self.errors.append(FieldError(self._path + name, message))

    def is_faulty(self, name: str) -> bool:
        """Whether an error was recorded for a field, or for something in it."""
        place = self._path + name
        inside = (f"{place}.", f"{place}[")
        return any(error.field == place or error.field.startswith(inside) for error in self.errors)

    def beside(self, data: Mapping[str, Any], path: str = "") -> "Fields":
        """Other values, read for the same object: those inside one of its fields, by their full names."""
        return Fields(data, self._path + path, zone=self.zone, is_stored=self.is_stored, context=self.context)

    def take(self, name: str, kind: type[T], default: D, what: str) -> T | D:
        """A value of a plain JSON type."""
        value = self.data.get(name)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.fail(name, f"{shown(value)} is not {what}")
            return default
        return value

    def text(self, name: str, default: str = "") -> str:
        return self.take(name, str, default, "a string; put it in quotes")

    def filled(self, name: str, cure: str) -> str:
        """A string that must not be empty; reports at most one error."""
        faults = len(self.errors)
        text = self.text(name)
        if not text.strip() and len(self.errors) == faults:
            self.fail(name, f"is empty; {cure}" if self.has(name) else f"is missing; {cure}")
        return text

    def flag(self, name: str, default: bool) -> bool:
        return self.take(name, bool, default, "true or false")

    def integer(self, name: str, default: int, *, least: int, most: int | None = None) -> int:
        value = self.take(name, int, default, "a whole number")
        if value < least:
            self.fail(name, f"{shown(value)} is too small; give at least {least}")
            return default
        if most is not None and value > most:
            self.fail(name, f"{shown(value)} is too large; give at most {most}")
            return default
        return value

    def choice(self, name: str, default: T, options: Iterable[T]) -> T:
        value = self.data.get(name)
        if value is None:
            return default
        allowed = list(options)
        if value not in allowed:
            self.fail(
                name, f"{shown(value)} is not one of {', '.join('null' if o is None else str(o) for o in allowed)}"
            )
            return default
        return allowed[allowed.index(value)]

    def duration(self, name: str, default: Duration | None, *, least: Duration = 0) -> Duration | None:
        if not self.has(name):
            return default
        text = self.take(name, str, "", "a duration; write it in quotes, like 90s, 30m, 2h or 1d")
        if not text and self.data[name] != "":
            return default
        duration = self.read(name, lambda value: parse_duration(value, self._path + name))
        if duration is not None and not least <= duration <= DURATION_MAX:
            limit = f"short; give at least {format_duration(least)}"
            if duration > DURATION_MAX:
                limit = f"long; give at most {format_duration(DURATION_MAX)}"
            self.fail(name, f"{shown(self.data[name])} is too {limit}")
            return default
        return default if duration is None else duration

    def mapping(self, name: str) -> Mapping[str, Any]:
        return self.take(name, dict, {}, "an object; write {…}")

    def texts(self, name: str) -> Mapping[str, str]:
        """An object whose values are all strings."""
        texts = self.mapping(name)
        for key, value in texts.items():
            if not isinstance(value, str):
                self.fail(f"{name}.{key}", f"{shown(value)} is not a string; put it in quotes")
        return texts

    def raw(self, name: str) -> Any:
        """The JSON value as given."""
        return self.data.get(name)

    def nested(self, name: str, reader: "Callable[[Fields], T | None]") -> T | None:
        """An object inside this one; its errors are reported with their full path."""
        value = self.data.get(name)
        if not isinstance(value, Mapping):
            self.fail(name, f"{shown(value)} is not an object; write {{…}}")
            return None
        inner = self.beside(value, f"{name}.")
        try:
            result = reader(inner)
        except Invalid as invalid:
            self.errors.extend(invalid.errors)
            return None
        self.errors.extend(inner.errors)
        return result

    def items(
        self, name: str, reader: "Callable[[Fields], T | None]", *, most: int, cure: str, least: int = 1
    ) -> tuple[T, ...]:
        """The objects of a list, each read like a nested object; invalid ones are left out."""
        values = self.data.get(name)
        if not isinstance(values, list) or not least <= len(values) <= most:
            count = f"has {len(values)} items; give {least} to {most}" if isinstance(values, list) else "is not a list"
            self.fail(name, f"{count}: {cure}")
            return ()
        numbered = {f"{name}[{number}]": value for number, value in enumerate(values)}
        inner = self.beside(numbered)
        objects = [inner.nested(place, reader) for place in inner.data]
        self.errors.extend(inner.errors)
        return tuple(item for item in objects if item is not None)

    def read(self, name: str, reader: Callable[[Any], T]) -> T | None:
        """A value read by a function that may raise `Invalid`."""
        try:
            return reader(self.data.get(name))
        except Invalid as invalid:
            self.errors.extend(map(_shortened, invalid.errors))
        except ValueError as error:  # for example, a number with thousands of digits
            self.fail(name, f"{shown(self.data.get(name))} cannot be read ({error}); write a smaller value")
        return None

    def refuse_unknown(self, known: Collection[str]) -> None:
        """Refuse unknown fields: a misspelt one would otherwise be ignored silently."""
        unknown = [str(name) for name in self.data if name not in known]
        names = tuple(known) if unknown else ()
        for name in unknown[:UNKNOWN_MAX]:
            near = difflib.get_close_matches(name[:80], names, n=1)
            cure = f"did you mean {near[0]!r}?" if near else f"the fields are {', '.join(names)}"
            self.fail(name[:80], f"unknown field; {cure}")
        if len(unknown) > UNKNOWN_MAX:  # comparing each with the known names would take too long
            self.fail(
                unknown[UNKNOWN_MAX][:80], f"unknown field, and {len(unknown) - UNKNOWN_MAX - 1} more; remove them"
            )

    def finish(self) -> None:
        if len(self.errors) > FAULTS_MAX:
            more = len(self.errors) - FAULTS_MAX
            raise Invalid(*self.errors[:FAULTS_MAX], FieldError("", f"and {more} more errors"))
        if self.errors:
            raise Invalid(*self.errors)
