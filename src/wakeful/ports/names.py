"""Names of the owners of runs: a schedule by its slug, any other owner by its name."""

from collections.abc import Iterable

from wakeful.ports.owners import Owners
from wakeful.ports.store import Tx


def names_of(tx: Tx, ids: Iterable[int]) -> dict[int, str]:
    """Names by the id that runs carry, in at most two queries. Owners that are not schedules have negative ids."""
    wanted = set(ids)
    others = {owner_id for owner_id in wanted if owner_id < 0}
    slugs = {row.schedule_id: row.slug for row in tx.schedules.by_ids(sorted(wanted - others)).values()}
    return slugs | tx[Owners].names(sorted(others)) if others else slugs


def owner_of(tx: Tx, name: str) -> int | None:
    """The id that the runs of an existing schedule, or of another owner, carry."""
    schedule = tx.schedules.by_slugs([name]).get(name)
    return tx[Owners].find(name) if schedule is None else schedule.schedule_id
