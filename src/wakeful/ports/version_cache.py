"""A bounded cache of objects compiled from stored text, one version per id."""

from typing import Final, Generic, Protocol, TypeVar

GENERATION_MAX: Final = 8_192


class Versioned(Protocol):
    @property
    def version(self) -> int: ...


V = TypeVar("V", bound=Versioned)


class VersionCache(Generic[V]):
    """Two generations: a full one becomes the old one, and entries still in use move over. Eviction costs nothing."""

    def __init__(self, generation_max: int = GENERATION_MAX) -> None:
        self._generation_max = generation_max
        self._kept: dict[int, V] = {}
        self._older: dict[int, V] = {}

    def get(self, key: int, version: int) -> V | None:
        """The entry of this version, or None."""
        known = self._kept.get(key)
        if known is None and (known := self._older.get(key)) is not None:
            self.keep(key, known)
        return known if known is not None and known.version == version else None

    def keep(self, key: int, value: V) -> None:
        """Cache it, in place of another version."""
        if len(self._kept) >= self._generation_max:
            self._older, self._kept = self._kept, {}
        self._kept[key] = value
