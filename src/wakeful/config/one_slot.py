"""A slot written over REST with JSON names, checked by the same rules as `[slots.NAME]` in the file."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from wakeful.config.kinds.reading import Reading
from wakeful.config.kinds.texts import choice
from wakeful.config.model import SLOT_NAME, tables_with
from wakeful.config.secrets import MASK, Redactor, SecretReader
from wakeful.config.slots import SLOTS, AnySlot, PluginSlot
from wakeful.config.table import described_table
from wakeful.core.description import Field, Object, camel
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import Fields

_HUMP: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")
_SECRETS: Final = frozenset({"apiKey", "env"})
_SNAKE: Final = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
_FIRST: Final = re.compile(r"^\w+")
_SETTING: Final = re.compile(r'(?<![\w"])(\w+) = (?=["{\[\d]|true|false)')


def _in_json(described: Object[Any]) -> Object[Any]:
    """The description of a table with JSON names."""
    return Object(described.name, described.says, [_renamed(field) for field in described], dict)


def _renamed(field: Field) -> Field:
    return replace(field, name=camel(field.attribute), label="")


PROVIDERS: Final[Mapping[str, Object[Any]]] = {tag: _in_json(described) for tag, described in SLOTS.tables.items()}
"""The description of a slot in JSON, by provider."""


_PLUGIN: Final = _in_json(described_table(PluginSlot))


def _of_any_provider() -> Object[Any]:
    """All their fields. None is required, because they depend on the provider; so does the default of a field that
    only one has."""
    every = [field for described in PROVIDERS.values() for field in described]
    counts = Counter(field.name for field in every)
    fields: dict[str, Field] = {}
    for field in every:
        default = None if field.is_required or counts[field.name] == 1 else field.written
        fields.setdefault(field.name, replace(field, default=default, written=default))
    fields["provider"] = replace(fields["provider"], kind=choice(tuple(PROVIDERS)))
    says = "A slot definition; the allowed fields depend on the provider, as in wakeful.toml."
    return Object("SlotDefinition", says, fields.values(), dict)


SLOT: Final = _of_any_provider()
_NAMES: Final = frozenset(field.attribute for field in SLOT)


def read_slot(name: str, data: Mapping[str, Any], *, home: Path, environ: Mapping[str, str] | None = None) -> AnySlot:
    """The slot that these JSON fields describe; raises `Invalid` with every error, by JSON name."""
    reader = SecretReader(home, os.environ if environ is None else environ)
    written = {_HUMP.sub(r"_\1", key).lower(): value for key, value in data.items()}
    named = Fields({"name": name})
    SLOT_NAME.read(named, "name")
    fields = Fields({"slot": written}, context=Reading(reader, tables_with=tables_with))
    slot: AnySlot | None = SLOTS.read_entry(fields, "slot")
    if slot is not None and not named.errors and not fields.errors:
        return slot
    redact = Redactor([*reader.values, *_plain_secrets(data)]).redact
    places = [(error.field.removeprefix("slot."), error.message) for error in fields.errors]
    raise Invalid(*named.errors, *(FieldError(_json_place(place), _json_words(redact(says))) for place, says in places))


def slot_json(slot: AnySlot) -> dict[str, Any]:
    """A slot for display: JSON names, durations as text, secrets masked."""
    described = _PLUGIN if isinstance(slot, PluginSlot) else PROVIDERS[slot.provider]
    return {name: value for name, value in described.write(slot).items() if value is not None}


def with_secrets_of(data: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The written fields, with masks that were read back replaced by the stored secrets."""
    merged = dict(data)
    for name in _SECRETS & merged.keys() & before.keys():
        if merged[name] == MASK:
            merged[name] = before[name]
        elif isinstance(merged[name], Mapping) and isinstance(before[name], Mapping):
            kept = {
                key: before[name][key] for key, value in merged[name].items() if value == MASK and key in before[name]
            }
            merged[name] = {**merged[name], **kept}
    return merged


def secrets_of(slot: AnySlot) -> tuple[str, ...]:
    """The values that must never be shown."""
    secrets = [getattr(slot, "api_key", None), *getattr(slot, "env", {}).values()]
    return tuple(value for secret in secrets if secret is not None for value in secret.values)


def _plain_secrets(data: Mapping[str, Any]) -> list[str]:
    values = [data.get("apiKey"), *(data["env"].values() if isinstance(data.get("env"), Mapping) else ())]
    return [value for value in values if isinstance(value, str)]


def _json_words(message: str) -> str:
    """A settings message rewritten for JSON: `api_key = {env = "NAME"}` becomes `"apiKey": {"env": "NAME"}`."""
    spelt = _SNAKE.sub(lambda match: camel(match[0]) if match[0] in _NAMES else match[0], message)
    return _SETTING.sub(r'"\1": ', spelt)


def _json_place(place: str) -> str:
    """The place with the JSON name of the field."""
    return _FIRST.sub(lambda match: camel(match[0]), place, count=1)
