"""From a seed to a world: the seed alone decides how long, how many nodes, and how rough.

Four sorts of world take turns. A *long* one has most of a year, few instants a day, and every trouble there is; most
are laptops that sleep at night. A *rough* one has days, many instants, a restless clock, restless people,
and crashes at every turn. A *crowd* has two or three nodes that share the store by leases, and freeze past them. An
*everyday* one is short and has the limits that are shipped: looks every minute, leases of half a minute.

One or two of those that live beside schedules live in most worlds, all of them in some; a long world has none of those
that never rest, because a year of them is dear.
"""

import random
import tempfile
from dataclasses import replace
from pathlib import Path

from wakeful.core.time.instants import DAY, HOUR, MINUTE
from wakeful.engine.limits import Limits
from worlds.faults import Climate, streams
from worlds.population import CALM, EVERYBODY, draw_inhabitants
from worlds.system import Assemble, assemble
from worlds.world import Report, Say, World


def climate_of(
    seed: int,
    *,
    days: float | None = None,
    nodes: int | None = None,
    inhabitants: frozenset[str] | None = None,
    is_left_alone: bool = False,
    has_alike: bool = False,
) -> tuple[Climate, Limits]:
    """What kind of world a seed stands for; days, nodes and inhabitants may be chosen instead. In one that is left
    alone no person cancels or replays runs. With `has_alike`, many schedules are due together."""
    climate, limits = _climate_of(seed, days, nodes)
    if has_alike:
        limits = replace(limits, concurrency_max=64)
    if is_left_alone:
        climate = replace(climate, meddling_per_day=0, meddling_min=0)
    there = draw_inhabitants(seed, climate.inhabitants) if inhabitants is None else inhabitants
    return replace(climate, inhabitants=there, has_alike=has_alike), limits


def _climate_of(seed: int, days: float | None, nodes: int | None) -> tuple[Climate, Limits]:
    (rng,) = streams(seed, "climate")
    if nodes is None:
        nodes = (1, 1, 1, 2, 1, 1, 1, 3)[seed % 8]
    if seed % 16 == 13:
        return _everyday(rng, days, nodes)
    if nodes > 1:
        return _crowd(rng, days, nodes)
    return _rough(rng, days) if seed % 8 == 5 else _long(rng, days)


def _long(rng: random.Random, days: float | None) -> tuple[Climate, Limits]:
    drawn = rng.randrange(260, 450)  # drawn also where it is chosen, so that the rest is the same world
    climate = Climate(
        days=days or drawn,
        inhabitants=CALM,
        schedules=5,
        deeds_per_day=0.3,
        nights=rng.choice((0, 0.95, 0.95)),
        lease=DAY,
        outage_max=60 * DAY,
        meddling_per_day=0.03,
        meddling_min=8,
        pace=DAY,
    )
    room = rng.choice((3, 64))
    return climate, Limits(concurrency_max=room, lease=DAY, renew_every=8 * HOUR, sleep_max=8 * HOUR, prune_every=DAY)


def _rough(rng: random.Random, days: float | None) -> tuple[Climate, Limits]:
    drawn = rng.randrange(3, 7)
    climate = Climate(
        days=days or drawn,
        inhabitants=EVERYBODY,
        schedules=12,
        outages_per_day=2,
        steps_per_day=3,
        wrong_clocks_per_day=0.4,
        freezes_per_day=1,
        deeds_per_day=50,
        crash_per_commit=0.01,
        shortages=0.05,
        lease=10 * MINUTE,
        outage_max=12 * HOUR,
        meddling_per_day=3,
        meddling_min=8,
        pace=20 * MINUTE,
    )
    room = rng.choice((1, 3, 64))
    return climate, Limits(
        concurrency_max=room, lease=10 * MINUTE, renew_every=5 * MINUTE, sleep_max=rng.choice((MINUTE, 5 * MINUTE))
    )


def _crowd(rng: random.Random, days: float | None, nodes: int) -> tuple[Climate, Limits]:
    lease = rng.choice((HOUR, 3 * HOUR))
    drawn = rng.randrange(5, 12)
    climate = Climate(
        days=days or drawn,
        nodes=nodes,
        inhabitants=EVERYBODY,
        schedules=10,
        outages_per_day=0.4,
        steps_per_day=0.3,
        wrong_clocks_per_day=0.05,
        freezes_per_day=2,
        deeds_per_day=5,
        crash_per_commit=0.006,
        lease=lease,
        outage_max=DAY,
        meddling_per_day=1.5,
        meddling_min=8,
        pace=2 * HOUR,
    )
    limits = Limits(concurrency_max=rng.choice((2, 4, 8)), lease=lease, renew_every=lease // 3, sleep_max=lease // 2)
    return climate, limits


def _everyday(rng: random.Random, days: float | None, nodes: int) -> tuple[Climate, Limits]:
    climate = Climate(
        days=days or 1,
        nodes=nodes,
        inhabitants=EVERYBODY,
        schedules=10,
        outages_per_day=8,
        steps_per_day=4,
        wrong_clocks_per_day=1,
        freezes_per_day=20,
        deeds_per_day=60,
        crash_per_commit=0.001,
        lease=Limits().lease,
        outage_max=HOUR,
        meddling_per_day=10,
        meddling_min=8,
        pace=10 * MINUTE,
    )
    return climate, Limits(concurrency_max=rng.choice((2, 64)))


def simulate(
    seed: int,
    *,
    days: float | None = None,
    nodes: int | None = None,
    inhabitants: frozenset[str] | None = None,
    is_left_alone: bool = False,
    has_alike: bool = False,
    folder: Path | None = None,
    assembled_by: Assemble = assemble,
    say: Say | None = None,
) -> Report:
    """Run one world to its end; raises `Broken`, with the seed and how to replay it, at the first broken law."""
    climate, limits = climate_of(
        seed, days=days, nodes=nodes, inhabitants=inhabitants, is_left_alone=is_left_alone, has_alike=has_alike
    )
    if folder is not None:
        return World(seed, climate, limits, folder, assembled_by, say).run()
    with tempfile.TemporaryDirectory(prefix="wakeful-world-") as name:
        return World(seed, climate, limits, Path(name), assembled_by, say).run()
