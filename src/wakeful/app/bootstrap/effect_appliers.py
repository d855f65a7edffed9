"""Which feature applies each kind of effect. Features register theirs as they are plugged in."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from wakeful.core.run.effects import Effect
from wakeful.core.time.instants import Instant
from wakeful.ports.handlers import Applier, Appliers
from wakeful.ports.store import Tx

T = TypeVar("T")


class EffectAppliers(Mapping[type[Any], Applier]):
    """The appliers of all features, by the type of the effect."""

    def __init__(self) -> None:
        self._appliers: dict[type[Any], Applier] = {}

    def add(self, appliers: Appliers) -> None:
        """Register the appliers of one feature."""
        self._appliers = merged([self._appliers, appliers])

    def apply(self, tx: Tx, effect: Effect, now: Instant) -> bool:
        """Apply an effect in this transaction; False if no feature does."""
        applier = self._appliers.get(type(effect))
        if applier is not None:
            applier(tx, effect, now)
        return applier is not None

    def __getitem__(self, kind: type[Any]) -> Applier:
        return self._appliers[kind]

    def __iter__(self) -> Iterator[type[Any]]:
        return iter(self._appliers)

    def __len__(self) -> int:
        return len(self._appliers)


def merged(maps: Iterable[Mapping[type[Any], T]]) -> dict[type[Any], T]:
    """All maps in one; two features must not provide the same key."""
    together: dict[type[Any], T] = {}
    for of_feature in maps:
        if twice := together.keys() & of_feature.keys():
            raise ValueError(f"more than one feature provides {', '.join(sorted(key.__name__ for key in twice))}")
        together |= of_feature
    return together
