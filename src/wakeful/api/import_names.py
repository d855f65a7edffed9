"""The slugs that the entries of an import get."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from wakeful.api.origin_rows import Origin, Origins
from wakeful.app.import_plan import PlannedEntry
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


def refused_beside(
    planned: PlannedEntry, every: Sequence[PlannedEntry], names: Names, stored: Mapping[str, str]
) -> PlannedEntry:
    """Refuse a timer while schedules of lines that it no longer has, or that are one now, still run: its times would
    run twice."""
    place = planned.entry.place
    refs = {one.entry.ref for one in every if one.entry.place == place}
    left = [known.name for (at, ref), known in names.known.items() if at == place and ref not in refs]
    running = sorted(name for name in left if name in stored)
    if planned.action not in ("create", "update") or not running:
        return planned
    reason = f"some of its lines were schedules of their own: remove {', '.join(running)} first, and import it again"
    return replace(planned, action="refused", reason=reason)
