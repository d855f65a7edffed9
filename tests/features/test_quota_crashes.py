"""A restart at any moment neither repeats nor skips a wake: the process dies at every commit, one after the other."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from features.kit import AllTogether, World, short
from features.quota_kit import Opened, Shop, config, open_quota
from sampling import sampled
from wakeful.core.time.instants import MINUTE, SECOND
from wakeful.stores.sqlite.group import Crashed
from wakeful.testing.virtual_loop import run

# Windows that end just before the next wake is due: whenever the process begins anew, the key is warm, or owed a wake.
MODES: dict[str, dict[str, Any]] = {
    "interval": {"interval": "60m"},
    "times": {"times": ["01:00", "02:00"]},
    "after reset": {"afterReset": "1m"},
    "all": {"interval": "60m", "times": ["01:00", "02:00"], "afterReset": "1m"},
}
COMMITS = 14
"""From the moment a wake is due until it is confirmed there are fewer."""


class Undisturbed(NamedTuple):
    """A story without a crash."""

    mode: str
    is_cold: bool
    wakes: list[str]
    commits: int


class Doom(AllTogether):
    """Lets the process die at its n-th commit since it was armed: just before it, or just after."""

    def __init__(self, at: int | None, side: str) -> None:
        self._at = at
        self._side = side
        self.commits = 0
        self.machine: Any = None

    def before_commit(self) -> None:
        if self.machine is not None:
            self.commits += 1
        self._maybe_die("before")

    def after_commit(self) -> None:
        self._maybe_die("after")

    def _maybe_die(self, side: str) -> None:
        if self.machine is not None and self.commits == self._at and side == self._side:
            self.machine.kill()
            raise Crashed


async def story(folder: Path, mode: str, at: int | None, side: str, *, is_cold: bool) -> tuple[list[str], int]:
    """Two wakes, and one crash around the first; answers when wakes arrived, and the commits of that time."""
    world = World(folder)
    try:
        return await _told(world, mode, Doom(at, side), is_cold)
    finally:
        await world.close()


async def _told(world: World, mode: str, doom: Doom, is_cold: bool) -> tuple[list[str], int]:
    shop = Shop(world)
    account = shop.account("sk-main")
    account.window = 59 * MINUTE + 30 * SECOND
    if not is_cold:
        account.warm("59m")
    given = config(world, {"main": {**MODES[mode], "poll": "24h"}})
    opened = await open_quota(world, shop, given, hook=doom)
    if not is_cold:
        await world.sleep(59 * MINUTE + 58 * SECOND)
    doom.machine = opened.app.machine
    for _ in range(10):
        await world.sleep(6 * SECOND)
        if not opened.app.machine.is_alive:
            opened = await _reborn(world, shop, given, opened)
    commits, doom.machine = doom.commits, None
    await world.sleep(62 * MINUTE)
    slot = await opened.slot()
    assert (slot["wakePending"], slot["wakeErrors"], slot["quotaErrors"]) == (False, 0, 0)
    assert [row for row in await opened.rows() if "waiting" in row or "running" in row] == []
    return [short(when)[:11] for when in account.tried], commits


async def _reborn(world: World, shop: Shop, given: Any, opened: Opened) -> Opened:
    """The same home, a new process, after a moment."""
    app = opened.app
    app.machine.reap()
    parts, app._parts = app._parts, None
    assert parts is not None
    await parts.store.close()
    return await open_quota(world, shop, given)


STORIES = [*((mode, False) for mode in MODES), ("all", True)]


@pytest.fixture(scope="module", params=STORIES, ids=lambda told: f"{told[0]}, {'cold' if told[1] else 'warm'}")
def undisturbed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """A world in which nothing crashes: how many wakes arrive, and in how many commits."""
    mode, is_cold = request.param
    usual, commits = run(story(tmp_path_factory.mktemp("undisturbed"), mode, None, "none", is_cold=is_cold))
    assert (len(usual), 5 < commits <= COMMITS) == (2, True), (usual, commits)
    return Undisturbed(mode, is_cold, usual, commits)


@pytest.mark.parametrize(
    ("at", "side"),
    sampled([(at, side) for at in range(1, COMMITS + 1) for side in ("before", "after")], every=14, offset=2),
)
def test_a_crash_at_any_commit_neither_repeats_nor_skips_a_wake(
    tmp_path: Path, undisturbed: Undisturbed, at: int, side: str
) -> None:
    """From before a wake is due, or from the start with a cold key, until it is confirmed: every commit, both sides.
    As many wakes arrive as in a world without a crash."""
    at = min(at, undisturbed.commits)  # a few stories have fewer
    found, _ = run(story(tmp_path, undisturbed.mode, at, side, is_cold=undisturbed.is_cold))
    assert len(found) == len(undisturbed.wakes), f"{found} instead of {undisturbed.wakes}"
