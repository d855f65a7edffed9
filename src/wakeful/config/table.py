"""The tables of the file: each is a frozen dataclass, described by its fields.

A field's default is written as in the file (`"60m"`) and read by its kind, so the reference, the file and the value
cannot disagree. A check of several fields gets those that could be read, so that every error is found in one pass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeVar, get_args, get_type_hints

from wakeful.config.kinds.reading import reading_of, shown
from wakeful.config.kinds.texts import choice, none_of
from wakeful.config.places import dotted
from wakeful.core.description import REQUIRED, Field, Kind, Object
from wakeful.core.fields import Fields, shortened

T = TypeVar("T")

PLUGIN_SETTINGS: Final = "settings"
UNUSED: Final = "has no effect with this adapter; setting it gives a warning"
HINTS_MAX: Final = 100
"""Unknown keys that are compared with the known ones: more are only counted."""
_ALIKE: Final = 0.7
_SETTING: Final = "setting"

CHOICE: Final = Kind("", Fields.raw, {})
"""One of the words in the annotation."""


def setting(kind: Kind, says: str, default: Any = REQUIRED) -> Any:
    """A field: its kind, its description, and its default as written in the file."""
    field = Field(kind, says, written=default)
    if default is REQUIRED:
        return dataclasses.field(metadata={_SETTING: field})
    written = Fields({"": default})
    value = None if default is None else kind.read(written, "")
    written.finish()
    return dataclasses.field(default_factory=lambda: value, metadata={_SETTING: field})


def unused(kind: Kind, default: Any) -> Any:
    """A field from similar tables that has no effect in this one. A file that sets it loads with a warning."""
    return setting(kind, UNUSED, default)


def plain_table(described: Object[Any]) -> Any:
    """A table; if the file has none, each of its settings has its default."""
    return setting(table(described), described.says, {})


def described_table(cls: type[T], check_given: Callable[[Fields, Mapping[str, Any]], None] | None = None) -> Object[T]:
    """The description of a table. The check is left out for a file with lines that could not be parsed, because what
    it finds may follow from them."""

    def check(fields: Fields, given: Mapping[str, Any]) -> None:
        if check_given is not None and reading_of(fields).is_whole:
            check_given(fields, given)

    hints = get_type_hints(cls)
    fields = [
        _described(attribute, attribute.metadata[_SETTING], hints[attribute.name])
        for attribute in dataclasses.fields(cls)  # type: ignore[arg-type]
    ]
    return Object(cls.__name__, (cls.__doc__ or "").strip(), fields, cls, check_given=check)


def _described(attribute: dataclasses.Field[Any], field: Field, hint: Any) -> Field:
    kind = choice(_words(hint)) if field.kind is CHOICE else field.kind
    default = REQUIRED if attribute.default_factory is dataclasses.MISSING else attribute.default_factory()
    missing = f"is missing; write {attribute.name} = {kind.cure}"
    return dataclasses.replace(field, kind=kind, name=attribute.name, default=default, missing=missing)


def _words(hint: Any) -> tuple[str, ...]:
    """The words of a `Literal`, which may be optional."""
    inner = get_args(hint)
    return tuple(word for one in inner for word in ((one,) if isinstance(one, str) else get_args(one)))


def read_table(
    described: Object[T], fields: Fields, *, elsewhere: Callable[[str], list[str]] = lambda _: [], known: str = ""
) -> T | None:
    """The table; None if something is wrong with it. `elsewhere` says with which other adapter a key would be valid,
    and `known` what may be written instead of an unknown key."""
    table = described.take(fields)
    known = known or f"the keys here are {', '.join(described.names)}"
    unknown = [name for name in fields.data if name not in described.known]
    for number, name in enumerate(unknown):
        owners = elsewhere(name) or reading_of(fields).tables_with(name)
        hint = _hint(name, described, owners) if number < HINTS_MAX else ""
        fields.fail(dotted((name,)), hint or shortened(f"unknown key; {known}"))
    return table


def _hint(name: str, described: Object[Any], owners: list[str]) -> str:
    if near := get_close_matches(name[:80], described.names, n=1, cutoff=_ALIKE):
        return f"unknown key; did you mean '{near[0]}'?"
    return f"unknown key here; it belongs to {' or '.join(owners)}" if owners else ""


def table(described: Object[Any]) -> Kind:
    """A table in a table."""

    def read(fields: Fields, name: str) -> Any:
        if not isinstance(fields.raw(name), Mapping):
            return fields.fail(name, _not_a_table(fields, name, fields.place(name)))
        return fields.nested(name, lambda inner: read_table(described, inner))

    return Kind("table", read, {"type": "object"}, described.write, inner=(described,))


def _not_a_table(fields: Fields, name: str, header: str) -> str:
    return f"{shown(fields.raw(name))} is not a table; write [{header}] and its settings below"


@dataclasses.dataclass(frozen=True, slots=True)
class NamedTables:
    """A table of named tables, `[agents.NAME]`: one key of each entry selects its description."""

    by: str | None
    default: str | None
    tables: Mapping[str, Object[Any]]
    plugin: Object[Any] | None = None  # of an entry whose kind a plugin offers: `settings` has what the plugin reads
    group: str = ""  # of the plugins

    def described(self, entry: Any) -> Object[Any] | None:
        """The description of an entry, as written or as read; None if nothing selects one."""
        if self.by is None:
            return next(iter(self.tables.values()))
        tag = entry.get(self.by) if isinstance(entry, Mapping) else getattr(entry, self.by)
        tag = self.default if tag is None else tag
        known = self.tables.get(tag) if isinstance(tag, str) else None
        return self.plugin if known is None and not isinstance(entry, Mapping) else known

    def kind(self, name_kind: Kind, always: tuple[str, ...] = ()) -> Kind:
        """The kind of the whole table; the entries of `always` are in it even if the file has none."""

        def read(fields: Fields, name: str) -> dict[str, Any]:
            written = fields.raw(name)
            if not isinstance(written, Mapping):
                fields.fail(name, _not_a_table(fields, name, f"{fields.place(name)}.NAME"))
                return {}
            entries = {}
            for key, entry in {**{key: {} for key in always}, **written}.items():
                place = f"{name}.{dotted((key,))}"
                named, inner = fields.beside({place: key}), fields.beside({place: entry})
                name_kind.read(named, place)
                entries[key] = self.read_entry(inner, place)
                fields.errors += [*named.errors, *inner.errors]
            return entries

        return Kind("table", read, {"type": "object"})

    def read_entry(self, fields: Fields, name: str) -> Any:
        """One entry."""
        entry = fields.raw(name)
        if not isinstance(entry, Mapping):
            return fields.fail(name, _not_a_table(fields, name, fields.place(name)))
        described = self.described(entry)
        if described is not None:
            return fields.nested(name, lambda inner: read_table(described, inner, elsewhere=self._tags_with))
        tag, plugins = entry.get(self.by), reading_of(fields).plugins
        is_plugin = plugins is not None and isinstance(tag, str) and plugins.may_have(self.group, tag)
        if is_plugin and self.plugin is not None:
            return self._read_plugin(fields, name, self.plugin, entry)
        tags = (*self.tables, *(() if plugins is None else plugins.kinds(self.group)))
        missing = f"is missing; write {self.by} = one of {', '.join(tags)}"
        return fields.fail(
            f"{name}.{self.by}", missing if entry.get(self.by) is None else none_of(entry[self.by], tags)
        )

    def _read_plugin(self, fields: Fields, name: str, described: Object[Any], entry: Mapping[str, Any]) -> Any:
        """An entry of a plugin's kind: what is not a setting of ours is one of the plugin's."""
        ours = {key: value for key, value in entry.items() if key in described.names and key != PLUGIN_SETTINGS}
        theirs = {key: value for key, value in entry.items() if key not in ours}
        inner = fields.beside({name: {**ours, PLUGIN_SETTINGS: theirs}})
        made = inner.nested(name, lambda table: read_table(described, table))
        fields.errors += inner.errors
        return made

    def _tags_with(self, name: str) -> list[str]:
        return [f'{self.by} = "{tag}"' for tag, described in self.tables.items() if name in described.names]
