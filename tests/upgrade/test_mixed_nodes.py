"""A node of 0.2.0 and one of this release on one PostgreSQL: both work on the same schedules, each dies in turn.

Needs the old release: `WAKEFUL_0_2` names its `wakeful` command (`upgrade.make` says how to install it)."""

import asyncio
import json
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

OLD = os.environ.get("WAKEFUL_0_2")
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
    pytest.mark.skipif(OLD is None, reason="set WAKEFUL_0_2 to the wakeful command of release 0.2.0"),
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
    """0.3 joins two nodes of 0.2 and changes the schema under them; nodes die in turn, in the middle of their runs."""
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
    first.start()  # 0.2 runs on the next schema too
    work(first)
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


READS = """\
import json, sys
asked = json.load(sys.stdin)
answer = {}
if asked["phase"] == "prepare":
    shown = asked["messages"].get("letters", [])
    answer = {"reservations": [{"topic": "letters", "ids": [one["id"] for one in shown]}] if shown else []}
    with open(sys.argv[1], "a") as seen:
        seen.writelines(json.dumps([asked["handler"], one["payload"]]) + "\\n" for one in shown)
print(json.dumps(answer))
"""
MESSAGES = "/api/workflows/post/topics/letters/messages"
ALL = f"{MESSAGES}?limit=500"


def test_consumers_get_payloads_from_either_release(url: str, tmp_path: Path, node: Callable[..., Daemon]) -> None:
    """While 0.2 works, each row has its payload. It can stop at any time; then payloads are shared, and 0.2 is refused
    with what to do."""
    script, seen = tmp_path / "reads.py", tmp_path / "seen.jsonl"
    script.write_text(READS)
    handler = {"command": {"argv": [sys.executable, str(script), str(seen)]}}
    consumers = {name: {"subscribe": ["letters"], "handler": handler} for name in ("one", "two")}
    old, new = node((str(OLD),), "old"), node(NEW, "new")
    old.start()
    old.put("/api/workflows/post", {"status": "active", "producers": {}, "consumers": consumers})
    new.start()

    def publish(daemon: Daemon, numbers: range) -> None:
        for number in numbers:
            daemon.post(MESSAGES, {"id": str(number), "payload": f"letter {number}"})
        until(lambda: {one["status"] for one in daemon.get(ALL)["messages"]} == {"consumed"})

    publish(new, range(20))
    publish(old, range(20, 40))
    payloads = [one["payload"] for one in old.get(ALL)["messages"]]
    assert sorted(payloads) == sorted(2 * [f"letter {number}" for number in range(40)])
    assert old.end() == 0
    new.kill()
    new.start()
    publish(new, range(40, 60))
    with pytest.raises(AssertionError, match="install the release that wrote it"):
        old.start()
    publish(new, range(60, 70))
    assert new.end() == 0
    got = {tuple(json.loads(line)) for line in seen.read_text().splitlines()}
    assert got == {(name, f"letter {number}") for name in consumers for number in range(70)}


def test_a_node_of_0_2_that_slept_through_the_upgrade_runs_nothing(
    url: str, tmp_path: Path, node: Callable[..., Daemon]
) -> None:
    """Its lease ended, and payloads are shared now. When it wakes up it is refused, and the new node works on."""
    script, seen = tmp_path / "reads.py", tmp_path / "seen.jsonl"
    script.write_text(READS)
    handler = {"command": {"argv": [sys.executable, str(script), str(seen)]}}
    consumers = {name: {"subscribe": ["letters"], "handler": handler} for name in ("one", "two")}
    old, new = node((str(OLD),), "old"), node(NEW, "new")
    old.start()
    old.put("/api/workflows/post", {"status": "active", "producers": {}, "consumers": consumers})
    old.freeze()
    new.start()
    until(lambda: len(new.get("/api/nodes")["nodes"]) == 1)
    new.kill()
    new.start()
    old.thaw()
    for number in range(100):
        new.post(MESSAGES, {"id": str(number), "payload": f"letter {number}"})
    until(lambda: {one["status"] for one in new.get(ALL)["messages"]} == {"consumed"})
    until(lambda: "nodes_have_a_release" in old.said())
    assert len(new.get("/api/nodes")["nodes"]) == 1
    assert new.end() == 0
    got = {tuple(json.loads(line)) for line in seen.read_text().splitlines()}
    assert got == {(name, f"letter {number}") for name in consumers for number in range(100)}
