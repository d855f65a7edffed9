"""The description of an object that users write: its fields, and for each the type, the default, the limits, the help
text and the refusal texts, in one place.

Theory of operation: the fields of a frozen dataclass carry a `Field` in their annotation. `described(cls)` collects
them into an `Object`, which reads the object from JSON and writes it. Everything else that lists fields is made from
the same `Object`: the OpenAPI schema (`schema_of`), the page's form (`form_of`), the tables in the docs (`table_of`),
and how `--set` reads a value. A `Kind` is the type of a field; the kinds are in `core.kinds`. Attributes without a
`Field` are not part of the JSON.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from typing import Any, Final, Generic, TypeVar, get_type_hints

from wakeful.core.fields import Fields

T = TypeVar("T")

REQUIRED: Final = object()
"""In the place of a default: there is none."""
COMPONENTS: Final = "#/components/schemas/"
_HUMP: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
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
    """One field of an object. `name` (in JSON) and `label` (in a form) follow from the attribute if left out."""

    kind: Kind
    says: str
    name: str = ""
    label: str = ""
    example: str = ""
    default: Any = REQUIRED  # when left out in JSON; usually the default of the attribute
    missing: str = ""  # the refusal if it is left out; by default made from the kind's cure
    usual: str = ""  # the default in words, if the value does not say it


@dataclass(frozen=True, slots=True)
class Entry:
    """A field in its object."""

    name: str
    attribute: str
    field: Field
    default: Any  # when left out
    omitted: Any  # the value that is not written; REQUIRED: it always is

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED

    @property
    def kind(self) -> Kind:
        return self.field.kind

    @property
    def label(self) -> str:
        return self.field.label or _HUMP.sub(r" \1", self.name).capitalize()

    @property
    def written_default(self) -> Any:
        """The default in JSON."""
        return None if self.is_required or self.default is None else self.kind.write(self.default)

    @property
    def missing(self) -> str:
        return self.field.missing or f"is missing; {self.kind.cure}"


class Object(Generic[T]):
    """A described object. `check` sees the value with its `Fields` and reports what involves several fields;
    `read_back` names what it is returned with in addition: accepted in a write, and ignored."""

    def __init__(
        self,
        name: str,
        says: str,
        entries: Iterable[Entry],
        make: Callable[..., T],
        *,
        check: Callable[[Fields, T], None] | None = None,
        label: str = "",
        read_back: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.says = says
        self.label = label or name
        self.entries = tuple(entries)
        self.names = tuple(entry.name for entry in self.entries)
        self._make = make
        self._check = check
        self.read_back = read_back
        self.known = dict.fromkeys((*self.names, *read_back))
        self._readers = [(one.name, one.attribute, one.field.kind.read, one) for one in self.entries]
        self._writers = [(one.name, one.attribute, one.omitted, one.field.kind.write) for one in self.entries]

    def only(self, *names: str, without: Iterable[str] = (), name: str = "", says: str = "") -> "Object[T]":
        """The same with these fields alone, or without some."""
        kept = [entry for entry in self.entries if entry.name in (names or self.names) and entry.name not in without]
        return Object(name or self.name, says or self.says, kept, self._make, check=self._check, label=self.label)

    def read(self, fields: Fields, **more: Any) -> T | None:
        """The object; None if something is wrong with it, which is then in `fields.errors`. `more` are attributes that
        are not fields."""
        fields.refuse_unknown(self.known)
        return self.take(fields, **more)

    def take(self, fields: Fields, **more: Any) -> T | None:
        """The same where other fields may be present."""
        values = self.given(fields)
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
        for name, attribute, read, entry in self._readers:
            if data.get(name) is not None:
                values[attribute] = read(fields, name)
            elif entry.default is REQUIRED:
                fields.fail(name, entry.missing)
            elif entry.omitted is REQUIRED:
                values[attribute] = entry.default
        return values

    def write(self, value: Any, out: dict[str, Any] | None = None, full: bool = False) -> dict[str, Any]:
        """Its JSON; values that are omitted by default are written only if `full`."""
        written: dict[str, Any] = {} if out is None else out
        for name, attribute, omitted, write in self._writers:
            given = getattr(value, attribute)
            if full or given != omitted:
                written[name] = given if given is None or write is _same else write(given)
        return written

    def find(self, path: str) -> Entry | None:
        """The field at a dotted path, such as `retry.times`."""
        name, _, rest = path.partition(".")
        entry = next((one for one in self.entries if one.name == name), None)
        if entry is None or not rest:
            return entry
        return next(filter(None, (inner.find(rest) for inner in entry.kind.inner)), None)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)


def described(cls: type[T], *, name: str = "", says: str = "", **more: Any) -> Object[T]:
    """The description that the annotations of a dataclass give."""
    hints = get_type_hints(cls, include_extras=True)
    entries = []
    for attribute in dataclasses.fields(cls):  # type: ignore[arg-type]
        field = next(
            (one for one in getattr(hints[attribute.name], "__metadata__", ()) if isinstance(one, Field)), None
        )
        if field is not None:
            omitted = REQUIRED if attribute.default is MISSING else attribute.default
            if attribute.default_factory is not MISSING:
                omitted = attribute.default_factory()
            default = omitted if field.default is REQUIRED else field.default
            entries.append(Entry(field.name or camel(attribute.name), attribute.name, field, default, omitted))
    return Object(name or cls.__name__, says or (cls.__doc__ or "").strip(), entries, cls, **more)


def camel(name: str) -> str:
    """snake_case to camelCase."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def entry(name: str, field: Field) -> Entry:
    """A field that is not an attribute of its own."""
    return Entry(name, name, field, field.default, REQUIRED)
