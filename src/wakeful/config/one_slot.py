"""A slot written over REST with JSON names, checked by the same rules as `[slots.NAME]` in the file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from wakeful.config.described import described_table
from wakeful.config.kinds import Reading, masked
from wakeful.config.messages import faults_of
from wakeful.config.model import Settings
from wakeful.config.places import dotted
from wakeful.config.secrets import MASK, Redactor, SecretReader
from wakeful.config.slots import SLOTS, AnySlot
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.time.instants import format_duration

_HUMP: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")
_DURATIONS: Final = frozenset({"interval", "after_reset", "poll", "retry_window", "backoff_cap"})
_SECRETS: Final = frozenset({"apiKey", "env"})
SLOT: Final = described_table(
    "SlotDefinition",
    *SLOTS.models.values(),
    says="A slot definition; the allowed fields depend on the provider, as in wakeful.toml.",
    spelt=to_camel,
    is_partial=True,
)
_NAMES: Final = frozenset(field.attribute for field in SLOT)
_SNAKE: Final = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
_SETTING: Final = re.compile(r'(?<![\w"])(\w+) = (?=["{\[\d]|true|false)')


def read_slot(name: str, data: Mapping[str, Any], *, home: Path, environ: Mapping[str, str] | None = None) -> AnySlot:
    """The slot that these JSON fields describe; raises `Invalid` with every error, by JSON name."""
    reader = SecretReader(home, os.environ if environ is None else environ)
    written = {"slots": {name: {_HUMP.sub(r"_\1", key).lower(): value for key, value in data.items()}}}
    try:
        settings = Settings.model_validate(written, context=Reading(reader, frozenset()))
    except ValidationError as error:
        redact = Redactor([*reader.values, *_plain_secrets(data)]).redact
        details = error.errors(include_url=False)
        faults = [
            FieldError(_json_place(place), _in_json(redact(message)))
            for detail in details
            for place, message in faults_of(detail, written)
        ]
    else:
        return settings.slots[name]
    raise Invalid(*faults)


def slot_json(slot: AnySlot) -> dict[str, Any]:
    """A slot for display: JSON names, durations as text, secrets masked."""
    shown = slot.model_dump()
    return {to_camel(name): _shown(name, value) for name, value in shown.items() if value is not None}


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


def _shown(name: str, value: Any) -> Any:
    if name in _DURATIONS and isinstance(value, int):
        return format_duration(value)
    return masked(list(value) if isinstance(value, tuple) else value)


def _in_json(message: str) -> str:
    """A settings message rewritten for JSON: `api_key = {env = "NAME"}` becomes `"apiKey": {"env": "NAME"}`."""
    spelt = _SNAKE.sub(lambda match: to_camel(match[0]) if match[0] in _NAMES else match[0], message)
    return _SETTING.sub(r'"\1": ', spelt)


def _json_place(place: tuple[str | int, ...]) -> str:
    inner = place[2:] or ("name",)
    return dotted((to_camel(str(inner[0])), *inner[1:]))
