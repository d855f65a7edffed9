"""A node of 0.1.0 and one of this release on one PostgreSQL: both work on the same schedules, each dies in turn.

Needs the old release: `WAKEFUL_0_1` names its `wakeful` command (`upgrade.make` says how to install it)."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postgres.server import server, url
from upgrade.daemon import Daemon, until
from wakeful.app import bootstrap
from wakeful.drill.ledger import Verdict, audit
from wakeful.drill.observed import read_observations

__all__ = ["server", "url"]

OLD = os.environ.get("WAKEFUL_0_1")
NEW = ()
"""This release."""
SCHEDULES = 12
ROUND = 150
"""How many more runs must be over before the next node dies."""
SETTINGS = """\
[schedules]
timezone = "UTC"
[limits]
every_min = "1s"
"""
WRITES = (
    'note() {{ printf \'{{"runId":"%s","attempt":"%s","key":"%s","at":%s,"what":"%s"}}\\n\' "$WAKEFUL_RUN_ID" '
    '"$WAKEFUL_ATTEMPT" "$WAKEFUL_IDEMPOTENCY_KEY" "$(date +%s%3N)" "$1" >> {file}; }}; '
    "note began; sleep 0.2; note ended"
)

pytestmark = [
    pytest.mark.torture,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(OLD is None, reason="set WAKEFUL_0_1 to the wakeful command of release 0.1.0"),
]


@pytest.fixture
def node(url: str, tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Makes a node of a release with a home of its own; none is left running."""
    made: list[Daemon] = []

    def make(wakeful: tuple[str, ...], name: str) -> Daemon:
        home = tmp_path / name
        home.mkdir(mode=0o700)
        (home / "wakeful.toml").write_text(SETTINGS)
        made.append(Daemon(wakeful, home, url))
        return made[-1]

    yield make
    for one in made:
        one.kill()


def over(daemon: Daemon) -> int:
    """How many runs have ended, whoever ran them."""
    counts = [daemon.get(f"/api/schedule/tick-{number}/stats")["counts"] for number in range(SCHEDULES)]
    return sum(count.get(outcome, 0) for count in counts for outcome in ("succeeded", "failed", "unknown", "timedOut"))


def work(daemon: Daemon) -> None:
    """Until so many more runs are over."""
    enough = over(daemon) + ROUND
    until(lambda: over(daemon) >= enough)


def checked(address: str, seen: Path) -> Verdict:
    async def look() -> Verdict:
        opened = await bootstrap.open_store(address)
        try:
            return await opened.store.read(lambda tx: audit(tx, read_observations([seen])))
        finally:
            await opened.store.close()

    return asyncio.run(look())


def test_nothing_is_lost_or_doubled_while_both_releases_work(
    url: str, tmp_path: Path, node: Callable[..., Daemon]
) -> None:
    """0.2 joins two nodes of 0.1 and changes the schema under them; nodes die in turn, in the middle of their runs."""
    seen = tmp_path / "seen.jsonl"
    first, second = (node((str(OLD),), name) for name in ("first", "second"))
    new = node(NEW, "new")
    first.start()
    second.start()
    for number in range(SCHEDULES):
        command = {"argv": ["sh", "-c", WRITES.format(file=seen)]}
        first.schedule(f"tick-{number}", {"type": "every", "every": f"{1 + number % 3}s"}, command=command)
    work(first)
    new.start()
    assert len(new.get("/api/nodes")["nodes"]) == 3
    work(new)
    first.kill()
    work(new)
    with pytest.raises(AssertionError, match=r"topics\.consumer"):
        first.start()  # 0.1 goes on after the schema step, and cannot start again
    new.kill()
    work(second)
    new.start()
    work(second)
    assert second.end() == 0
    work(new)
    assert new.end() == 0
    verdict = checked(url, seen)
    sys.stdout.write(verdict.in_words() + "\n")
    assert verdict.is_clean, verdict.in_words()
