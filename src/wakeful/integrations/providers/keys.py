"""A provider's key: sent in one header, and never shown."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from wakeful.config.secrets import Redactor
from wakeful.core.slot.slot import ReadFailure

_BEARER: Final = "bearer "


class Key:
    """The secrets behind one slot."""

    __slots__ = ("__values", "_redactor")

    def __init__(self, values: Iterable[str]) -> None:
        self.__values: Final = tuple(value for value in values if value)
        bare = [value[len(_BEARER) :] for value in self.__values if value.lower().startswith(_BEARER)]
        self._redactor: Final = Redactor([*self.__values, *bare])

    def header(self) -> dict[str, str]:
        """The header that carries it, if there is one."""
        if not self.__values:
            return {}
        value = self.__values[0].strip()
        return {"Authorization": value if value.lower().startswith(_BEARER) else f"Bearer {value}"}

    def mark(self, *where: str) -> str:
        """A digest that is equal for two slots with the same key for the same provider; it reveals nothing."""
        return hashlib.sha256(json.dumps([*where, *self.__values]).encode()).hexdigest()[:24]

    def clean(self, failure: ReadFailure) -> ReadFailure:
        """The failure with the key redacted, in case the provider quoted it."""
        return replace(failure, error=self._redactor.redact(failure.error))

    def redact(self, text: str) -> str:
        return self._redactor.redact(text)
