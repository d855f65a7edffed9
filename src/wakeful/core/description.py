"""The description of an object that users write: its fields, and for each the type, the default, the limits, the help
text and the refusal texts, in one place.

Theory of operation: the fields of a frozen dataclass carry a `Field` in their annotation. `described(cls)` collects
them into an `Object`, which reads the object from JSON and writes it. Everything else that lists fields is made from
the same `Object`: the OpenAPI schema (`core.schema_json`), the page's form (`api.forms`), the tables in the
docs (`tools.field_tables`), and how `--set` reads a value. A `Kind` is the type of a field; the kinds are in
`core.kinds`. Attributes without a `Field` are not part of the JSON.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from typing import Any, Final, Generic, TypeVar, cast, get_type_hints

from wakeful.core.fields import Fields

T = TypeVar("T")

REQUIRED: Final = object()
"""Stands in for a default if the field has none."""
COMPONENTS: Final = "#/components/schemas/"
_HUMP: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True, eq=False)  # hashable: it stands in annotations
class Kind:
    """The type of a field: how a value is read and written, and how it is described."""

    words: str  # for tables
    read: Callable[[Fields, str], Any]  # is called if the field is given; records errors
    schema: Mapping[str, Any]
    write: Callable[[Any], Any] = _same
    control: str = "text"  # of a form
    cure: str = ""  # what to write if it is missing or empty
    inner: "tuple[Object[Any], ...]" = ()  # objects in it


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an object. What is left out follows from the attribute and its default."""

    kind: Kind
    says: str
    label: str = ""  # in a form
    example: str = ""
    name: str = ""  # in JSON
    missing: str = ""  # the refusal if it is required and left out
    usual: str = ""  # the default in words, if its value does not say it
    default: Any = REQUIRED  # the value if it is left out
    written: Any = REQUIRED  # the default as users write it, if the kind writes it differently: `60m`, not `1h`
    omitted: Any = REQUIRED  # the value that is not written; REQUIRED: any is
    attribute: str = ""
    means: tuple[tuple[str, str], ...] = ()  # what each option of a choice means

    @property
    def help(self) -> str:
        """The help text, with the options."""
        return "; ".join([self.says, *(f"`{option}`: {words}" for option, words in self.means)])

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED

    @property
    def written_default(self) -> Any:
        """The default as users write it."""
        if self.written is not REQUIRED:
            return self.written
        return None if self.is_required or self.default is None else self.kind.write(self.default)


class Object(Generic[T]):
    """A described object. `check` sees the value with its `Fields` and reports what involves several fields;
    `check_given` does so with the values that could be read, even if others could not. `read_back` names what it is
    returned with in addition: accepted in a write, and ignored. `merged` is an attribute with JSON fields that are
    written before the described ones. `is_json`: its values are JSON already."""

    def __init__(
        self,
        name: str,
        says: str,
        fields: Iterable[Field],
        make: Callable[..., T],
        *,
        check: Callable[[Fields, T], None] | None = None,
        check_given: Callable[[Fields, Mapping[str, Any]], None] | None = None,
        label: str = "",
        read_back: tuple[str, ...] = (),
        merged: str = "",
        is_json: bool = False,
    ) -> None:
        self.name, self.says, self.label = name, says, label
        self.fields = tuple(map(_completed, fields))
        self.names = tuple(field.name for field in self.fields)
        self.read_back = read_back
        self.known = dict.fromkeys((*self.names, *read_back))
        self._make, self._check, self._check_given = make, check, check_given
        # With None for a field that needs nothing if it is left out: most are.
        self._readers = [
            (field.name, field.attribute, field.kind.read, field if field.omitted is REQUIRED else None)
            for field in self.fields
        ]
        self._write = _as_is if is_json else _writer(self.fields, merged)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def only(self, *names: str, without: Iterable[str] = ()) -> "Object[T]":
        """The same object with only these fields, or without some."""
        kept = [field for field in self.fields if field.name in (names or self.names) and field.name not in without]
        return Object(
            self.name, self.says, kept, self._make, check=self._check, check_given=self._check_given, label=self.label
        )

    def find(self, path: str) -> Field | None:
        """The field at a dotted path, such as `retry.times`."""
        name, _, rest = path.partition(".")
        field = next((field for field in self.fields if field.name == name), None)
        if field is None or not rest:
            return field
        return next(filter(None, (inner.find(rest) for inner in field.kind.inner)), None)

    def read(self, fields: Fields, **more: Any) -> T | None:
        """The object; None if something is wrong with it, which is then in `fields.errors`. `more` are attributes that
        are not fields."""
        fields.refuse_unknown(self.known)
        return self.take(fields, **more)

    def take(self, fields: Fields, **more: Any) -> T | None:
        """Like `read`, where other fields may be present."""
        values = self.given(fields)
        if self._check_given is not None:
            faulty = {field.attribute for field in self.fields if fields.is_faulty(field.name)}
            self._check_given(fields, {name: value for name, value in values.items() if name not in faulty})
        if fields.errors:
            return None
        value = self._make(**values, **more)
        if self._check is not None:
            self._check(fields, value)
        return value

    def given(self, fields: Fields) -> dict[str, Any]:
        """The values of the fields that are given, by attribute."""
        values: dict[str, Any] = {}
        data = fields.data
        for name, attribute, read, field in self._readers:
            if data.get(name) is not None:
                values[attribute] = read(fields, name)
            elif field is not None and field.is_required:
                fields.fail(name, field.missing)
            elif field is not None:
                values[attribute] = field.default
        return values

    def write(self, value: Any, out: dict[str, Any] | None = None, full: bool = False) -> dict[str, Any]:
        """Its JSON; values that are omitted by default are written only if `full`."""
        return self._write(value, {} if out is None else out, full)


def _as_is(value: Any, out: dict[str, Any], full: bool) -> Any:
    return value


def _writer(fields: Sequence[Field], merged: str) -> Callable[[Any, dict[str, Any], bool], dict[str, Any]]:
    """The function that writes these fields, compiled: a loop over them takes twice as long, and every response is
    written by one."""
    known: dict[str, Any] = {}
    lines = ["def write(value, out, full):", *([f" out.update(value.{merged})"] if merged else [])]
    for number, field in enumerate(fields):
        given = f"value.{field.attribute}"
        if field.kind.write is not _same:
            known[f"write_{number}"] = field.kind.write
            given = f"None if (given := {given}) is None else write_{number}(given)"
        indent = " "
        if field.omitted is not REQUIRED:
            known[f"omitted_{number}"] = field.omitted
            lines.append(f" if full or value.{field.attribute} != omitted_{number}:")
            indent = "  "
        lines.append(f"{indent}out[{field.name!r}] = {given}")
    exec("\n".join([*lines, " return out"]), known)  # noqa: S102 - names of our own attributes, as dataclasses do it
    return cast(Callable[[Any, dict[str, Any], bool], dict[str, Any]], known["write"])


def _completed(field: Field) -> Field:
    label = field.label or _HUMP.sub(r" \1", field.name).capitalize()
    missing = field.missing or f"is missing; {field.kind.cure}"
    return replace(field, label=label, missing=missing, attribute=field.attribute or field.name)


def described(cls: type[T], *, name: str = "", says: str = "", **more: Any) -> Object[T]:
    """The description that the annotations of a dataclass give."""
    hints = get_type_hints(cls, include_extras=True)
    fields = []
    for attribute in dataclasses.fields(cls):  # type: ignore[arg-type]
        notes = getattr(hints[attribute.name], "__metadata__", ())
        for field in (note for note in notes if isinstance(note, Field)):
            omitted = REQUIRED if attribute.default is MISSING else attribute.default
            if attribute.default_factory is not MISSING:
                omitted = attribute.default_factory()
            default = omitted if field.default is REQUIRED else field.default
            name_in_json = field.name or camel(attribute.name)
            fields += [replace(field, name=name_in_json, attribute=attribute.name, default=default, omitted=omitted)]
    return Object(name or cls.__name__, says or (cls.__doc__ or "").strip(), fields, cls, **more)


def camel(name: str) -> str:
    """snake_case to camelCase."""
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
