"""The slugs that the entries of an import get."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from wakeful.api.origin_rows import Origin, Origins
from wakeful.core.schedule.definition import RESERVED_SLUGS
from wakeful.integrations.imports.entries import Entry
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import Tx


@dataclass(slots=True)
class Names:
    """Slugs that are taken, and those of entries that were imported before."""

    taken: set[str]
    known: dict[tuple[str, str], Origin] = field(default_factory=dict)
    slots: frozenset[str] = frozenset()

    def slug_for(self, entry: Entry) -> str:
        """An entry's slug: its existing one, else a free one."""
        origin = self.known.get((entry.place, entry.ref))
        if origin is not None:
            return origin.name
        slug, number = entry.name, 1
        while slug in self.taken or slug in RESERVED_SLUGS:
            number += 1
            slug = f"{entry.name[:56]}-{number}"
        self.taken.add(slug)
        return slug


def names_of(tx: Tx, kind: str, entries: Sequence[Entry]) -> tuple[Names, dict[str, str]]:
    """The names that are taken, and the stored definitions of those that the entries may get."""
    known = {
        (origin.place, origin.ref): origin
        for place in dict.fromkeys(entry.place for entry in entries)
        for origin in tx[Origins].of_place(kind, place)
    }
    wanted = {entry.name for entry in entries}
    candidates = {f"{name[:56]}-{number}" for name in wanted for number in range(2, len(entries) + 12)} | wanted
    candidates |= {origin.name for origin in known.values()}
    stored = {row.slug: row.definition for row in tx.schedules.by_slugs(sorted(candidates)).values()}
    slots = frozenset(slot.name for slot in tx[QuotaSlots].all())
    return Names({*stored, *slots, *(origin.name for origin in known.values())}, known, slots), stored
