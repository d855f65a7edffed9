"""Worlds that are run until a law is broken."""

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

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


def caught(
    sabotage: Callable[[pytest.MonkeyPatch], None],
    climate: Climate,
    folder: Path,
    seeds: Iterable[int],
    patch: pytest.MonkeyPatch,
) -> str | None:
    """What the judge says first once a protection is gone; the same world holds with the protection in place."""
    for seed in seeds:
        with patch.context() as broken:
            sabotage(broken)
            found = first_violation(climate, folder, [seed])
        if found is not None:
            assert first_violation(climate, folder, [seed]) is None, f"seed {seed} breaks a law by itself"
            return found
    return None


def is_sound(climate: Climate, folder: Path, seeds: Iterable[int]) -> bool:
    """Whether worlds of this climate hold as long as nothing is broken. `make test` runs a fifth of their days."""
    days = climate.days if IS_THOROUGH else climate.days / 5
    return first_violation(replace(climate, days=days), folder, seeds) is None
