"""Worlds that are run until a law is broken."""

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from sampling import IS_THOROUGH
from wakeful.core.time.instants import HOUR, MINUTE
from wakeful.engine.limits import Limits
from worlds.faults import Climate
from worlds.judge import Broken
from worlds.system import assemble
from worlds.world import World


def first_violation(climate: Climate, folder: Path, seeds: Iterable[int]) -> str | None:
    """What the judge says first, over worlds of one climate; None if all of them hold."""
    limits = Limits(concurrency_max=8, lease=HOUR, renew_every=20 * MINUTE, sleep_max=HOUR)
    for seed in seeds:
        with tempfile.TemporaryDirectory(dir=folder) as home:
            try:
                World(seed, climate, limits, Path(home), assemble).run()
            except Broken as broken:
                return str(broken)
    return None


def is_sound(climate: Climate, folder: Path, seeds: Iterable[int]) -> bool:
    """Whether worlds of this climate hold as long as nothing is broken. `make test` runs a fifth of their days."""
    days = climate.days if IS_THOROUGH else climate.days / 5
    return first_violation(replace(climate, days=days), folder, seeds) is None
